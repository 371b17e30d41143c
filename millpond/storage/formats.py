"""The formats of stores: which there were, and what a record of one says in the next.

A log is read in the present format only; `millpond store upgrade` converts one of an earlier
format, record by record, one format at a time.
"""

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]

FORMAT = 6
"""Grows whenever records are written that an older reader would misread, when a field goes or gets
another meaning, or states lie in other buckets: since 6 the log says which version wrote it, and
has punctuations, constraints and what is kept of streams."""

OLDEST = 5
"""The first format that can be converted: since then the log says what runs, and nothing is planned
again. Fields that came with a default need no conversion."""


def converted(record: Record, version: int) -> Record:
    """What a record of a format says in the present one."""
    for each in range(version, FORMAT):
        record = _CONVERSIONS[each](record)
    return record


def _from_5(record: Record) -> Record:
    """Plans are in the log, so how queries were to be planned says nothing of the store."""
    if record["kind"] != "open":
        return record
    return {key: value for key, value in record.items() if key not in ("linear", "sharing")}


_CONVERSIONS: dict[int, Callable[[Record], Record]] = {5: _from_5}
