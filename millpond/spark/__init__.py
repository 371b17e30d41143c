"""Spark as a runtime: the only package that imports pyspark."""
