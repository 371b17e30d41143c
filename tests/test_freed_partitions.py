"""Partition windows: of a partition to which nothing comes any more nothing is kept."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.execution.operators import freeing
from millpond.execution.operators.keyed import RunningRowsWindow
from millpond.intake.numbered import NumberedClusters
from millpond.intake.orderings import Ordering
from millpond.storage import state
from millpond.storage.state import COMPACT_ROWS
from tests.execution.in_process import WORKS, InProcess

QUERIES = {
    "relation": "SELECT id, v FROM S [PARTITION BY id ROWS 2]",
    "sliding": "SELECT id, v FROM S [PARTITION BY id ROWS 3 SLIDE 2]",
    "stream": "SELECT Istream(id, v) FROM S [PARTITION BY id ROWS 2]",
    "leaving": "SELECT Dstream(id, v) FROM S [PARTITION BY id ROWS 1]",
    "several": "SELECT id, p, v FROM S [PARTITION BY p, id ROWS 2]",
    "sums": "SELECT id, sum(v) AS s FROM S [PARTITION BY id ROWS 2] GROUP BY id",
    "least": "SELECT id, min(v) AS s FROM S [PARTITION BY id ROWS 2] GROUP BY id",
    "derived": "SELECT id, v FROM W [PARTITION BY id ROWS 2]",
}
ORDERED, CLUSTERED = "ORDERED BY (id) WITHIN 5 ROWS", "CLUSTERED BY (id) WITHIN 4 ROWS"


def started(clause, queries, settings):
    engine = Engine(settings)
    engine.execute(f"CREATE STREAM S (t BIGINT, id INT, p INT, v INT) TIMESTAMP BY t {clause}")
    engine.execute("CREATE VIEW W AS SELECT Istream(id, v) FROM S WHERE v % 3 > 0")
    for name in queries:
        engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")
    return engine


def numbers(count):
    """Each number comes three times, always two others between."""
    return [3 * (n // 9) + n % 3 for n in range(count)]


def answers(clause, *, punctuates=False, page=4, **settings):
    with started(clause, QUERIES, settings) as engine:
        rows = [(n, each, n % 2, n) for n, each in enumerate(numbers(54))]
        for start in range(0, len(rows), page):
            engine.push("S", rows[start : start + page])
            if punctuates and rows[start][1] >= 4:
                engine.execute(f"PUNCTUATE S WHERE id < {rows[start][1] - 3}")
            engine.run_until_idle()
        running = engine.runtime.running.values()
        windows = [each for each in running if isinstance(each, RunningRowsWindow)]
        freed = [window.freed_rows for window in windows]
        engine.finish()
        found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in QUERIES}
        assert not engine.violating("S").num_rows
        return found, freed


@pytest.fixture
def _freed_at_once(monkeypatch):
    monkeypatch.setattr(state, "COMPACT_ROWS", 0)
    monkeypatch.setattr(freeing, "COMPACT_ROWS", 1)


@pytest.mark.usefixtures("_freed_at_once")
@pytest.mark.parametrize("driver_rows", [10**9, 0])
@pytest.mark.parametrize("clause", [ORDERED, CLUSTERED, "punctuations"])
def test_answers_are_those_without_the_constraint(clause, driver_rows, monkeypatch):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    way = {"driver_rows": driver_rows, "place_by": "rows"}
    plain, kept = answers("", page=7)
    punctuates = clause == "punctuations"
    found, freed = answers("" if punctuates else clause, punctuates=punctuates, **way)
    assert found == plain
    assert max(kept) == 0
    assert sum(each < 8 for each in freed) == punctuates  # which do not reach an Istream
    if not driver_rows:
        assert WORKS["RunMemberKernel"] > 0


@pytest.mark.usefixtures("_freed_at_once")
@pytest.mark.parametrize("kind", ["ordered", "clustered"])
def test_what_is_freed_one_row_too_early_is_missed(kind, monkeypatch):
    """A partition of which one more row comes counts its rows anew, and lets none go."""
    clause = ORDERED if kind == "ordered" else CLUSTERED.replace("4", "2")
    plain, _ = answers("", page=1)
    assert answers(clause, page=1)[0] == plain
    if kind == "ordered":
        bound = Ordering.bound
        monkeypatch.setattr(Ordering, "bound", lambda self, place: bound(self, place + 1))
    else:
        close = NumberedClusters.close
        monkeypatch.setattr(NumberedClusters, "close", lambda self, place: close(self, place + 1))
    assert answers(clause, page=1)[0] != plain


@pytest.mark.parametrize("driver_rows", [10**9, 0])
def test_no_more_is_kept_than_is_said(driver_rows, monkeypatch):
    """Of partitions that are open at most two rows, twice, and some a bucket."""
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    pages, size, within = 10, 2_000, 20
    way = {"driver_rows": driver_rows, "place_by": "rows"}
    with started(f"ORDERED BY (id) WITHIN {within} ROWS", ["relation"], way) as engine:
        for page in range(pages):
            rows = range(page * size, (page + 1) * size)
            engine.push("S", [(n, n // 2, 0, n) for n in rows])
            engine.run_until_idle()
            (window,) = (
                each
                for each in engine.runtime.running.values()
                if isinstance(each, RunningRowsWindow)
            )
            for version in window.state.versions:
                kept = sum(delta.rows for deltas in version.buckets for delta in deltas)
                assert kept <= 2 * (2 * size + within) + COMPACT_ROWS * window.buckets
        assert window.freed_rows > pages * size
        told = (
            "S.ordered_by_id frees rows of partitions with id < bound; it keeps at most 2 x those"
        )
        assert told in str(engine.explain("relation"))
