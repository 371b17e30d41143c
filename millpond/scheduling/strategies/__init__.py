"""The strategies, one a file, named as in its paper: pure, found by name through the registry."""
