"""What functions of Python yield, as pages: rows, frames or Arrow data, at once or awaited."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from threading import Event, Thread
from typing import Any

import pyarrow as pa

from millpond.arguments import shown_value
from millpond.connectors.arrow import RowPosition, arrow_schema
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.batching import Batching
from millpond.connectors.declared_functions import AFTER, PythonFunction
from millpond.connectors.pandas_there import is_frame
from millpond.connectors.python_values import python_rows
from millpond.connectors.rows import rows_to_arrow, to_arrow
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.connectors.times import check_times
from millpond.errors import InputError, MillpondError

LOOK_SECONDS = 0.2
"""So often whoever waits for rows looks whether they are wanted still."""


def _outside_of_loops(work: Callable[[], None]) -> None:
    """Runs an event loop, in a thread of its own if this one is inside of another: pages that
    nobody wants any more may be collected anywhere."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    apart = Thread(target=work)
    apart.start()
    apart.join()


class PythonSource:
    """What a function yields, in pages."""

    pages_from: Callable[[dict[str, Any]], Iterator[SourcePage]]
    """What it yields behind a position; not there if it is read again from its beginning."""

    def __init__(
        self,
        declaration: Declaration,
        called: PythonFunction,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> None:
        self._declaration, self._called = declaration, called
        self._arguments, self._options = arguments, options
        self.ends = not called.endless
        self.is_live = called.is_async or called.live
        self._has_place = called.knows_its_place
        if self._has_place or self.is_live:  # else it is read again from its beginning
            self.pages_from = self._pages_from
        self._is_closed = Event()
        self._done = 0

    def pages(self) -> Iterator[SourcePage]:
        """What it yields from its beginning on."""
        if hasattr(self, "pages_from"):
            begins = self._position(None, 0) if self._has_place else {"has_begun": True}
            yield SourcePage(self._empty(), (), lambda _: begins)
        yield from self._pages(None, 0)

    def _pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """What it yields behind a position."""
        if self._has_place:
            yield from self._pages(position[AFTER], position["skip"])
            return
        if not self._called.gaps:
            raise self._fault(
                "what it yielded and is not in the store may not come again: rows may be lost; "
                f"give the function a parameter {AFTER}, or say source(gaps=True) if that may be"
            )
        yield from self._pages(None, 0)

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done, None, "rows")

    def close(self) -> None:
        """Nobody waits for a row any more."""
        self._is_closed.set()

    def _fault(self, said: str) -> InputError:
        return InputError(f"{self._declaration.name} FROM {self._called.name}(): {said}")

    def _empty(self) -> pa.Table:
        return arrow_schema(self._declaration.schema).empty_table()

    # -- what the function yields ----------------------------------------------------------

    def _batches(self, after: Any) -> Iterator[list[Any]]:
        """What it yields, as much at once as there is; what it raises is said to be its."""
        place = {AFTER: after} if self._has_place else {}
        try:
            yielded = self._called.function(*self._arguments, **self._options, **place)
            if self._called.is_async:
                yield from self._awaited(yielded)
            elif isinstance(yielded, Iterable) and not isinstance(yielded, str | bytes):
                yield from self._iterated(iter(yielded))
            else:
                raise self._fault(f"it yields rows, and gave {shown_value(yielded)}")
        except MillpondError:
            raise
        except Exception as error:
            raise self._fault(f"{type(error).__name__}: {error}") from error

    def _iterated(self, items: Iterator[Any]) -> Iterator[list[Any]]:
        most = 1 if self.is_live else self._declaration.settings.page_rows
        while not self._is_closed.is_set():
            found = [each for _, each in zip(range(most), items, strict=False)]
            if not found:
                return
            yield found

    def _awaited(self, items: AsyncIterable[Any]) -> Iterator[list[Any]]:
        runner = asyncio.Runner()
        try:
            with closing(self._run(runner, items)) as batches:
                yield from batches
        finally:
            _outside_of_loops(runner.close)

    def _run(self, runner: asyncio.Runner, items: Any) -> Any:
        batching = runner.run(self._begun(items))
        try:
            while found := runner.run(self._next(batching)):
                yield found
        finally:
            _outside_of_loops(lambda: runner.run(self._ended(batching, items)))

    async def _begun(self, items: AsyncIterable[Any]) -> Batching:
        return Batching(items, self._declaration.settings.page_rows)

    async def _ended(self, batching: Batching, items: Any) -> None:
        async with aclosing(items):
            await batching.close()

    async def _next(self, batching: Batching) -> list[Any]:
        coming = asyncio.ensure_future(batching.next())
        while not (await asyncio.wait({coming}, timeout=LOOK_SECONDS))[0]:
            if self._is_closed.is_set():
                coming.cancel()
                return []
        return coming.result()

    # -- pages -----------------------------------------------------------------------------

    def _pages(self, after: Any, skip: int) -> Iterator[SourcePage]:
        with closing(self._batches(after)) as batches:  # type: ignore[type-var]
            for batch in batches:
                items = [self._item(each) for each in batch]
                page = self._page(items, after, skip)
                after, skip = (items[-1].after if self._has_place else None), 0
                while page.rows.num_rows > self._declaration.settings.page_rows:
                    first, page = page.cut(self._declaration.settings.page_rows)
                    yield first
                yield page

    def _item(self, given: Any) -> _Item:
        if not self._has_place:
            return _Item(_records(given))
        if not isinstance(given, tuple) or len(given) != 2:
            raise self._fault(
                f"with a parameter {AFTER} it yields pairs (rows, where to go on), not "
                f"{shown_value(given)}"
            )
        try:
            after = json.loads(json.dumps(given[1]))  # as it is after a restart
        except (TypeError, ValueError, RecursionError):
            raise self._fault(
                f"where to go on is any value of JSON, not {shown_value(given[1])}"
            ) from None
        return _Item(_records(given[0]), after)

    def _page(self, items: list[_Item], after: Any, skip: int) -> SourcePage:
        """The rows of items behind a place, of which some rows of the first are known."""
        found = _Found(items, after, skip)
        rows, bad, numbers = self._rows(found)
        self._done += rows.num_rows + len(bad)
        if not self._has_place:
            begun = {"has_begun": True} if self.is_live else None
            return SourcePage(rows, tuple(bad), (lambda _: begun) if begun else None)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(numbers):
                return self._position(items[-1].after, 0)
            return self._position(*found.place(numbers[count - 1] + 1 if count else 0))

        return SourcePage(rows, tuple(bad), position_after)

    def _position(self, after: Any, skip: int) -> dict[str, Any]:
        return {AFTER: after, "skip": skip}

    def _rows(self, found: _Found) -> tuple[pa.Table, list[BadRow], list[int]]:
        """The rows of items, the bad ones, and of each row its number among both."""
        if not self._declaration.skips_bad_rows:
            whole = self._table(found)
            return whole, [], list(range(whole.num_rows))
        where, numbered = self._where(found), list(enumerate(found.rows))
        told = salvaged(
            numbered,
            lambda part: self._read([row for _, row in part], lambda row: where(part[row][0])),
            lambda one, error: BadRow(where(one[0]), str(error), shown_value(one[1]).encode()),
        )
        return told_apart(told, self._empty())

    def _where(self, found: _Found) -> RowPosition:
        """Names a row by its number, or by its number behind a place."""
        name, before = self._declaration.name, self._done
        if not self._has_place:
            return lambda row: f"{name}, row {before + row + 1}"

        def where(row: int) -> str:
            after, skip = found.place(row)
            return f"{name}, row {skip + 1} behind {shown_value(after)}"

        return where

    def _table(self, found: _Found) -> pa.Table:
        if any(isinstance(each.content, list) for each in found.items):
            return self._read(found.rows, self._where(found))
        schema, name = self._declaration.schema, self._declaration.name
        tables = [to_arrow(each.content, schema, name) for each in found.items]
        table = pa.concat_tables(tables).slice(found.skip)
        check_times(table, self._declaration, self._where(found))
        return table

    def _read(self, records: Sequence[Any], where: RowPosition) -> pa.Table:
        table = rows_to_arrow(records, self._declaration.schema, where)
        check_times(table, self._declaration, where)
        return table


