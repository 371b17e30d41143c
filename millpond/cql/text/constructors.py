"""Syntax of ARRAY[…] and MAP[…]."""

from typing import ClassVar

from sqlglot import exp


class MapOfEntries(exp.Expression):
    """MAP[k, v, …]."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


LISTED: dict[str, type[exp.Expression]] = {"ARRAY": exp.Array, "MAP": MapOfEntries}
"""What stands before a list of values in brackets."""
