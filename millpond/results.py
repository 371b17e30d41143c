"""What queries have put out: kept, handed to subscribers, written to sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.connectors import Sink, arrow_schema
from millpond.connectors.python_values import moment
from millpond.connectors.sinks import unique_names
from millpond.kernels.columns import integers
from millpond.kernels.counts import net_of
from millpond.kernels.groups import encode
from millpond.kernels.timeline import Changes
from millpond.schema import BEGINNING, Schema

Callback = Callable[[pa.Table], None]


@dataclass
class ResultLog:
    """The output of one query: ts (in ticks, NULL at the beginning), weight, then its columns."""

    entry: QueryEntry
    tick_microseconds: int
    in_timestamps: bool
    sink: Sink | None = None
    is_kept: bool = True
    complete_until: int = BEGINNING - 1
    rows: int = 0
    subscribers: list[Callback] = field(default_factory=list)
    _pages: list[pa.Table] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        """The query's own columns."""
        schema: Schema = self.entry.plan.schema
        return schema

    def add(self, page: pa.Table, until: int) -> None:
        """Takes what one step put out: complete up to a time."""
        self.complete_until = until
        if page.num_rows == 0:
            return
        self.rows += page.num_rows
        if self.is_kept:
            self._pages.append(page)
        if self.sink is not None or self.subscribers:
            table = self._named(summed(page))
            for receive in [*self.subscribers, *([self.sink.write] if self.sink else [])]:
                receive(table)

    def table(self) -> pa.Table:
        """Everything kept so far, in order of time; names that repeat get a number."""
        columns = [pa.field("_ts", pa.int64()), pa.field("_w", pa.int64())]
        types = [f.type for f in arrow_schema(self.schema)]
        schema = pa.schema(columns + [pa.field(f"c{i}", t) for i, t in enumerate(types)])
        whole = pa.concat_tables(self._pages) if self._pages else schema.empty_table()
        named = self._named(summed(whole))
        return named.rename_columns(unique_names(named.column_names))

    def _named(self, page: pa.Table) -> pa.Table:
        times = integers(page["_ts"])
        ts = pa.array(times, mask=times == BEGINNING)
        columns = [ts, page["_w"], *page.columns[2:]]
        return pa.Table.from_arrays(columns, names=["ts", "weight", *self.schema.names])

    def format_time(self, ts: int | None) -> int | str | None:
        """A time as people read it: the number of ticks, or a timestamp where inputs have those."""
        if ts is None or not self.in_timestamps:
            return ts
        return moment(ts, self.tick_microseconds)

    def close(self) -> None:
        """Closes the sink."""
        if self.sink is not None:
            self.sink.close()


def summed(page: pa.Table) -> pa.Table:
    """Equal rows of one instant in one, in order of time."""
    columns = page.column_names[2:]
    codes = encode([page[name] for name in columns], page.num_rows)
    rows = np.arange(page.num_rows)
    changes = Changes.ordered(rows, codes, integers(page["_ts"]), integers(page["_w"]))
    return net_of(changes, page, columns)
