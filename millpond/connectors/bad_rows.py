"""Rows that a source cannot read, put aside where its stream says ON BAD ROW SKIP or INTO.

What is left out of a page is found by halving it, so that the rows around a bad one are read as
fast as ever.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from millpond.connectors.encoding import is_utf8
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type

BAD_ROW = Schema(
    tuple(Field(name, Type.STRING) for name in ("offset", "reason", "raw", "raw_base64"))
)
"""What is told of a bad row: where it is, why it is bad, and its bytes, as text if they are."""

T = TypeVar("T")


@dataclass(frozen=True)
class BadRow:
    """A row that could not be read."""

    offset: str
    """Where it is, as the source counts."""
    reason: str
    raw: bytes
    after: int = 0
    """So many rows of its page come before it."""

    @property
    def values(self) -> tuple[str, str, str | None, str | None]:
        """The values of ``BAD_ROW``: bytes that are no text are in base64."""
        if is_utf8(self.raw):
            return self.offset, self.reason, self.raw.decode(), None
        return self.offset, self.reason, None, base64.b64encode(self.raw).decode()


def salvaged(
    records: Sequence[T],
    read: Callable[[Sequence[T]], pa.Table],
    bad: Callable[[T, InputError], BadRow],
) -> Iterator[pa.Table | BadRow]:
    """The rows of records that can be read, and in their places those that cannot."""
    waiting = [records] if records else []
    while waiting:
        part = waiting.pop()
        found: pa.Table | BadRow | None = None
        try:
            found = read(part)
        except InputError as error:
            if len(part) == 1:
                found = bad(part[0], error)
        if found is None:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
        else:
            yield found


def told_apart(
    found: Iterator[pa.Table | BadRow], empty: pa.Table
) -> tuple[pa.Table, list[BadRow], list[int]]:
    """The rows that were found as one table, the bad ones, and of each row the number of its
    record, bad ones counted."""
    tables, bad, numbers, number = [empty], list[BadRow](), list[int](), 0
    for each in found:
        if isinstance(each, BadRow):
            bad.append(replace(each, after=len(numbers)))
            number += 1
        else:
            tables.append(each)
            numbers += range(number, number + each.num_rows)
            number += each.num_rows
    return pa.concat_tables(tables).combine_chunks(), bad, numbers
