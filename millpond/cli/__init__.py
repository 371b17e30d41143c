"""The command line: one door to the engine."""

from millpond.cli.app import app, main

__all__ = ["app", "main"]
