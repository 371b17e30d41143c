"""A drop point: what comes to queries that tolerate a sample, instead of the tuples of a stream.

It stands where tuples come in: what it drops costs nothing more, neither queues nor windows. A
tuple stays iff a hash of seed, stream and sequence number is below the rate, so what is kept does
not depend on pages, and what waits can be thinned to a lower rate as if it had been kept at that.
For dropped tuples of one time and key come one or two rows that say how many there are, and
the least and the largest values. See docs/precision.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.approximation.sampling.draws import Draws, draws_of_keys, draws_of_rows, is_below
from millpond.approximation.shedding import LEAST_PERCENT
from millpond.catalog import Catalog, QueryEntry, StreamEntry, Tolerance
from millpond.kernels.columns import integers
from millpond.kernels.groups import Bools, Floats, Ints
from millpond.settings import Settings

LARGEST = 2.0**53
"""A tuple with a value of this size, a NULL or a NaN where values are ranged is never dropped: of
those that are, all values are known to be numbers."""
ROUNDING = 1e-9
"""Rates that differ by less are one: 1 / (1 / rate) is not quite the rate."""


@dataclass(frozen=True)
class DropPoint:
    """Keeps tuples of a stream at a rate, and what queries need to know of the others."""

    stream: str
    seed: int
    rate: float
    keys: tuple[int, ...]
    ranged: tuple[int, ...]
    grain_ticks: int
    drawn_by: tuple[int, ...] = ()
    shed_by: tuple[int, ...] = ()

    @staticmethod
    def of(tolerance: Tolerance, seed: int, rate: float) -> DropPoint:
        """The drop point for queries that need the same."""
        needs = tolerance.keys, tolerance.ranged, tolerance.grain_ticks
        drawn = tolerance.drawn_by, tolerance.shed_by
        return DropPoint(tolerance.stream.lower(), seed, rate, *needs, *drawn)

    def kept(self, page: pa.Table) -> pa.Table:
        """What comes of a page of the stream."""
        nothing, all_ = np.zeros(page.num_rows, np.int64), np.ones(page.num_rows)
        return self.thinned(_with_columns(page, nothing, all_))

    def thinned(self, kept: pa.Table) -> pa.Table:
        """What would have been kept at this rate, of what was kept at higher ones.

        Samples are nested, so it is the same as if that much had been kept from the start.
        """
        if self.rate >= 1:
            return kept
        weights = np.asarray(kept.column(kept.num_columns - 1))
        is_rest = integers(kept.column(kept.num_columns - 2)) > 0
        rates = self._rates(kept.num_rows, [kept[f"c{each}"] for each in self.shed_by])
        can_go = (weights * rates < 1 - ROUNDING) & self._can_go(kept)
        goes = can_go & (is_rest | ~self._is_drawn(kept, rates))
        weighed = pa.array(np.where(can_go, 1 / rates, weights))
        stays = kept.set_column(kept.num_columns - 1, kept.schema.names[-1], weighed)
        if not goes.any():
            return stays
        stays = stays.filter(pa.array(~goes))
        whole = pa.concat_tables([stays, *self._rest(kept.filter(pa.array(goes)), kept.schema)])
        order = np.lexsort((integers(whole["_seq"]), integers(whole["_ts"])))
        return whole.take(pa.array(order))

    def parted(self, kept: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
        """What was kept of a page, where the window is shortened: what stays for all of it, as
        nothing is known of it but itself; tuples that stay for the shortest; and what is known of
        these afterwards."""
        is_tuple = integers(kept.column(kept.num_columns - 2)) == 0
        goes = is_tuple & self._can_go(kept)
        if not goes.any():
            return kept, kept.slice(0, 0), kept.slice(0, 0)
        young = kept.filter(pa.array(goes))
        nothing = replace(self, rate=0.0, shed_by=())
        cut = pa.concat_tables(nothing._rest(young, kept.schema))
        order = np.lexsort((integers(cut["_seq"]), integers(cut["_ts"])))
        return kept.filter(pa.array(~goes)), young, cut.take(pa.array(order))

    def _rates(self, rows: int, importance: list[pa.ChunkedArray]) -> Floats:
        """The rate of each row: p^(1 - v) for an importance v from 0 to 1."""
        if not importance:
            return np.full(rows, self.rate)
        values = np.asarray(importance[0].cast(pa.float64(), safe=False).fill_null(0.0))
        return np.asarray(self.rate ** (1 - np.clip(np.nan_to_num(values), 0.0, 1.0)))

    def _is_drawn(self, table: pa.Table, rates: Floats) -> Bools:
        """Whether the draw of each tuple is below its rate."""
        if not self.shed_by:
            return is_below(self._draws(table), self.rate)
        drawn: Bools = self._draws(table) < np.minimum(rates, 1.0) * 2.0**64
        return drawn

    def _draws(self, table: pa.Table) -> Draws:
        """The draw of each tuple: its own, or that of the value by which it is drawn."""
        for position in self.drawn_by:
            return draws_of_values(self.seed, table[f"c{position}"].combine_chunks())
        return draws_of_rows(self.seed, self.stream, integers(table["_seq"]))

    def _can_go(self, page: pa.Table) -> Bools:
        found = np.ones(page.num_rows, np.bool_)
        for position in self.ranged:
            column = page[f"c{position}"]
            found &= np.asarray(column.is_valid())
            if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
                values = column.cast(pa.float64(), safe=False).fill_null(0.0)
                found &= np.abs(np.asarray(values)) < LARGEST  # which no NaN is
        return found

    def _rest(self, gone: pa.Table, schema: pa.Schema) -> Iterable[pa.Table]:
        """The rows that stand for dropped tuples, some of which others have stood for: of each
        group the least values and, if there are several, the largest ones, which stand for one
        tuple."""
        times = integers(gone["_ts"])
        first, last = times // self.grain_ticks, -(-times // self.grain_ticks)
        stood_for = np.maximum(integers(gone.column(gone.num_columns - 2)), 1)
        keys = [f"c{key}" for key in self.keys]
        table = gone
        for name, column in (("first", first), ("last", last), ("count", stood_for)):
            table = table.append_column(name, pa.array(column))
        wanted = [("_ts", "max"), ("_seq", "min"), ("_seq", "max"), ("count", "sum")]
        wanted += [(f"c{each}", end) for each in self.ranged for end in ("min", "max")]
        groups = table.group_by(["first", "last", *keys], use_threads=False).aggregate(wanted)
        counts = integers(groups["count_sum"])
        yield self._rows(groups, "min", np.maximum(counts - 1, 1), schema)
        several = groups.filter(pa.array(counts > 1))
        yield self._rows(several, "max", np.ones(several.num_rows, np.int64), schema)

    def _rows(self, groups: pa.Table, end: str, counts: Ints, schema: pa.Schema) -> pa.Table:
        known: Mapping[str, pa.ChunkedArray] = {
            "_ts": groups["_ts_max"],
            "_seq": groups[f"_seq_{end}"],
            **{f"c{key}": groups[f"c{key}"] for key in self.keys},
            **{f"c{each}": groups[f"c{each}_{end}"] for each in self.ranged},
        }
        nothing = pa.nulls(groups.num_rows)
        names = schema.names[:-2]
        columns = [known.get(name, nothing) for name in names]
        with np.errstate(divide="ignore"):  # what is kept at no rate weighs as much as there is
            weights = 1 / self._rates(groups.num_rows, [known[f"c{each}"] for each in self.shed_by])
        arrays = [*columns, pa.array(counts), pa.array(weights)]
        typed = [_cast(each, field.type) for each, field in zip(arrays, schema, strict=True)]
        return pa.Table.from_arrays(typed, schema=schema)


def draws_of_values(seed: int, column: pa.Array) -> Draws:
    """The draws of the values of a column: equal ones have one draw, and NULLs have one."""
    values = pc.dictionary_encode(column, null_encoding="encode")
    places, found = integers(pa.chunked_array([values.indices])), values.dictionary
    if pa.types.is_string(found.type) or pa.types.is_decimal(found.type):
        keys = np.array(["" if each is None else f"x{each}" for each in found.to_pylist()], "U")
        return draws_of_keys(seed, keys)[places]
    if not pa.types.is_floating(found.type):
        found = found.cast(pa.int32()) if pa.types.is_date32(found.type) else found
        found = found.cast(pa.int64())
    return draws_of_keys(seed, np.asarray(found.fill_null(0)))[places]


def _cast(column: pa.ChunkedArray | pa.Array, type_: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return column if column.type == type_ else pc.cast(column, type_)


def _with_columns(page: pa.Table, dropped: Ints, weights: np.ndarray) -> pa.Table:
    names = [f"c{page.num_columns - 2}", f"c{page.num_columns - 1}"]
    table = page.append_column(names[0], pa.array(dropped))
    return table.append_column(names[1], pa.array(weights))


def dropped_in(kept: pa.Table) -> tuple[int, int | None]:
    """How many tuples were dropped of a page, by what was kept, and the largest time of one."""
    counts = integers(kept.column(kept.num_columns - 2))
    times = integers(kept["_ts"])[counts > 0]
    return int(counts.sum()), int(times.max()) if len(times) else None


def tolerating(catalog: Catalog, stream: str) -> list[QueryEntry]:
    """The queries over a stream that tolerate a sample of it."""
    entries: Iterable[QueryEntry] = catalog.of_kind(QueryEntry)
    name = stream.lower()
    return [each for each in entries if each.tolerates and each.tolerates.stream.lower() == name]


def percent_of(catalog: Catalog, entry: StreamEntry, settings: Settings) -> float:
    """How many tuples of a stream are kept: none of its queries gets less than it tolerates, and
    as long as overload means to wait all are kept. What the engine has decided counts while a
    latency is set, and some are kept whatever was decided."""
    if settings.overload == "wait":
        return 100.0
    active = [each.tolerates for each in tolerating(catalog, entry.name) if each.active]
    least = max((each.needed_percent for each in active if each), default=100.0)
    is_shed = entry.shed_percent is not None and settings.latency_seconds > 0
    percent = entry.shed_percent if is_shed else entry.kept_percent
    return max(percent or LEAST_PERCENT, least)
