"""Benchmarks: each prints one JSON line a case; run them as ``python -m benchmarks.NAME``."""
