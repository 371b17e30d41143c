"""The same answers for every strategy, every mode and 1 to 4 processors, in the driver and on the
executors, while all of these change at random and queues are put in and taken out."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from millpond import Engine
from millpond.scheduling.strategy_text import THREADED, driving_spark
from tests.drawn_examples import TIMES, examples
from tests.spark.test_cutting import JOINED
from tests.spark.test_virtual_operators import CHAIN, COUNTED, LATER, LINEAR, STREAM
from tests.ways import drawn_parts

MODES = ("free", "di", "gts", "ots", "hmts")
PROCESSORS = (1, 2, 3, 4)
DRIVER_ROWS = (50_000, 0)
"""No step on the executors, or all of them."""
SCRIPT = STREAM + LINEAR + COUNTED + CHAIN + LATER + JOINED
QUERIES = ("few", "last", "many", "sampled", "chain", "later", "joined", "all_now")
RUN_TURNS = 20
"""So many turns has one engine; before each of them everything changes."""


@dataclass(frozen=True)
class Turn:
    """How an engine works until everything changes."""

    strategy: str
    mode: str
    processors: int
    driver_rows: int
    queues_seed: int

    def begin(self, engine: Engine) -> None:
        """Has the engine work so from now on; what it is about to do it does."""
        strange = self.mode != "free" and self.strategy in THREADED
        engine.execute(
            f"SET mode = 'free'; SET strategy = '{self.strategy}';"
            f"SET mode = '{'free' if strange else self.mode}';"
            f"SET processors = {self.processors}; SET driver_rows = {self.driver_rows}"
        )
        rng = random.Random(self.queues_seed)
        operators = [name for name in engine.graph.operators if rng.random() < 0.3]
        for name in [*operators, *drawn_parts(rng, engine.runtime)]:
            engine.execute(f"ALTER PLAN {rng.choice(['', 'NO '])}QUEUE AFTER {name}")


def rows(number: int) -> list[tuple[int, int, int]]:
    """The tuples of a turn."""
    return [(2 * number + i // 5, i % 3, i + number) for i in range(10)]


def answers(spark, turns: list[Turn | None]) -> dict[str, list[str]]:
    """What comes out if an engine works so, while rows come."""
    with Engine(spark=spark) as engine:
        engine.execute(SCRIPT)
        engine.start()
        for number, turn in enumerate(turns):
            if turn is not None:
                turn.begin(engine)
            engine.push("S", rows(number))
        engine.stop()
        engine.finish()
        assert engine.failures() == []
        return {query: sorted(map(str, engine.results(query, "rows"))) for query in QUERIES}


@pytest.fixture(scope="module")
def expected():
    found = answers(None, [None] * RUN_TURNS)
    assert all(found.values())
    return found


def combinations() -> list[Turn]:
    """Every pair of a strategy, a mode, a number of processors and a place; where examples are
    drawn, all there are of the four."""
    plain = [name for name in driving_spark() if name not in THREADED]
    threaded = [name for name in driving_spark() if name in THREADED]
    if TIMES:
        every = list(product(PROCESSORS, DRIVER_ROWS))
        found = [(*pair, *more) for pair in product(plain, MODES) for more in every]
        found += [(name, "free", *more) for name in threaded for more in every]
    else:
        found = [
            (name, mode, PROCESSORS[(s + m) % 4], DRIVER_ROWS[(s + m) % 5 == 0])
            for (s, name), (m, mode) in product(enumerate(plain), enumerate(MODES))
        ]
        found += [
            (name, "free", processors, DRIVER_ROWS[(s + p) % 4 == 0])
            for (s, name), (p, processors) in product(enumerate(threaded), enumerate(PROCESSORS))
        ]
    return [Turn(*each, queues_seed=n) for n, each in enumerate(found)]


def test_every_pair_is_met():
    sides = (driving_spark(), MODES, PROCESSORS, DRIVER_ROWS)
    names = ("strategy", "mode", "processors", "driver_rows")
    turns = combinations()
    for (one, ones), (other, others) in itertools.combinations(zip(names, sides, strict=True), 2):
        met = {(getattr(turn, one), getattr(turn, other)) for turn in turns}
        missing = set(product(ones, others)) - met
        assert all(a in THREADED and b in MODES[1:] for a, b in missing), missing


@pytest.mark.slow
def test_no_answer_depends_on_any_pair_of_them(spark, expected):
    turns = combinations()
    random.Random(1).shuffle(turns)
    for first in range(0, len(turns), RUN_TURNS):
        some = (turns[first:] + turns)[:RUN_TURNS]
        assert answers(spark, some) == expected, some


drawn = st.builds(
    Turn,
    st.sampled_from(driving_spark()),
    st.sampled_from(MODES),
    st.sampled_from(PROCESSORS),
    st.sampled_from(DRIVER_ROWS),
    st.integers(0, 2**32),
)


@pytest.mark.slow
@examples(3, HealthCheck.function_scoped_fixture)
@given(st.lists(drawn, min_size=RUN_TURNS, max_size=RUN_TURNS))
def test_no_answer_depends_on_what_is_drawn(spark, expected, turns):
    assert answers(spark, turns) == expected
