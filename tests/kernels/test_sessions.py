"""Sessions hold what comes less than a gap after one another at every instant, however cut."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.ordered import merged_members
from millpond.kernels.sessions import SessionKernel
from millpond.schema import FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, LAST, cuts, fed, meaning

TYPES = (pa.int32(), pa.string())
ROWS = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", "b", None]))
ELEMENTS = st.lists(st.tuples(st.integers(0, LAST), ROWS), max_size=30)
GAPS = st.integers(1, 6)
PARTITIONS = st.sampled_from([(), (0,), (1, 0)])
EPOCH = datetime(1970, 1, 1)


def sessions(elements, gap, partition):
    """(begin, end, elements) of all sessions, by merging the intervals that overlap."""
    found = {}
    for ts, row in elements:
        own = found.setdefault(tuple(row[i] for i in partition), [])
        joined = [each for each in own if each[0] < ts + gap and ts < each[1]]
        begin, end = min([ts, *(e[0] for e in joined)]), max([ts + gap, *(e[1] for e in joined)])
        merged = (begin, end, [(ts, row), *(one for each in joined for one in each[2])])
        own[:] = [each for each in own if each not in joined] + [merged]
    return [each for own in found.values() for each in own]


def told(elements, gap, partition, how, instant):
    """What is told of the sessions at an instant, of the elements that have come by then."""
    come = [each for each in elements if each[0] <= instant]
    found = Counter()
    for begin, end, inside in sessions(come, gap, partition):
        if end == instant if how == "final" else end > instant:
            for ts, row in inside:
                found[(*row, begin, ts + gap if how == "own" else end)] += 1
    return dict(found)


def run(kernel, elements, gap, partition, until):
    """Feeds elements in steps, each when it comes and again when a gap has passed."""
    schema = pa.schema(
        [
            *(pa.field(name, pa.int64()) for name in ("_ts", "_te", "_w")),
            *kernel.key_fields,
            *(pa.field(f"r{i}", type_) for i, type_ in enumerate(TYPES)),
        ]
    )

    def events(after, end):
        for (ts, row), weight in Counter(elements).items():
            data = {f"r{i}": value for i, value in enumerate(row)}
            data |= {f"k{i}": row[p] for i, p in enumerate(partition)}
            if after < ts <= end:
                yield data | {"_ts": ts, "_te": ts + gap, "_w": weight}
            elif ts <= after < ts + gap <= end:
                yield data | {"_ts": ts + gap, "_te": FOREVER, "_w": -weight}

    return fed(kernel, schema, lambda *step: list(events(*step)), until)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["running", "own", "final"])
@examples(60)
@given(ELEMENTS, GAPS, PARTITIONS, cuts())
def test_sessions_are_told_at_every_instant(how, elements, gap, partition, until):
    kernel = SessionKernel(tuple(TYPES[p] for p in partition), TYPES, gap, how, None)
    output, synopsis = run(kernel, elements, gap, partition, until)
    found = meaning(output)
    for instant in INSTANTS:
        assert found[instant] == told(elements, gap, partition, how, instant)
    assert (
        synopsis.members.all().num_rows == 0
        or not merged_members([synopsis.members.all()]).num_rows
    )


def test_bounds_are_timestamps_where_a_tick_has_a_length():
    kernel = SessionKernel((), TYPES, 5, "final", 1_000_000)
    output, _ = run(kernel, [(3, (1, "a"))], 5, (), [FOREVER - 1])
    assert output["_ts"].to_pylist() == [8]
    bounds = [output[name].to_pylist()[0] for name in ("c2", "c3")]
    assert bounds == [EPOCH + timedelta(seconds=3), EPOCH + timedelta(seconds=8)]


def test_a_step_touches_its_own_sessions_alone():
    """However many are open: state and elements of others are neither read nor written."""
    kernel = SessionKernel((pa.int32(),), TYPES, 1_000, "running", None)
    many = [(n % 10, (n, "a")) for n in range(500)] + [(20, (7, "b"))]
    output, synopsis = run(kernel, many, 1_000, (0,), [10, 30])
    assert output.num_rows == 500 + 3
    assert len(synopsis) == 500
    assert merged_members([synopsis.members.all()]).num_rows == 501
