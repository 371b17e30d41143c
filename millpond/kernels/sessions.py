"""SESSION windows: elements of a partition that come less than a gap after one another.

Elements come in the order of time, and each comes again a gap later: the last of a session ends it
then, and nobody has to look for sessions that end. A partition's elements are kept with their times
as places (``ordered``) until their session ends; a step reads those of sessions that end in it, and
where each row tells the end of its session, of those that go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import flat, integers, marked, with_first, with_last
from millpond.kernels.groups import Bools, Ints, encode, first_rows
from millpond.kernels.kernel import Keyed
from millpond.kernels.ordered import (
    LEAST,
    MOST,
    MemberIndex,
    member_schema,
    merged_members,
    numbered,
)
from millpond.kernels.timeline import order_of
from millpond.schema import FOREVER


@dataclass(frozen=True)
class SessionKernel(Keyed):
    """Elements of rows ``r0…`` with ``k0…`` (the partition) in, which last a gap; the rows with the
    bounds of their sessions out.

    ``told``: ``running``, the bounds as they are at each instant; ``own``, the begin of the session
    and the end that the element alone would give it; ``final``, rows of sessions that are over, for
    the instant of their end. ``unit``: the microseconds of a tick, if bounds are TIMESTAMPs.
    """

    types: tuple[pa.DataType, ...]
    gap: int
    told: str
    unit: int | None

    @property
    def rows(self) -> list[str]:
        """The names of the columns of the rows."""
        return [f"r{i}" for i in range(len(self.types))]

    @property
    def state_schema(self) -> pa.Schema:
        """One row a partition with a session: how many elements it has, the partition's number,
        and the times of the first and the last of them."""
        names = ("_n", "_g", "_first", "_last")
        return pa.schema([*self.key_fields, *(pa.field(name, pa.int64()) for name in names)])

    @property
    def member_schema(self) -> pa.Schema:
        """The elements of sessions that are not over."""
        return member_schema([pa.field(n, t) for n, t in zip(self.rows, self.types, strict=True)])

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        bound = pa.int64() if self.unit is None else pa.timestamp("us")
        return element_schema((*self.types, bound, bound))

    def run_with_members(
        self,
        events: pa.Table,
        state: pa.Table,
        members: MemberIndex,
        after: int,
        until: int,
        fresh: int,
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The elements of the step, the sessions of the partitions in which something came or
        ended, and the elements that come to be kept or go."""
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        groups = int(codes.max(initial=-1)) + 1
        kept = _Kept.of(state, codes[events.num_rows :], groups, fresh)
        came = marked(integers(events["_w"]) > 0)
        arrivals = events.take(pa.array(came))
        sessions = _Sessions.of(
            kept, codes[: events.num_rows][came], integers(arrivals["_ts"]), self.gap, until
        )
        rows = self._rows(members, kept, sessions, arrivals)
        changed = marked(sessions.is_changed(groups))
        examples = pa.array(first_rows(codes)[changed])
        columns = [flat(keys[name].take(examples)) for name in self.keys]
        numbers = self._numbers(kept, sessions, rows)[:, changed]
        new_state = [*columns, *map(pa.array, numbers)]
        return (
            self._output(sessions, rows),
            pa.Table.from_arrays(new_state, schema=self.state_schema),
            self._moved(kept, sessions, rows),
        )

    def _rows(
        self, members: MemberIndex, kept: _Kept, sessions: _Sessions, arrivals: pa.Table
    ) -> _Rows:
        """The kept elements that matter in the step, and those that come."""
        old = sessions.of_group[kept.open]
        wanted = sessions.is_over[old]
        if self.told == "running":
            wanted = wanted | (sessions.arrivals[old] > 0)
        number = kept.number[kept.open[wanted]]
        ends = np.full(len(number), LEAST), np.full(len(number), MOST)
        found = members.between(number, *ends)
        at = np.argsort(number)
        of = old[wanted][at[np.searchsorted(number[at], integers(found["_g"]))]]
        new = arrivals.select(self.rows)
        return _Rows(
            pa.concat_tables([found.select(self.rows).cast(new.schema), new]).combine_chunks(),
            np.concatenate([of, sessions.of_arrival]),
            np.concatenate([integers(found["_v"]), integers(arrivals["_ts"])]),
            np.concatenate([integers(found["_n"]), integers(arrivals["_w"])]),
            found.num_rows,
        )

    def _numbers(self, kept: _Kept, sessions: _Sessions, rows: _Rows) -> Ints:
        """Count, number, first and last time of each partition's last session; 0 if it is over."""
        found = np.zeros((4, len(kept.number)), dtype=np.int64)
        found[1] = kept.number
        came = np.bincount(
            sessions.of_arrival, rows.weight[rows.kept :], len(sessions.first)
        ).astype(np.int64)
        came[sessions.of_group[kept.open]] += kept.count[kept.open]
        last = marked(sessions.is_last)
        open_ = last[~sessions.is_over[last]]
        code = sessions.code[open_]
        found[0, code], found[2, code] = came[open_], sessions.first[open_]
        found[3, code] = sessions.last[open_]
        return found

    def _moved(self, kept: _Kept, sessions: _Sessions, rows: _Rows) -> pa.Table:
        """What comes and stays beyond the step, and what was kept of sessions that end."""
        is_old = np.arange(len(rows.session)) < rows.kept
        over = sessions.is_over[rows.session]
        moved = marked(is_old == over)
        sign = np.where(is_old[moved], -1, 1)
        number = kept.number[sessions.code[rows.session[moved]]]
        arrays = map(pa.array, (number, rows.time[moved], sign * rows.weight[moved]))
        taken = rows.table.take(pa.array(moved)).cast(pa.schema(list(self.member_schema)[3:]))
        table = pa.Table.from_arrays([*arrays, *taken.columns], schema=self.member_schema)
        return merged_members([table])

    # -- what is put out -------------------------------------------------------------------

    def _output(self, sessions: _Sessions, rows: _Rows) -> pa.Table:
        if self.told == "final":
            return self._elements(rows, sessions, _at_ends(sessions, rows))
        if self.told == "own":
            return self._elements(rows, sessions, _once(sessions, rows, self.gap))
        return self._elements(rows, sessions, _as_they_go_on(sessions, rows, self.gap))

    def _elements(self, rows: _Rows, sessions: _Sessions, told: _Told) -> pa.Table:
        first = sessions.first[rows.session[told.row]]
        data = rows.table.take(pa.array(told.row)).columns
        times = map(pa.array, (told.start, told.end, told.weight))
        arrays = [*times, *data, self._bound(first), self._bound(told.bound)]
        table = pa.Table.from_arrays(arrays, names=self.output_schema.names)
        return table.cast(self.output_schema)

    def _bound(self, ticks: Ints) -> pa.Array:
        if self.unit is None:
            return pa.array(ticks)
        return pa.array(ticks * self.unit).cast(pa.timestamp("us"))


