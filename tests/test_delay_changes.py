"""ALTER STREAM … DELAY: what was promised stays so, and time never goes back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.schema import BEGINNING
from tests.crashing import die, validate_open
from tests.drawn_examples import examples

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t DELAY 5;"
SCRIPT = STREAM + "CREATE QUERY q AS SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a;"

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.lists(st.integers(0, 40), min_size=1, max_size=4)),
        st.tuples(st.just("delay"), st.integers(0, 12)),
        st.tuples(st.just("advance"), st.integers(0, 40)),
    ),
    max_size=12,
)


def admitted(events, delay):
    """Straight from the definition: what counts, what is late, and what is promised at the end."""
    counts, late = [], []
    largest = promised = BEGINNING - 1
    for kind, given_ in events:
        if kind == "delay":
            promised, delay = max(promised, largest - delay - 1), given_
        elif kind == "advance":
            promised = max(promised, given_)
        for time in given_ if kind == "push" else ():
            if time < largest - delay or time <= promised:
                late.append(time)
            else:
                counts.append(time)
                largest = max(largest, time)
    return sorted(counts), late, max(promised, largest - delay - 1)


def done(engine, events):
    for kind, given_ in events:
        before = heartbeat(engine)
        if kind == "delay":
            engine.execute(f"ALTER STREAM S DELAY {given_}")
        elif kind == "advance":
            engine.advance("S", given_)
        else:
            engine.push("S", [(time, 1) for time in given_])
        assert heartbeat(engine) >= before


def heartbeat(engine):
    return engine.inputs.streams["s"].queue.heartbeat


def late(engine):
    return engine.late("S")["t"].to_pylist()


@examples(20)
@given(EVENTS)
@example([("push", [10]), ("delay", 0), ("push", [9, 10])])
@example([("push", [10]), ("delay", 9), ("push", [4, 5])])
def test_what_counts_is_what_the_definition_says(events):
    with Engine() as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT t FROM S;")
        done(engine, events)
        counts, too_late, promised = admitted(events, 5)
        assert late(engine) == too_late
        assert heartbeat(engine) == max(promised, BEGINNING - 1)
        engine.finish()
        found = engine.results("q").to_pylist()
        assert sorted(row["t"] for row in found for _ in range(row["weight"])) == counts


def test_a_smaller_delay_ends_time_at_once_and_a_larger_one_gives_none_back():
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(10, 1), (12, 1)])
        engine.run_until_idle()
        assert engine.results("q").num_rows == 0
        engine.execute("ALTER STREAM S DELAY 1")
        engine.run_until_idle()
        assert engine.results("q")["ts"].to_pylist() == [10]
        engine.execute("ALTER STREAM S DELAY 100")
        engine.push("S", [(10, 1), (11, 1)])
        assert late(engine) == [10]


@pytest.mark.parametrize("compacts", [False, True])
def test_a_changed_delay_survives(tmp_path, compacts):
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)
    events = [("push", [10]), ("delay", 1), ("push", [9, 12]), ("delay", 7), ("push", [11, 20])]
    done(engine, events)
    for _ in range(2):
        if compacts:
            engine.compact_log()
        before = heartbeat(engine)
        die(engine)
        engine = Engine(store=tmp_path / "store")
        validate_open(engine)
        assert (heartbeat(engine), engine.catalog.get("S").delay_ticks) == (before, 7)
    done(engine, [("push", [14, 12])])
    assert late(engine) == admitted([*events, ("push", [14, 12])], 5)[1]
    engine.close()


def test_the_knob_of_the_entity_is_the_statement():
    with Engine() as engine:
        engine.execute(SCRIPT)
        stream = engine.entities().get("stream", "S")
        assert stream.get("delay") == "5 microseconds"
        for value, shown in (("2 seconds", "2 seconds"), ("none", "none"), (3, "3 microseconds")):
            stream.set("delay", value)
            assert stream.get("delay") == shown
        for wrong in ("soon", "-1", "5; DROP STREAM S", ""):
            with pytest.raises(StateError, match="such as 5 seconds"):
                stream.set("delay", wrong)
        with pytest.raises(CqlError, match="parsecs"):
            stream.set("delay", "5 parsecs")


def test_tuples_timed_by_arrival_are_never_late():
    with Engine() as engine:
        engine.execute("CREATE STREAM A (a INT)")
        with pytest.raises(CqlError, match="column 22: DELAY needs TIMESTAMP BY"):
            engine.execute("ALTER STREAM A DELAY 5")
