"""Babcock, Babu, Datar, Motwani, *Chain: Operator Scheduling for Memory Minimization*, 2003."""
