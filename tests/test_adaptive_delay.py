"""DELAY ADAPTIVE: as long as all but a share of the tuples need, whatever pages they come in."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.connectors import disorder
from millpond.errors import CqlError, StateError
from millpond.schema import BEGINNING
from tests.crashing import die, validate_open
from tests.drawn_examples import examples

PIECE = 8
STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t DELAY ADAPTIVE 10 PERCENT AT MOST 900;"
SCRIPT = STREAM + "CREATE QUERY q AS SELECT t, a FROM S;"


@pytest.fixture(autouse=True)
def _short_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disorder, "PIECE", PIECE)
    monkeypatch.setattr(disorder, "LATE_SEEN", 2)


def bucket_end(distance):
    """The largest distance that has at least four of its bits after the first in common."""
    zeros = max(0, distance.bit_length() - 5)
    return ((distance >> zeros) + 1 << zeros) - 1


def by_definition(times, percent, most):
    """Tuple by tuple: the late ones, the delay at the end, and what is over by then."""
    generation = PIECE * math.ceil(2 * 100 / percent / PIECE)
    delay, over, largest = most, BEGINNING - 1, BEGINNING
    present, before, late = [], [], []
    for time in times:
        if time <= over:
            late.append(time)
        present.append(max(0, largest - time))
        largest = max(largest, time)
        if len(present) % PIECE == 0:
            seen = sorted(present + before)
            in_time = len(seen) - int(len(seen) * percent / 100)
            wanted = min(most, bucket_end(seen[in_time - 1])) if in_time else 0
            delay = wanted if len(present) >= generation else max(delay, wanted)
            if len(present) >= generation:
                present, before = [], present
        over = max(over, largest - delay - 1)
    return late, delay, over


def drawn_times(seed, count=400):
    """Times that come behind by more and more, then by less."""
    rng = random.Random(seed)
    spread = [rng.choice((0, 3, 50, 400, 2000)) for _ in range(4)]
    return [5 * n - int(rng.random() ** 4 * spread[n * 4 // count]) for n in range(count)]


def late(engine):
    return engine.late("S")["t"].to_pylist()


def intake(engine):
    return engine.inputs.streams["s"]


def push(engine, times):
    engine.push("S", [(time, 1) for time in times])


@examples(40)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 400), max_size=12))
def test_late_is_what_the_definition_says_in_whatever_pages(seed, cuts):
    times = drawn_times(seed)
    with Engine() as engine:
        engine.execute(SCRIPT)
        for start, end in itertools.pairwise([0, *sorted(cuts), len(times)]):
            push(engine, times[start:end])
        found = late(engine), intake(engine).admission.delay_ticks, intake(engine).queue.heartbeat
        assert found == by_definition(times, 10, 900)
        engine.finish()
        rows = engine.results("q").to_pylist()
        counted = sorted(row["t"] for row in rows for _ in range(row["weight"]))
        assert sorted(counted + late(engine)) == sorted(times)


@pytest.mark.parametrize("compacts", [False, True])
def test_what_was_seen_outlives_a_death(tmp_path, compacts):
    times = drawn_times(7)
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)
    for start in range(0, len(times), 67):
        push(engine, times[start : start + 67])
        if compacts:
            engine.compact_log()
        die(engine)
        engine = Engine(store=tmp_path / "store")
        validate_open(engine)
    assert (late(engine), intake(engine).admission.delay_ticks) == by_definition(times, 10, 900)[:2]
    engine.close()


def test_it_waits_as_long_as_it_may_and_then_as_long_as_is_needed():
    with Engine() as engine:
        engine.execute(STREAM)
        stream = engine.entities().get("stream", "S")
        assert stream.get("delay") == "adaptive 10 percent at most 900 microseconds"
        assert stream.get("present_delay") == "900 microseconds"
        push(engine, range(0, 240, 10))  # a generation, in order
        assert stream.get("present_delay") == "none"
        push(engine, [time - 20 * (time % 3 == 0) for time in range(300, 380, 5)])
        assert stream.get("present_delay") == "15 microseconds"
        assert late(engine) == [295, 310, 325, 340, 355]  # before that was known
        push(engine, [390, 375])
        assert len(late(engine)) == 5


def test_it_is_altered_by_a_statement_and_by_a_knob():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t DELAY 5;")
        stream = engine.entities().get("stream", "S")
        assert (stream.get("delay"), stream.get("present_delay")) == ("5 microseconds",) * 2
        engine.execute("ALTER STREAM S DELAY ADAPTIVE AT MOST 2 SECONDS")
        assert stream.get("delay") == "adaptive 0.1 percent at most 2 seconds"
        stream.set("delay", "Adaptive 2.5 percent at most 3 seconds")
        assert stream.get("delay") == "adaptive 2.5 percent at most 3 seconds"
        stream.set("delay", "7")
        assert (stream.get("delay"), intake(engine).disorder) == ("7 microseconds", None)
        with pytest.raises(StateError, match="such as 5 seconds"):
            stream.set("delay", "adaptive 2 percent at most soon")


@pytest.mark.parametrize(
    ("delay", "complaint"),
    [
        ("ADAPTIVE 5 SECONDS", "expected PERCENT"),
        ("ADAPTIVE 1 PERCENT", "expected AT"),
        ("ADAPTIVE 0 PERCENT AT MOST 5", "more than 0 and less than 100"),
        ("ADAPTIVE 100 PERCENT AT MOST 5", "more than 0 and less than 100"),
        ("ADAPTIVE AT MOST -5", "cannot be negative"),
        ("soon", "such as 5 SECONDS, or ADAPTIVE"),
    ],
)
def test_refusals(delay, complaint):
    with Engine() as engine, pytest.raises(CqlError, match=complaint):
        engine.execute(f"CREATE STREAM S (t BIGINT) TIMESTAMP BY t DELAY {delay}")
