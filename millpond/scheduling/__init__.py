"""Scheduling strategies: one a file, named as in its paper, pure, found through the registry."""
