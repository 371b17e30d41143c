"""Cases whose streams say how far their values come from their like, just as it is in them.

A constraint that holds changes no answer; one that were a row narrower would put a tuple aside.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from millpond.execution.operators import freeing

ORDERED_TYPES = ("INT", "BIGINT", "DATE", "TIMESTAMP")
KEY_TYPES = (*ORDERED_TYPES, "STRING")


def adhering(case):
    """The case with all constraints that its streams adhere to; closed values are looked for in
    every step."""
    freeing.COMPACT_ROWS = 1
    streams = tuple(
        replace(s, constraints=(*_clauses(case, s), *_references(case, s, case.streams[:number])))
        for number, s in enumerate(case.streams)
    )
    return replace(case, streams=streams)


def _clauses(case, stream):
    elements, _ = case.admitted(stream)
    for position, (name, type_name) in enumerate(stream.schema):
        values = [row[position] for _, _, row in elements]
        if type_name in ORDERED_TYPES:
            yield f"ORDERED BY ({name}) WITHIN {farthest_behind(values)} ROWS"
        if type_name in KEY_TYPES:
            yield f"CLUSTERED BY ({name}) WITHIN {most_others(values)} ROWS"
            yield f"UNIQUE ({name}) WITHIN {farthest_from_first(values)} ROWS"
    yield from _keys(stream, [row for _, _, row in elements])


def _keys(stream, rows):
    """UNIQUE of two columns, with a k that would grow."""
    typed = [(place, name) for place, (name, kind) in enumerate(stream.schema) if kind in KEY_TYPES]
    for (one, first), (other, second) in pairwise(typed):
        pairs = [(row[one], row[other]) for row in rows]
        values = [None if None in pair else pair for pair in pairs]
        far = farthest_from_first(values)
        yield f"UNIQUE ({first}, {second}) WITHIN {far} ROWS ON VIOLATION WIDEN"


def _references(case, stream, others):
    """REFERENCES to streams that are declared before, column by column, in time."""
    for other in others:
        for own, (name, type_name) in enumerate(stream.schema):
            for theirs, (column, column_type) in enumerate(other.schema):
                if type_name == column_type and type_name in KEY_TYPES:
                    far = latest_partner(_timed(case, stream, own), _timed(case, other, theirs))
                    yield (
                        f"CONSTRAINT {name}_{other.name}_{column} FOREIGN KEY ({name}) "
                        f"REFERENCES {other.name} ({column}) WITHIN {far}"
                    )


def _timed(case, stream, position):
    return [(row[position], time) for time, _, row in case.admitted(stream)[0]]


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


def most_others(values):
    """How many others come between a value and the last one before it that is the same, at most.

    >>> most_others([1, 5, None, 1, 1])
    2
    """
    last, most = {}, 0
    for place, value in enumerate(values):
        most = max(most, place - last.get(value, place - 1) - 1) if value is not None else most
        last[value] = place
    return most


def farthest_from_first(values):
    """How many rows a value comes behind the first one that is the same, at most.

    >>> farthest_from_first([1, 5, None, 1, 1])
    4
    """
    first = {}
    far = [
        place - first.setdefault(value, place)
        for place, value in enumerate(values)
        if value is not None
    ]
    return max(far, default=0)


def latest_partner(own, others):
    """How much later than a value the same one of another stream is, at most.

    >>> latest_partner([(1, 10), (2, 20)], [(1, 9), (1, 13), (2, 4)])
    3
    """
    far = [
        at - time
        for value, time in own
        for other, at in others
        if value is not None and value == other
    ]
    return max([0, *far])
