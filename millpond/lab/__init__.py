"""The papers' tables, figures and theorems, run again: one a file, with the claim it must show."""