@dataclass(frozen=True)
class _Kept:
    """The sessions that were not over before the step, one a partition at most."""

    number: Ints
    """Of each partition."""
    count: Ints
    first: Ints
    last: Ints
    open: Ints
    """Which partitions have one."""

    @staticmethod
    def of(state: pa.Table, codes: Ints, groups: int, fresh: int) -> _Kept:
        count, number = numbered(state, codes, groups, fresh)
        first, last = np.zeros((2, groups), dtype=np.int64)
        first[codes], last[codes] = integers(state["_first"]), integers(state["_last"])
        return _Kept(number, count, first, last, marked(count))


@dataclass(frozen=True)
class _Sessions:
    """The sessions of a step, in order of partition and time."""

    code: Ints
    first: Ints
    last: Ints
    end: Ints
    is_over: Bools
    """Whether it ends in the step."""
    is_last: Bools
    """Whether it is the last of its partition."""
    arrivals: Ints
    """How many elements came to it."""
    of_arrival: Ints
    """The session of each element that came."""
    before: Ints
    """The time of its last element before the step; anything if it had none."""
    of_group: Ints
    """The first session of each partition: of those that had one, this one."""

    @staticmethod
    def of(kept: _Kept, code: Ints, time: Ints, gap: int, until: int) -> _Sessions:
        old = len(kept.open)
        codes = np.concatenate([kept.open, code])
        times = np.concatenate([kept.last[kept.open], time])
        order = order_of(codes, times)
        codes, times = codes[order], times[order]
        differs = codes[1:] != codes[:-1]
        begins = with_first(True, differs | (times[1:] - times[:-1] >= gap))[: len(codes)]
        session = np.cumsum(begins) - 1
        heads = marked(begins)
        tails = with_last(heads[1:], len(codes))[: len(heads)] - 1
        of_item = np.empty(len(codes), dtype=np.int64)
        of_item[order] = session
        own, first, last, before = codes[heads], times[heads], times[tails], times[heads]
        first = first.copy()
        first[of_item[:old]] = kept.first[kept.open]
        of_group = np.searchsorted(own, np.arange(len(kept.number)))
        is_last = with_last(own[1:] != own[:-1], True)[: len(own)]
        counts = np.bincount(of_item[old:], minlength=len(heads))
        end = last + gap
        return _Sessions(
            own, first, last, end, end <= until, is_last, counts, of_item[old:], before, of_group
        )

    def is_changed(self, groups: int) -> Bools:
        """Of which partitions a session is another one than before."""
        changed = np.zeros(groups, dtype=np.bool_)
        changed[self.code[(self.arrivals > 0) | self.is_over]] = True
        return changed