@dataclass(frozen=True)
class _Item:
    """What was yielded at once, a list of rows or a frame; and where to go on behind it."""

    content: Any
    after: Any = None

    @property
    def count(self) -> int:
        """How many rows it has."""
        return len(self.content)

    @property
    def rows(self) -> list[Any]:
        """Its rows, one by one."""
        if is_frame(self.content):
            return list(self.content.to_dict("records"))
        if isinstance(self.content, list):
            return self.content
        return python_rows(pa.table(self.content))


@dataclass(frozen=True)
class _Found:
    """Items behind a place, of which some rows of the first are known already."""

    items: list[_Item]
    after: Any
    skip: int

    @cached_property
    def rows(self) -> list[Any]:
        """All that is not known yet, row by row."""
        return [row for each in self.items for row in each.rows][self.skip :]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(each.count for each in self.items))

    def place(self, row: int) -> tuple[Any, int]:
        """Behind which item a row is, and how many of the next one come before it."""
        record = self.skip + row
        item = bisect_right(self._ends, record)
        before = self._ends[item - 1] if item else 0
        return (self.items[item - 1].after if item else self.after), record - before


def _records(given: Any) -> Any:
    """A row as a list of one; several rows, a frame or Arrow data as they are."""
    is_many = isinstance(given, list | pa.RecordBatch | pa.Table) or is_frame(given)
    return given if is_many or hasattr(given, "__arrow_c_stream__") else [given]
