"""Scheduling: strategies, the charts and threads they are made of, and the registry of names."""
