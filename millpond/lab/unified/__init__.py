"""Bai, Zaniolo, *Minimizing Latency and Memory in DSMS: a Unified Approach*, 2008."""
