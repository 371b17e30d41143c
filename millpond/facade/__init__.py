"""The engine as callers see it: its statements, its settings, and the loop in which it works."""
