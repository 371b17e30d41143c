"""Tables of experiments: made of rows, and read by what rows have in other columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from millpond.lab.experiment import Table


def table_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """The table with columns of these names and these rows.

    >>> table_of(("strategy", "peak"), [("fifo", 3), ("chain", 2)])
    {'strategy': ['fifo', 'chain'], 'peak': [3, 2]}
    """
    listed = list(rows)
    return {name: [row[place] for row in listed] for place, name in enumerate(names)}


def picked(table: Table, column: str, of: Mapping[str, Any]) -> list[Any]:
    """What a column has in the rows in which others have these values.

    >>> picked({"strategy": ["fifo", "chain"], "peak": [3, 2]}, "peak", {"strategy": "chain"})
    [2]
    """
    wanted, keys = tuple(of.values()), zip(*(table[name] for name in of), strict=True)
    return [value for value, key in zip(table[column], keys, strict=True) if key == wanted]
