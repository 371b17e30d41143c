"""Syntax to checked statements: each file is named by what it checks."""
