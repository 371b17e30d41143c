"""The same answers for every strategy, every mode and 1 to 4 processors, in the driver and on the
executors, while all of these change at random and queues are put in and taken out."""

from __future__ import annotations

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
DRIVER_ROWS = (0, 50_000)
"""All steps on the executors, or none."""
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
    threaded = [(name, "free") for name in driving_spark() if name in THREADED]
    plain = [name for name in driving_spark() if name not in THREADED]
    pairs = [*product(plain, MODES), *threaded]
    if TIMES:
        found = [(*pair, *more) for pair in pairs for more in product(PROCESSORS, DRIVER_ROWS)]
    else:
        found = [
            (name, mode, PROCESSORS[(n // 5 + n) % 4], DRIVER_ROWS[(n // 3) % 2 * (n % 5 == 0)])
            for n, (name, mode) in enumerate(pairs)
        ]
    return [Turn(*each, queues_seed=n) for n, each in enumerate(found)]


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