@dataclass(frozen=True)
class _Rows:
    """Elements of a step's sessions: those that were kept, then those that come."""

    table: pa.Table
    session: Ints
    time: Ints
    weight: Ints
    kept: int
    """How many were kept."""


@dataclass(frozen=True)
class _Told:
    """Which elements are put out, of which rows, and with which end of a session."""

    row: Ints
    start: Ints
    end: Ints
    weight: Ints
    bound: Ints


def _at_ends(sessions: _Sessions, rows: _Rows) -> _Told:
    """The rows of sessions that end, at that instant."""
    row = marked(sessions.is_over[rows.session])
    end = sessions.end[rows.session[row]]
    return _Told(row, end, end + 1, rows.weight[row], end)


def _once(sessions: _Sessions, rows: _Rows, gap: int) -> _Told:
    """Rows when they come, until their session ends; a minus for those that came before."""
    row = np.arange(len(rows.session))
    is_old = row < rows.kept
    over = np.where(sessions.is_over, sessions.end, FOREVER)[rows.session]
    return _Told(
        row,
        np.where(is_old, over, rows.time),
        np.where(is_old, FOREVER, over),
        np.where(is_old, -rows.weight, rows.weight),
        rows.time + gap,
    )


def _as_they_go_on(sessions: _Sessions, rows: _Rows, gap: int) -> _Told:
    """Rows from each instant at which something comes to their session until the next; a minus for
    what was told before the step."""
    new = np.arange(rows.kept, len(rows.session))
    order = new[order_of(rows.session[new], rows.time[new])]
    session, time = rows.session[order], rows.time[order]
    differs = (session[1:] != session[:-1]) | (time[1:] != time[:-1])
    is_new = with_first(True, differs)[: len(order)]
    moment = np.empty(len(rows.session), dtype=np.int64)
    moment[order] = np.cumsum(is_new) - 1
    own, times = session[is_new], time[is_new]
    behind = np.searchsorted(own, rows.session, "right")
    moment[: rows.kept] = np.searchsorted(own, rows.session[: rows.kept])
    counts = behind - moment
    row = np.repeat(np.arange(len(rows.session)), counts)
    at = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + moment[row]
    over = np.where(sessions.is_over, sessions.end, FOREVER)[own]
    goes_on = with_last(own[1:] == own[:-1], False)[: len(own)]
    until = np.where(goes_on, with_last(times[1:], 0)[: len(own)], over)
    starts = np.where(counts > 0, with_last(times, 0)[moment], sessions.end[rows.session])
    old = np.arange(rows.kept)
    before = sessions.before[rows.session[old]] + gap
    return _Told(
        np.concatenate([old, row]),
        np.concatenate([starts[old], times[at]]),
        np.concatenate([np.full(rows.kept, FOREVER), until[at]]),
        np.concatenate([-rows.weight[old], rows.weight[row]]),
        np.concatenate([before, times[at] + gap]),
    )
