"""Parts of operators that are cut off and fused again while data flows: no answer changes."""

from __future__ import annotations

import random

import pytest

from millpond import Engine
from tests.crashing import validate_open
from tests.spark.test_virtual_operators import (
    CHAIN,
    COUNTED,
    LATER,
    LINEAR,
    QUERIES,
    STREAM,
    answers,
    fed,
)

JOINED = """
    CREATE QUERY joined AS SELECT a.k, a.v, b.w
      FROM S [RANGE 3] a, (SELECT k, v * 3 AS w FROM S [RANGE 2] WHERE v % 3 = 0) b
      WHERE a.k = b.k AND a.v > 2;
    CREATE QUERY all_now AS RSTREAM(SELECT k, v + 1 AS w FROM S [RANGE 2 SLIDE 2] WHERE v > 4);
"""
SCRIPT = STREAM + LINEAR + COUNTED + CHAIN + LATER + JOINED
ALL = (*QUERIES, "chain", "later", "joined", "all_now")
PAGES = 12


@pytest.fixture(scope="module")
def expected():
    with Engine() as engine:
        engine.execute(SCRIPT)
        fed(engine, range(PAGES))
        engine.finish()
        return answers(engine, *ALL)


def parts(engine):
    cuts = engine.runtime.cutting.cuts
    return [name for each in sorted(engine.graph.operators) for name in cuts.named(each)]


def alter(engine, rng):
    for name in parts(engine):
        if rng.random() < 0.5:
            engine.execute(f"ALTER PLAN {rng.choice(['', 'NO '])}QUEUE AFTER {name}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_answer_depends_on_what_is_cut_off_when(seed, expected):
    rng = random.Random(seed)
    with Engine({"processors": 1 + seed % 3, "step_rows": 7 if seed % 2 else 500_000}) as engine:
        engine.execute(SCRIPT)
        moved = 0
        for number in range(PAGES):
            alter(engine, rng)
            moved = max(moved, len(engine.runtime.cutting.cuts.names))
            fed(engine, [number])
            validate_open(engine)
        engine.finish()
        assert answers(engine, *ALL) == expected
        assert moved > 3


@pytest.mark.slow
def test_what_is_cut_off_is_found_again(tmp_path, expected):
    rng, number = random.Random(7), 0
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(SCRIPT)
    while number < PAGES:
        with Engine(store=tmp_path / "store") as engine:
            for _ in range(3):
                alter(engine, rng)
                fed(engine, [number])
                number += 1
                apart = set(engine.runtime.cutting.cuts.names)
                if rng.random() < 0.5:
                    engine.compact_log()
            if number >= PAGES:
                engine.finish()
                assert answers(engine, *ALL) == expected
        with Engine(store=tmp_path / "store") as engine:
            assert engine.runtime.cutting.cuts.names == apart
            validate_open(engine)


def test_a_part_is_cut_off_with_a_queue_and_fused_again_without_a_trace():
    with Engine() as engine:
        engine.execute(
            STREAM + "CREATE QUERY q AS SELECT k, count(*) AS n FROM S [RANGE 3] "
            "WHERE v > 3 GROUP BY k"
        )
        fed(engine, range(2))
        before, runtime = set(engine.inputs.queues), engine.runtime
        assert "op1_1: Filter (v > 3)" in str(engine.explain("q"))
        engine.execute("ALTER PLAN QUEUE AFTER op1_1")
        assert "op1_1: Filter (v > 3)\n    Read stream:s" in str(engine.explain("q"))
        fed(engine, range(2, 4))
        assert engine.inputs.queues["op1_1"].rows > 0
        assert {row["after"] for row in engine.show("queues").to_pylist()} >= {"op1_1"}
        engine.execute("ALTER PLAN NO QUEUE AFTER op1_1")
        fed(engine, range(4, 5))
        assert not runtime.cutting.cuts.names
        assert engine.inputs.queues["op1_1"].rows > 0, "the window still needs it"
        fed(engine, range(5, 8))
        assert set(engine.inputs.queues) == before
        assert runtime.cutting.history == []
