"""Random histories of relations and streams, cut into steps and fed to kernels.

A row lives from its start until before its end. What a kernel puts out is compared by its meaning:
how often each row is there at each instant.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from millpond.kernels.kernel import fresh_number
from millpond.kernels.ordered import MemberIndex, merged_members
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.synopses import GroupSynopsis

LAST = 24
INSTANTS = (BEGINNING, *range(LAST + 3))


@dataclass(frozen=True)
class Life:
    """One copy of a row; ``is_open``: its end is only told when it comes, by a minus."""

    row: tuple
    start: int
    end: int
    is_open: bool = False
    side: int = 0

    def elements(self):
        """(start, end, weight) as an operator would be given them."""
        if self.is_open and self.end < FOREVER:
            return [(self.start, FOREVER, 1), (self.end, FOREVER, -1)]
        return [(self.start, self.end, 1)]


def lives(rows, may_open, sides=1, from_beginning=False):
    """A strategy of histories: lists of lives."""
    starts = st.integers(0, LAST)
    if from_beginning:
        starts = st.just(BEGINNING) | starts
    ends = st.integers(1, 8) | st.none()

    def life(row, start, length, is_open, side):
        end = FOREVER if length is None else max(start, -1) + length
        return Life(row, start, end, is_open and may_open, side)

    return st.lists(
        st.builds(life, rows, starts, ends, st.booleans(), st.integers(0, sides - 1)), max_size=25
    )


def cuts():
    """A strategy of step ends; the last step reaches beyond all instants."""
    return st.lists(st.integers(-1, LAST + 2), max_size=6).map(
        lambda times: [*sorted(set(times)), FOREVER - 1]
    )


def run(kernel, history, event_schema, columns, until):
    """Feeds a history in steps; everything the kernel put out."""
    return fed(kernel, event_schema, lambda *step: step_events(history, columns, *step), until)[0]


def fed(kernel, event_schema, events_of, until):
    """Feeds what ``events_of(after, end)`` answers in steps; all the output, and the synopsis."""
    synopsis = GroupSynopsis(kernel.state_schema, kernel.keys)
    has_members = getattr(kernel, "member_schema", None) is not None
    members = MemberIndex(kernel.member_schema) if has_members else None
    outputs, after, version = [], BEGINNING - 1, 0
    for end in until:
        events = pa.Table.from_pylist(events_of(after, end), event_schema)
        state = synopsis.query(events) if kernel.keys else synopsis.all()
        if has_members:
            fresh = fresh_number(version)
            output, state, changes = kernel.run_with_members(
                events, state, members, after, end, fresh
            )
            assert changes.schema == kernel.member_schema
            version += 1
            members = with_changes(members, changes, version)
        else:
            output, state = kernel.run(events, state, after, end)
        assert output.schema == kernel.output_schema
        assert state.schema == kernel.state_schema
        check_times(output, after, end)
        synopsis.insert(state)
        outputs.append(output)
        after = end
    synopsis.members = members
    return pa.concat_tables(outputs), synopsis


def with_changes(members, changes, version):
    """The members after a step; the runs of every third one are merged."""
    if version % 3:
        return members.succeeded(changes, version, version)
    return members.succeeded(merged_members([members.all(), changes]), 0, version)


def step_events(history, columns, after, until):
    """The elements that start within a step, and a minus for each older one that ends within it."""
    found = []
    for life in history:
        for start, end, weight in life.elements():
            named = dict(zip(columns, life.row, strict=True)) | {"_side": life.side}
            if after < start <= until:
                found.append(named | {"_ts": start, "_te": end, "_w": weight})
            elif start <= after < end <= until:
                found.append(named | {"_ts": end, "_te": FOREVER, "_w": -weight})
    return found


def check_times(output, after, until):
    """What a step puts out starts within it and does not end before it starts."""
    for ts, te in zip(output["_ts"].to_pylist(), output["_te"].to_pylist(), strict=True):
        assert after < ts <= until
        assert ts < te


def at(history, instant, side=0):
    """The rows there at an instant, by definition."""
    return [x.row for x in history if x.side == side and x.start <= instant < x.end]


def meaning(output, instants=INSTANTS):
    """{instant: how often each row is there} of relation elements."""
    names = [name for name in output.column_names if not name.startswith("_")]
    elements = [
        (record["_ts"], record["_te"], record["_w"], plain(tuple(record[n] for n in names)))
        for record in output.to_pylist()
    ]
    return {instant: content(elements, instant) for instant in instants}


def content(elements, instant):
    """How often each row is there at one instant."""
    found = Counter()
    for ts, te, weight, row in elements:
        if ts <= instant < te:
            found[row] += weight
    return {row: count for row, count in found.items() if count}


def plain(row):
    """The row with NaN made equal to itself."""
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row)
