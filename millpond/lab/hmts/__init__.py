"""Cammert et al., *Flexible Multi-Threaded Scheduling for Continuous Queries*, 2007."""
