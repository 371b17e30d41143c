"""What waits behind a drop point is thinned as if less had been kept when it came."""

import time

import numpy as np
import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import Tolerance
from millpond.facade.shedding import Watch
from millpond.facade.thinning import taken_until, thinned
from millpond.identities import StreamId
from millpond.intake.drop_point import DropPoint, dropped_in
from tests.test_tolerating import TOLERATE, engine_with, fed, results, tuples

QUERIES = {
    "plain": "SELECT count(*) AS n, sum(v) AS s, avg(x) AS m FROM S [RANGE 7]",
    "grouped": "SELECT k, count(*) AS n, sum(x) AS s FROM S [RANGE 7] WHERE v > 30 GROUP BY k",
    "sliding": "SELECT k, max(v) AS h FROM S [RANGE 8 SLIDE 4] WHERE x < 2 GROUP BY k",
}
ROWS = tuples(240)


def page(rows, seed):
    """A page of the stream with odd values."""
    random = np.random.default_rng(seed)
    values = random.lognormal(0, 1, rows)
    values[:3] = np.nan, np.inf, 1e300
    columns = {
        "_ts": np.sort(random.integers(0, 30, rows)),
        "_seq": np.arange(rows) + 7,
        "c0": random.integers(0, 3, rows),
        "c1": values,
        "c2": random.integers(0, 100, rows),
    }
    return pa.table(columns)


@pytest.mark.parametrize("grain", [1, 4])
def test_thinned_is_what_would_have_been_kept_at_the_lower_rate(grain):
    needs = Tolerance(stream="S", keys=(0,), ranged=(1, 2), grain_ticks=grain)
    whole, once = page(500, 1), DropPoint.of(needs, 3, 0.2)
    for rates in ((0.9, 0.5, 0.2), (0.21, 0.2), (1.0, 0.2), (0.2, 0.2), (0.2, 0.7)):
        left = DropPoint.of(needs, 3, rates[0]).kept(whole)
        for rate in rates[1:]:
            left = DropPoint.of(needs, 3, rate).thinned(left)
        assert repr(left.to_pylist()) == repr(once.kept(whole).to_pylist())
    mixed = pa.concat_tables(
        [DropPoint.of(needs, 3, rate).kept(page(100, 2)) for rate in (1, 0.05)]
    )
    left = once.thinned(mixed)
    assert set(left["c4"].to_pylist()) == {1.0, 5.0, 20.0}
    assert dropped_in(left)[0] > dropped_in(mixed)[0] + 50


def thin(engine, percent):
    """Thins what waits of the stream."""
    with engine.held():
        engine.queries.change(list(thinned(engine.queries, StreamId("S"), percent)))


def run_with(store=None, pushes=(), **settings):
    """The queries over pages that come at rates and are thinned to others; a restart each time."""
    settings |= {} if store is None else {"store": store, "validate": "on"}
    engine = engine_with(QUERIES, TOLERATE, **settings)
    for number, (first, last, kept, left, runs) in enumerate(pushes):
        if store is not None and number:
            engine.close()
            engine = Engine(settings={"overload": "approximate", **settings})
        engine.execute(f"ALTER STREAM S KEEP {kept} PERCENT")
        engine.push("S", ROWS[first:last])
        if left < kept:
            thin(engine, left)
        if runs:
            engine.run_until_idle()
    return engine


THINNED = ((0, 80, 100, 100, True), (80, 130, 60, 20, False), (130, 240, 50, 20, True))


def finished(engine):
    engine.finish()
    found = {name: (results(engine, name), engine.quality(name).dropped) for name in QUERIES}
    engine.close()
    return found


def test_what_waits_is_dropped_as_if_it_had_been_when_it_came(tmp_path):
    ever = [(0, 70, 100, 100, True), (70, 240, 20, 20, True)]  # a time is over when one is later
    at_once = finished(run_with(pushes=ever))
    assert finished(run_with(pushes=THINNED)) == at_once
    assert finished(run_with(str(tmp_path / "store"), THINNED)) == at_once


def test_what_a_step_has_taken_stays():
    engine = run_with(pushes=[(0, 200, 100, 100, False)])
    queues = [engine.inputs.streams[name].queue for name in engine.inputs.kept[StreamId("S")]]
    alone = [queue for queue in queues if len(engine.queries.graph.readers(queue.name)) == 1]
    (reader,) = engine.queries.graph.readers(alone[0].name)
    running = engine.runtime.running[reader]
    before = pa.concat_tables([each.table for each in alone[0].pages])
    running.claimed = 11  # a step under way
    assert taken_until(engine.queries, alone[0]) == 11
    thin(engine, 10)
    after = pa.concat_tables([each.table for each in alone[0].pages])
    taken = pa.compute.field("_ts") <= 11
    assert repr(after.filter(taken).to_pylist()) == repr(before.filter(taken).to_pylist())
    weights = after.filter(~taken).column(after.num_columns - 1).to_pylist()
    assert weights.count(10.0) >= len(weights) - 3  # but for what cannot be dropped
    running.claimed = running.cursor
    engine.validate()
    engine.close()


def test_exact_queries_read_all_of_what_waits():
    engine = engine_with(QUERIES)
    engine.execute(f"CREATE QUERY other {TOLERATE} AS {QUERIES['grouped']}")
    engine.push("S", ROWS[:120])
    thin(engine, 1)
    assert engine.quality("other").dropped > 80
    engine.push("S", ROWS[120:])
    engine.finish()
    alone = fed(engine_with(QUERIES), ROWS)
    assert all(results(engine, name) == results(alone, name) for name in QUERIES)


def test_who_is_behind_drops_what_waits_and_no_more_than_is_tolerated(monkeypatch):
    engine = engine_with(QUERIES, "TOLERATE (SAMPLE AT LEAST 10 PERCENT)", latency="1 hour")
    engine.push("S", ROWS[:10])
    engine.run_until_idle()
    engine.push("S", ROWS[10:])
    watch, now = Watch(engine.queries), time.monotonic()
    monkeypatch.setattr(watch, "_coming", lambda *_: 100.0)
    monkeypatch.setattr(watch, "_tuple_seconds", lambda *_: 0.001)  # so little comes
    for work, kept in ((0.4, 100), (1.0, 50), (100.0, 10)):
        monkeypatch.setattr(watch, "_waiting_seconds", lambda *_, work=work: work)
        monkeypatch.setattr(watch, "_free_seconds", lambda *_, work=work: work)
        with engine.held():
            watch._decide([StreamId("S")], now, 1.0)
        dropped = engine.quality("plain").dropped
        assert dropped == pytest.approx(230 * (1 - kept / 100), abs=25)
        assert engine.quality("plain").kept_percent == 100  # what comes is not too much
        now += 1
    watch = Watch(engine.queries)
    assert watch._free_seconds(StreamId("S")) > 0
    engine.run_until_idle()
    assert watch._free_seconds(StreamId("S")) < 0.1
    engine.validate()
    engine.close()
