"""Keyed operators as vectorised functions on Arrow tables.

A kernel takes the elements of one step and the state of the keys they touch, and gives the elements
it puts out and the new state. It runs in the driver for small pages and in Spark's Python workers,
after a shuffle by key, for large ones: the same function.
"""
