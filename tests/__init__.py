"""Tests of Millpond; `reference.py` is the meaning everything else is measured against."""
