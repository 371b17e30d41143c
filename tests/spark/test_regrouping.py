"""Units follow what changed: as if they had been found anew in the whole graph."""

from __future__ import annotations

import random
import threading

import pytest

from millpond import Engine
from millpond.execution import runtime as runtimes
from millpond.execution.executor import Executors
from millpond.execution.picture import Picture
from millpond.identities import OperatorId
from millpond.planning.placement import edges
from millpond.scheduling.decisions import RunOperator
from tests.patience import PATIENCE_SECONDS

SCRIPT = """
CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t;
CREATE RELATION R (k INT);
CREATE VIEW counted AS SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 3] GROUP BY k;
"""
QUERIES = (
    "SELECT k, max(n * 2) AS m FROM counted WHERE n > 1 GROUP BY k",
    "SELECT k, s FROM counted WHERE s > 3",
    "SELECT a.k FROM counted a, counted b WHERE a.n = b.n",
    "SELECT DISTINCT k FROM (ISTREAM(SELECT k, n FROM counted)) [RANGE 4]",
    "SELECT k, v FROM S WHERE v % 2 = 0",
    "SELECT n, count(*) AS c FROM (SELECT k, n FROM counted WHERE n < 9) AS few GROUP BY n",
    "SELECT v, count(*) AS n FROM S [ROWS 4] GROUP BY v",
)
SHAPES = (
    "SELECT k, v FROM S WHERE v > {}",
    "SELECT t FROM S WHERE k = {}",
    "SELECT k, count(*) AS n FROM S [RANGE 3] WHERE v > {} GROUP BY k",
    "SELECT S.t, R.k FROM S [RANGE 3], R WHERE S.k = R.k AND S.v > {}",
)


def parts(engine: Engine) -> list[str]:
    """Everything that a queue can stand behind."""
    cuts = engine.runtime.cutting.cuts
    operators = list(engine.graph.operators)
    return [*operators, *(part for each in operators for part in cuts.named(each))]


def change(engine: Engine, chance: random.Random, number: int) -> None:
    """Does something after which units may be others."""
    kind = chance.randrange(6)
    runtime, running = engine.runtime, list(engine.queries.outputs)
    if kind == 0 or not running:
        query = chance.choice((*QUERIES, *SHAPES, *SHAPES)).format(number)
        engine.execute(f"CREATE QUERY q{number} AS {query};")
    elif kind == 1:
        engine.execute(f"DROP QUERY {chance.choice(running)};")
    elif kind == 2:
        no = chance.choice(["", "NO "])
        engine.execute(f"ALTER PLAN {no}QUEUE AFTER {chance.choice(parts(engine))};")
    elif kind == 3:
        kept = {each for each in edges(engine.graph) if chance.random() < 0.5}
        runtime.placement = runtime.placement.choose(engine.graph, kept)
    elif kind == 4:
        runtime.placement = runtime.placement.undecided()
    else:
        engine.push("S", [(number, chance.randrange(3), chance.randrange(9)) for _ in range(3)])
        engine.run_until_idle()


@pytest.mark.parametrize("sharing", ["off", "auto", "on"])
@pytest.mark.parametrize("seed", range(15))
def test_units_are_those_of_the_whole_graph(seed: int, sharing: str) -> None:
    chance = random.Random(seed)
    with Engine({"sharing": sharing}) as engine:
        engine.execute(SCRIPT)
        for number in range(30):
            change(engine, chance, number)
            engine.runtime.move_queues()
            units = {unit.identities for unit in engine.runtime.units}
            assert units == set(map(frozenset, engine.runtime.groups()))
            assert not engine.runtime.units.to_change


def test_a_queue_concerns_its_neighbours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    shape = Picture.shape

    def counted(self, identities):
        seen.append(len(identities))
        return shape(self, identities)

    with Engine({"sharing": "off"}) as engine:
        engine.execute(SCRIPT)
        for number in range(20):
            engine.execute(
                f"CREATE QUERY q{number} AS SELECT k, count(*) AS n FROM S [RANGE 2] "
                f"WHERE v * {number + 2} > {number} GROUP BY k;"
            )
        engine.runtime.move_queues()
        aggregates = [each for each in engine.graph.operators if engine.graph.readers(each)]
        monkeypatch.setattr(Picture, "shape", counted)
        engine.execute(f"ALTER PLAN QUEUE AFTER {aggregates[3]};")
        engine.execute("CREATE QUERY more AS SELECT k FROM S WHERE v > 100;")
        engine.runtime.move_queues()
        assert seen == [2, 1]


def test_whoever_was_to_change_and_is_not_any_more_is_shown_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go, execute = threading.Event(), Executors.execute
    monkeypatch.setattr(
        Executors,
        "execute",
        lambda self, step: may_go.wait(PATIENCE_SECONDS) and execute(self, step),
    )
    monkeypatch.setattr(runtimes, "AT_ONCE_SECONDS", -1.0)
    with Engine({"processors": 2}) as engine:
        engine.execute(SCRIPT + f"CREATE QUERY q AS {QUERIES[0]};")
        runtime = engine.runtime
        first, second = (OperatorId(each).number for each in list(runtime.running)[:2])
        fused = runtime.placement.choose(engine.graph, set())
        apart = runtime.placement.choose(engine.graph, set(edges(engine.graph)))
        runtime.placement = apart

        def is_ready(complete: bool = False) -> list[bool]:
            states = runtime.observe(complete).changed
            return [each.ready for each in states if each.operator == second]

        engine.push("S", [(1, 1, 1), (5, 1, 1)])
        runtime.plan()
        runtime.observe(True)
        may_go.set()
        runtime.perform(RunOperator(first))
        runtime.wait()
        may_go.clear()
        engine.push("S", [(9, 1, 1)])
        assert is_ready() == [True]
        runtime.perform(RunOperator(first))
        runtime.placement = fused
        assert is_ready(complete=True) == [False]  # it waits for the first, to be a unit with it
        runtime.placement = apart
        assert is_ready() == [True]
        may_go.set()
