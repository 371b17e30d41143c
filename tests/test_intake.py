"""What comes in gets its time and place; what comes too late is kept aside and counted."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.connectors import arrow_schema
from millpond.connectors.admission import stream_page_schema
from millpond.errors import InputError
from millpond.intake.epochs import Epochs
from millpond.intake.intake import StreamIntake
from millpond.intake.transitions import PageCame, StreamCame
from millpond.schema import BEGINNING
from millpond.storage.queues import Queue
from millpond.storage.store import Store
from tests import reference


@pytest.fixture
def store():
    store = Store()
    yield store
    store.close()


def intake(store, columns="t BIGINT, a INT", by=" TIMESTAMP BY t", delay=0, tick=1):
    """A stream with its queue, without an engine."""
    with Engine() as engine:
        late = f" DELAY {delay}" if delay else ""
        engine.execute(f"CREATE STREAM S ({columns}){by}{late}")
        entry = engine.catalog.get("S")
    return StreamIntake(
        entry, Queue("stream:s", stream_page_schema(entry.schema), store, True), tick
    )


def accept(stream, *rows):
    """Pushes rows as one table."""
    schema = arrow_schema(stream.entry.schema)
    told = [dict(zip(schema.names, row, strict=True)) for row in rows]
    admitted = stream.admit(pa.Table.from_pylist(told, schema))
    page, late = stream.page_of(admitted), stream.late_page_of(admitted)
    came = admitted.largest, admitted.arrived, stream.late_count + (late.rows if late else 0)
    inputs = SimpleNamespace(
        queues={"stream:s": stream.queue}, streams={"s": stream}, epochs=Epochs(dict)
    )
    if page is not None:
        PageCame("stream:s", page).apply(inputs)
    StreamCame("s", *came, admitted.heartbeat, late).apply(inputs)


def stored(stream):
    """(time, place, row) of everything in the queue."""
    tables = [page.table for page in stream.queue.pages]
    return [
        (r.pop("_ts"), r.pop("_seq"), tuple(r.values()))
        for table in tables
        for r in table.to_pylist()
    ]


def test_tuples_get_their_time_and_their_place(store):
    stream = intake(store)
    accept(stream, (3, 10), (3, 20))
    accept(stream, (5, 30))
    assert stored(stream) == [(3, 0, (3, 10)), (3, 1, (3, 20)), (5, 2, (5, 30))]
    assert stream.arrived == 3


def test_the_promise_follows_the_largest_time_by_the_delay(store):
    stream = intake(store, delay=3)
    assert stream.queue.heartbeat == BEGINNING - 1
    accept(stream, (10, 1), (8, 2))
    assert stream.queue.heartbeat == 6
    accept(stream, (7, 3))
    assert stream.late_count == 0
    assert stream.queue.heartbeat == 6


def test_pages_are_in_order_of_time_and_arrival(store):
    stream = intake(store, delay=5)
    accept(stream, (4, 1), (2, 2), (4, 3), (2, 4))
    assert stored(stream) == [(2, 1, (2, 2)), (2, 3, (2, 4)), (4, 0, (4, 1)), (4, 2, (4, 3))]


ARRIVALS = st.lists(
    st.tuples(st.sampled_from(["tuple"] * 5 + ["advance"]), st.integers(0, 20)), max_size=25
)


@given(ARRIVALS, st.integers(0, 4), st.lists(st.integers(0, 25), max_size=4))
def test_lateness_is_as_defined_however_tuples_are_grouped(arrivals, delay, cuts):
    events = [(kind, ts, *((ts, n),) * (kind == "tuple")) for n, (kind, ts) in enumerate(arrivals)]
    elements, late = reference.admit(events, delay)
    store = Store()
    try:
        stream, waiting = intake(store, delay=delay), []
        for number, (kind, ts, *row) in enumerate(events):
            if kind == "advance" or number in cuts:
                accept(stream, *waiting)
                waiting = []
            if kind == "advance":
                stream.queue.advance(ts)
            else:
                waiting += row
        accept(stream, *waiting)
        assert [tuple(r.values()) for r in stream.late.to_pylist()] == [row for _, row in late]
        assert stream.late_count == len(late)
        found = [row for _, _, row in sorted(stored(stream), key=lambda e: e[:2])]
        assert found == [e[-1] for e in sorted(elements, key=lambda e: e[:2])]
    finally:
        store.close()


def test_a_null_time_is_refused_with_its_row(store):
    stream = intake(store)
    with pytest.raises(InputError, match=r"stream S, row 2: column t is NULL"):
        accept(stream, (1, 1), (None, 2))


def test_a_time_beyond_the_domain_is_refused(store):
    with pytest.raises(InputError, match="out of range"):
        accept(intake(store), (2**62, 1))


def test_timestamps_become_ticks(store):
    stream = intake(store, "at TIMESTAMP", " TIMESTAMP BY at", tick=1_000_000)
    accept(stream, (dt.datetime(1970, 1, 1, 0, 0, 7, 999_999),))
    accept(stream, (dt.datetime(1970, 1, 1, 0, 1),))
    assert [ts for ts, _, _ in stored(stream)] == [7, 60]


def test_without_a_time_column_arrival_is_the_time(store):
    stream = intake(store, "a INT", "")
    before = stream.now_ticks()
    accept(stream, (1,), (2,))
    accept(stream, (3,))
    times = [ts for ts, _, _ in stored(stream)]
    assert before <= times[0] == times[1] <= times[2] <= stream.now_ticks()
    stream.queue.advance(stream.now_ticks() + 10**9)
    accept(stream, (4,))
    assert stored(stream)[-1][0] == stream.queue.heartbeat + 1
    assert stream.late_count == 0


# Relations.


@pytest.fixture
def relation():
    with Engine() as engine:
        engine.execute("CREATE RELATION R (k INT, n STRING) WITH (changes = true)")
        yield engine


def test_a_row_that_is_not_there_cannot_be_removed(relation):
    relation.push_changes("R", [(None, "+", (1, "one")), (3, "-", (1, "one"))])
    with pytest.raises(InputError, match=r"at 5 a row is removed that is not there: \(1, 'one'\)"):
        relation.push_changes("R", [(5, "-", (1, "one"))])
    relation.push_changes("R", [(6, "+", (1, "one")), (6, "-", (1, "one"))])


def test_a_change_before_the_promise_is_refused(relation):
    relation.advance("R", 9)
    with pytest.raises(InputError, match="a change at 9 comes after the promise"):
        relation.push_changes("R", [(9, "+", (1, "one"))])


@pytest.mark.parametrize(
    ("change", "message"),
    [((1, "*", (1, "a")), "op must be"), (("x", "+", (1, "a")), "is not a time")],
)
def test_a_change_that_makes_no_sense_is_refused(relation, change, message):
    with pytest.raises(InputError, match=message):
        relation.push_changes("R", [change])


def test_a_row_that_is_no_number_can_be_removed():
    with Engine() as engine:
        engine.execute(
            "CREATE RELATION R (k INT, d DOUBLE) FROM push(); CREATE QUERY q AS SELECT k, d FROM R;"
        )
        engine.push("R", [(1, float("nan")), (2, 0.5)])
        engine.run_until_idle()
        engine.execute("DELETE FROM R WHERE k = 1")
        engine.run_until_idle()
        assert engine.inputs.relation("R").content().column("c0").to_pylist() == [2]
