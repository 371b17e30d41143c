"""Text to syntax: statements cut, read and placed."""
