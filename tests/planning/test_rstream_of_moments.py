"""An Rstream means the same whether or not it is rewritten to what comes."""

from __future__ import annotations

import random

import pytest

from millpond import Engine
from millpond.planning.nodes import Moments, Snapshots
from millpond.planning.optimise import optimise
from tests.cases import Advance, Case, Change, Push, Relation, Run, Stream
from tests.fuzz import check

COLUMNS = (("t", "BIGINT"), ("a", "INT"), ("b", "INT"))
MOMENTS = (
    "SELECT RSTREAM a, b FROM S [NOW] WHERE b > 0",
    "SELECT RSTREAM S.a, R.n FROM S [NOW], R WHERE S.a = R.k",
    "SELECT RSTREAM S.a, T.b FROM S [NOW], T [RANGE 3] WHERE S.a = T.a",
    "SELECT RSTREAM S.a, T.b FROM S [NOW], T [ROWS 2]",
    "SELECT RSTREAM a, n FROM S [NOW], (SELECT b, count(*) AS n FROM T GROUP BY b) x WHERE a = x.b",
    "SELECT RSTREAM S.a, R.n FROM S [NOW] LEFT JOIN R ON S.a = R.k",
    "RSTREAM(SELECT a FROM S [NOW] UNION ALL SELECT b FROM T [NOW])",
    "SELECT RSTREAM a FROM S [NOW] WHERE a IN (SELECT k FROM R)",
    "SELECT RSTREAM a FROM S [NOW] WHERE NOT EXISTS (SELECT 1 FROM T [RANGE 2] WHERE T.a = S.a)",
)
OTHERS = (
    "SELECT RSTREAM DISTINCT a FROM S [NOW]",
    "SELECT RSTREAM a, count(*) AS n FROM S [NOW] GROUP BY a",
    "SELECT RSTREAM count(*) AS n FROM S [NOW]",
    "SELECT RSTREAM x.a FROM (SELECT DISTINCT a FROM S [NOW]) x",
    "RSTREAM(SELECT a FROM S [NOW] EXCEPT SELECT k FROM R)",
    "SELECT RSTREAM a FROM S [RANGE 1]",
)


def drawn(seed, queries):
    """A case in which instants follow each other closely, and rows come again."""
    rng = random.Random(seed)
    actions, present = [], []
    for time in range(12):
        for name in "ST":
            rows = [(time, rng.randint(0, 2), rng.randint(0, 2)) for _ in range(rng.randint(0, 3))]
            actions += [Push(name, tuple(rows))] if rows else []
        if rng.random() < 0.6:
            if present and rng.random() < 0.5:
                row, sign = present.pop(rng.randrange(len(present))), "-"
            else:
                row, sign = (rng.randint(0, 2), rng.randint(0, 1)), "+"
                present.append(row)
            actions.append(Change("R", ((time, sign, row),)))
        actions += [Advance(name, time) for name in "STR"]
        actions += [Run()] if rng.random() < 0.5 else []
    named = {f"q{i}": text for i, text in enumerate(queries)}
    streams = (Stream("S", COLUMNS), Stream("T", COLUMNS))
    relation = Relation("R", (("k", "INT"), ("n", "INT")))
    return Case(streams, (relation,), {}, named, tuple(actions))


def is_rewritten(engine, query):
    """Whether the Rstream of a query is rewritten."""
    plan = optimise(engine.catalog.get(query).plan)
    found = [type(node) for node in plan.walk() if isinstance(node, (Moments, Snapshots))]
    return found == [Moments]


def test_it_is_rewritten_where_it_lasts_one_tick_and_nowhere_else():
    case = drawn(0, MOMENTS + OTHERS)
    with Engine() as engine:
        engine.execute(case.ddl())
        for statement in case.query_ddl():
            engine.execute(statement)
        rewritten = [is_rewritten(engine, name) for name in case.queries]
    assert rewritten == [True] * len(MOMENTS) + [False] * len(OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_the_reference(seed):
    failures = check(Engine, drawn(seed, MOMENTS + OTHERS))
    assert not failures, "\n".join(map(str, failures[:1]))
