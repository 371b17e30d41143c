"""Jiang, Chakravarthy, *Scheduling Strategies for Processing Continuous Queries*, 2003."""
