"""Streams that are sampled share the time there is, by the weights of their queries."""

import pytest

from millpond import Engine
from millpond.facade.shedding import Watch
from millpond.identities import StreamId

STREAMS = [StreamId("A"), StreamId("B")]


def engine_with(weights=(1, 1), said="TOLERATE (FALSE NEGATIVES 10000 PERCENT)"):
    """An engine with a query of rows over each of two streams."""
    engine = Engine(settings={"overload": "approximate", "latency": "1 hour"})
    for name, weight in zip("ab", weights, strict=True):
        engine.execute(f"CREATE STREAM {name} (k INT, at BIGINT) TIMESTAMP BY at")
        text = f"SELECT k FROM {name} WHERE k > 1"
        engine.execute(f"CREATE QUERY q{name} WEIGHT {weight} {said} AS {text}")
        engine.push(name, [(k, 0) for k in range(20)])
    engine.run_until_idle()
    return engine


def watched(engine, monkeypatch, comes, work=0.3, seconds=0.001):
    """A watch that sees so many tuples come in a second, and so much work wait."""
    watch = Watch(engine.queries)
    monkeypatch.setattr(watch, "_coming", lambda stream, *_: comes[stream])
    monkeypatch.setattr(watch, "_tuple_seconds", lambda *_: seconds)
    monkeypatch.setattr(watch, "_waiting_seconds", lambda *_: work)
    monkeypatch.setattr(watch, "_free_seconds", lambda *_: 0.0)
    return watch


def kept(engine):
    return [engine.quality(f"q{name}").kept_percent for name in "ab"]


def test_the_work_of_all_streams_counts_and_weights_say_whose_is_left_out(monkeypatch):
    engine = engine_with(weights=(5, 1))
    comes = {"a": 800.0, "b": 800.0}  # neither is too much by itself
    watch = watched(engine, monkeypatch, comes)
    with engine.held():
        watch._decide(STREAMS, 100.0, 2.0)
    heavy, light = kept(engine)
    done = 0.8 * (heavy + light) / 100
    assert 0.6 < done <= 0.86
    assert heavy > 80
    assert light < 25
    assert "s of work in a second it gets" in engine.quality("qb").reason
    with engine.held():
        watch._decide(STREAMS, 100.1, 2.0)
    assert kept(engine) == [heavy, light]  # nothing has changed
    engine.execute("ALTER QUERY qa SET WEIGHT 0.1")
    with engine.held():
        watch._decide(STREAMS, 100.2, 2.0)
    assert kept(engine)[1] > 80  # it is done again, with as much work
    assert 0.8 * sum(kept(engine)) / 100 == pytest.approx(done, abs=0.05)
    assert engine.quality("qa").false_negatives > 200
    engine.close()


def test_all_is_kept_again_when_there_is_time(monkeypatch):
    engine = engine_with()
    comes = {"a": 5_000.0, "b": 200.0}
    watch = watched(engine, monkeypatch, comes, work=0.6)
    with engine.held():
        watch._decide(STREAMS, 100.0, 2.0)
    assert sum(kept(engine)) < 140
    assert kept(engine)[1] == 100  # a row of either counts alike, and these cost less
    comes["a"] = 50.0
    monkeypatch.setattr(watch, "_waiting_seconds", lambda *_: 0.0)
    with engine.held():
        for second in range(101, 110):
            watch._decide(STREAMS, float(second), 2.0)
    assert kept(engine) == [100, 100]
    engine.close()


def test_where_nobody_has_seen_what_comes_all_keep_less_alike(monkeypatch):
    engine = engine_with()
    watch = watched(engine, monkeypatch, {"a": None, "b": None}, work=9.0)
    monkeypatch.setattr(watch, "_behind", lambda entry, now, _: now - 90.0)
    with engine.held():
        watch._decide(STREAMS, 100.0, 1.0)
        watch._decide(STREAMS, 102.0, 1.0)
    one, other = kept(engine)
    assert one == other == 10
    engine.close()
