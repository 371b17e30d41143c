"""Cases whose streams say how far their values come behind larger ones, just as it is in them.

A constraint that holds changes no answer; one that were a row narrower would put a tuple aside.
"""

from __future__ import annotations

from dataclasses import replace

ORDERED_TYPES = ("INT", "BIGINT", "DATE", "TIMESTAMP")


def adhering(case):
    """The case with a constraint for each column by which its streams can be ordered."""
    streams = tuple(replace(s, constraints=tuple(_clauses(case, s))) for s in case.streams)
    return replace(case, streams=streams)


def _clauses(case, stream):
    elements, _ = case.admitted(stream)
    for position, (name, type_name) in enumerate(stream.schema):
        if type_name in ORDERED_TYPES:
            values = [row[position] for _, _, row in elements]
            yield f"ORDERED BY ({name}) WITHIN {farthest_behind(values)} ROWS"


def farthest_behind(values):
    """How many rows a value comes behind a larger one at most.

    >>> farthest_behind([1, 5, 3, None, 2])
    3
    """
    behind = [
        place - before
        for place, value in enumerate(values)
        for before, other in enumerate(values[:place])
        if value is not None and other is not None and other > value
    ]
    return max(behind, default=0)
