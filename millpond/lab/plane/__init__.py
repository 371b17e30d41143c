"""Beyond the papers: every strategy on one plane of memory and latency."""
