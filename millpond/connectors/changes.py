"""Relations whose source carries timestamped changes: columns ts and op (`+` or `-`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.rows import row_position
from millpond.connectors.sources import (
    Declaration,
    Progress,
    Source,
    SourcePage,
    as_page,
    close_source,
    is_live,
)
from millpond.connectors.text_files import TextFiles
from millpond.connectors.times import times_of
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type

WEIGHTS = {"+": 1, "-": -1}


def changes_schema(schema: Schema) -> pa.Schema:
    """The columns of change pages: ts in ticks, weight, then the declared ones."""
    extra = [pa.field("ts", pa.int64()), pa.field("weight", pa.int64())]
    return pa.schema([*extra, *arrow_schema(schema)])


def listed_changes(changes: Any, name: str) -> list[tuple[Any, str, Any]]:
    """Changes that a program hands over, each ``(ts, op, row)``."""
    if isinstance(changes, str | bytes | Mapping) or not isinstance(changes, Iterable):
        raise InputError(f"{name}: changes are tuples (ts, '+' or '-', row), not {changes!r}")
    listed = list(changes)
    for number, change in enumerate(listed, start=1):
        where = f"{name}, row {number}"
        if not isinstance(change, tuple | list) or len(change) != 3:
            raise InputError(f"{where}: a change is (ts, '+' or '-', row), not {change!r}")
        if not isinstance(change[1], str) or change[1] not in WEIGHTS:
            raise InputError(f"{where}: op must be '+' or '-', not {change[1]!r}")
    return listed


def open_changes(declaration: Declaration, opened: Callable[[Declaration], Source]) -> Source:
    """A source of changes, from what opens a source of plain rows."""
    return ChangesSource(declaration, opened)


class ChangesSource:
    """Rows with their time in ticks and their weight."""

    def __init__(self, declaration: Declaration, opened: Callable[[Declaration], Source]) -> None:
        self._declaration, self._opened = declaration, opened
        self._rows = opened(_with_change_columns(declaration, Type.BIGINT))
        self.ends = self._rows.ends

    def pages(self) -> Iterator[SourcePage]:
        """Pages of ``changes_schema``."""
        return self._changes(self._pages_with_times(lambda source: source.pages()))

    def __getattr__(self, name: str) -> Any:
        """``pages_from`` and ``close``, where the source below has them."""
        if name not in ("pages_from", "close") or not hasattr(self._rows, name):
            raise AttributeError(name)
        if name == "close":
            return lambda: close_source(self._rows)

        def pages_of(source: Any, position: Any) -> Iterator[SourcePage]:
            pages: Iterator[SourcePage] = source.pages_from(position)
            return pages

        return lambda position: self._changes(
            self._pages_with_times(lambda source: pages_of(source, position))
        )

    def _changes(self, pages: Iterator[SourcePage]) -> Iterator[SourcePage]:
        rows_before = 0
        for page in pages:
            table = _Change(self._declaration, page.rows, rows_before).table()
            yield replace(page, rows=table)
            rows_before += page.rows.num_rows

    @property
    def is_live(self) -> bool:
        """What the source below says."""
        return is_live(self._rows)

    def progress(self) -> Progress:
        """What the source below says."""
        return self._rows.progress()

    def _pages_with_times(
        self, pages: Callable[[Source], Iterator[pa.Table | SourcePage]]
    ) -> Iterator[SourcePage]:
        """Times are whole numbers if the first rows have such; else TIMESTAMPs."""
        has_rows, position = False, None
        try:
            for page in map(as_page, pages(self._rows)):
                has_rows, position = has_rows or page.rows.num_rows > 0, page.position
                yield page
        except InputError as error:
            if has_rows or not self._may_be_timestamps(error):
                raise
            source: Any = self._with_timestamps()
            again = pages(source) if position is None else source.pages_from(position)
            yield from map(as_page, again)

    def _may_be_timestamps(self, error: InputError) -> bool:
        has_delivered = isinstance(self._rows, TextFiles) and self._rows.has_delivered
        return (error.column or "").lower() == "ts" and not has_delivered

    def _with_timestamps(self) -> Source:
        declaration = _with_change_columns(self._declaration, Type.TIMESTAMP)
        if isinstance(self._rows, TextFiles):  # a pipe cannot be read again
            self._rows = self._rows.declared_as(declaration)
        else:
            self._rows = self._opened(declaration)
        return self._rows


def _with_change_columns(declaration: Declaration, time: Type) -> Declaration:
    """Adds ts and op, unless the relation declares columns of these names itself."""
    schema = declaration.schema
    extra = [Field("ts", time), Field("op", Type.STRING)]
    missing = tuple(field for field in extra if schema.position(field.name) is None)
    full = Schema(missing) + schema
    return replace(declaration, schema=full, timestamp_column=full.position("ts"))


@dataclass(frozen=True)
class _Change:
    declaration: Declaration
    page: pa.Table
    rows_before: int

    def table(self) -> pa.Table:
        declared = [self._column(name) for name in self.declaration.schema.names]
        columns = [self._ticks(), self._weights(), *declared]
        return pa.table(columns, schema=changes_schema(self.declaration.schema))

    def _column(self, name: str) -> pa.ChunkedArray:
        position = [n.lower() for n in self.page.column_names].index(name.lower())
        return self.page.column(position)

    def _ticks(self) -> pa.Array:
        tick = self.declaration.settings.tick_microseconds
        where = row_position(self.declaration.name, self.rows_before)
        return pa.array(times_of(self._column("ts"), "ts", tick, where))

    def _weights(self) -> pa.Array:
        signs = pc.utf8_trim_whitespace(self._column("op"))
        found = pc.index_in(signs, pa.array(list(WEIGHTS)))
        self._refuse_first(pc.is_null(found), "op must be + or -")
        return pc.subtract(1, pc.multiply(found.cast(pa.int64()), 2))

    def _refuse_first(self, faults: pa.ChunkedArray | pa.Array, message: str) -> None:
        row = pc.index(faults, True).as_py()
        if row >= 0:
            raise InputError(
                f"{self.declaration.name}, row {self.rows_before + row + 1}: {message}"
            )
