"""DEACTIVATE and ACTIVATE, and restart: the changes of a query are those of one relation."""

from __future__ import annotations

from collections import Counter

import pytest

from millpond import Engine
from millpond.errors import MillpondError
from tests.lives import DDL, OTHERS, Dying, Told, alone, sums


class Intervals(Told):
    """Pages, and between which of them queries run."""

    def __init__(self, seed):
        super().__init__(seed)
        self.lives = self.lives[:4]

    def _life(self, shape):
        """The text of a query and the pages before which it is started and stopped, by turns."""
        text = shape.format(c=self.rng.randrange(4), w=self.rng.randint(1, 5))
        count = min(len(self.pages), self.rng.randint(1, 5))
        return text, sorted(self.rng.sample(range(len(self.pages)), count))


def expected(told, text, moments):
    """What each interval alone answers; what was held before is taken out as the next begins."""
    whole, held, has_told = Counter(), Counter(), False
    ends = [*moments[1:], len(told.pages)]
    for first, last in list(zip(moments, ends, strict=True))[::2]:
        answer = alone(told, text, first, last)
        begins = first - 1 if has_told and not answer.is_stream else -1
        for row, weight in held.items():
            whole[(begins, *row)] -= weight
        held = Counter()
        for (ts, *row), weight in answer.changes.items():
            whole[(max(ts, begins), *row)] += weight
            held[tuple(row)] += 0 if answer.is_stream else weight
        has_told = has_told or answer.rows > 0
    return Counter({key: weight for key, weight in whole.items() if weight})


def run(told, engine, between=lambda engine: engine):
    """Has an engine do all that is told; each query's answer."""
    engine.execute(DDL + OTHERS)
    for at, _ in enumerate(told.pages):
        for number, (text, moments) in enumerate(told.lives):
            place = moments.index(at) if at in moments else None
            if place == 0:
                engine.execute(f"CREATE QUERY q{number} AS {text}")
            elif place is not None:
                does = "ACTIVATE" if place % 2 == 0 else "DEACTIVATE"
                engine.execute_anew(f"ALTER QUERY q{number} {does}")
        engine = between(engine)
        told.feed(engine, at)
    engine.finish()
    return [sums(engine, f"q{number}") for number in range(len(told.lives))]


def check(told, found):
    for (text, moments), answer in zip(told.lives, found, strict=True):
        assert answer == expected(told, text, moments), (text, moments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_was_held_is_taken_out_before_a_query_begins_again(seed):
    told = Intervals(seed)
    with Engine({"sharing": ("auto", "on", "off")[seed % 3]}) as engine:
        check(told, run(told, engine))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_crash_changes_nothing(seed, tmp_path):
    told = Intervals(2_000 + seed)
    with Dying(tmp_path, seed) as dying:
        check(told, run(told, dying.engine, dying.live_on))


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(DDL)
        yield engine


def page(engine, ts, *values):
    engine.push("S", [(ts, 0, value) for value in values])
    engine.advance("S", ts)
    engine.run_until_idle()


def content(table):
    """What the changes of a query sum up to."""
    found = Counter()
    for row in table.to_pylist():
        _, weight, *values = row.values()
        found[tuple(values)] += weight
    return {values: weight for values, weight in found.items() if weight}


def test_times_never_go_back_and_the_sum_is_one_relation(engine):
    seen = []
    engine.execute("CREATE QUERY q AS SELECT count(*) AS n FROM S")
    engine.subscribe("q", lambda table: seen.extend(table.to_pylist()))
    page(engine, 1, 5, 6)
    engine.execute("ALTER QUERY q DEACTIVATE")
    assert content(engine.results("q")) == {(2,): 1}, "what it has answered stays"
    page(engine, 5, 7)
    engine.execute("ALTER QUERY q ACTIVATE")
    page(engine, 8, 7, 7, 7)
    assert content(engine.results("q")) == {(3,): 1}
    times = [-1 if row["ts"] is None else row["ts"] for row in seen]
    assert times == sorted(times)
    assert [(row["ts"], row["weight"], row["n"]) for row in seen[3:]] == [
        (5, -1, 2),
        (5, 1, 0),
        (8, -1, 0),
        (8, 1, 3),
    ]


def test_queries_of_a_group_are_taken_out_one_by_one(engine):
    for value in range(3):
        engine.execute(f"CREATE QUERY q{value} AS SELECT count(*) AS n FROM S WHERE v > {value}")
    assert engine.queries.groups.of("q0") is engine.queries.groups.of("q2") is not None
    page(engine, 1, 1, 2, 3)
    engine.execute("ALTER QUERY q1 DEACTIVATE; ALTER QUERY q1 ACTIVATE")
    page(engine, 2, 1, 2, 3)
    answers = [content(engine.results(f"q{value}")) for value in range(3)]
    assert answers == [{(6,): 1}, {(2,): 1}, {(2,): 1}]


def test_a_query_that_was_restarted_holds_one_answer(engine):
    engine.execute(f"CREATE QUERY z AS SELECT sum({2**62} * v) AS s FROM S")
    page(engine, 1, 1)
    with pytest.raises(MillpondError):
        page(engine, 2, 4)
    assert content(engine.results("z")) == {(2**62,): 1}
    engine.restart("z")
    page(engine, 3, 1)
    assert content(engine.results("z")) == {(2**62,): 1}
    with pytest.raises(MillpondError):
        page(engine, 4, 4)
    engine.execute("ALTER QUERY z ACTIVATE")
    assert content(engine.results("z")) == {}, "it has not run since"


def test_after_the_end_it_begins_with_its_last_change(engine):
    engine.execute("CREATE QUERY q AS SELECT count(*) AS n FROM S")
    page(engine, 1, 5, 6)
    engine.finish()
    engine.execute("ALTER QUERY q DEACTIVATE; ALTER QUERY q ACTIVATE")
    engine.run_until_idle()
    assert engine.results("q").to_pylist() == [{"ts": None, "weight": 1, "n": 0}]


def test_one_that_had_answered_nothing_begins_at_the_beginning(engine):
    engine.execute("CREATE QUERY q INACTIVE AS SELECT count(*) AS n FROM S; ")
    page(engine, 1, 5)
    engine.execute("ALTER QUERY q ACTIVATE")
    page(engine, 2, 5)
    assert engine.results("q").to_pylist()[0] == {"ts": None, "weight": 1, "n": 0}


def test_an_answer_that_is_not_known_keeps_a_query_from_running_again(engine):
    engine.queries.keep_results(False)  # as `millpond run` does
    engine.execute("CREATE QUERY q AS SELECT count(*) AS n FROM S")
    engine.execute("CREATE QUERY z AS SELECT k FROM S")
    page(engine, 1, 5)
    engine.execute("ALTER QUERY q DEACTIVATE; ALTER QUERY z DEACTIVATE; ALTER QUERY z ACTIVATE")
    with pytest.raises(MillpondError, match=r'query "q" cannot run again: .* DROP and CREATE it'):
        engine.execute("ALTER QUERY q ACTIVATE")
    assert not engine.query_entry("q").active
