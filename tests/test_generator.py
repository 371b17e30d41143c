"""Generated cases are repeatable, keep their promises, and reach every construct."""

import random
import re
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tests import reference
from tests.cases import (
    Advance,
    Case,
    Change,
    Delete,
    Drop,
    Insert,
    Push,
    Register,
    Relation,
    Run,
    Stream,
    Update,
)
from tests.fuzz import check, shrink, valid
from tests.generator import (
    STRATEGIES,
    random_database,
    random_strategy,
    seeded_case,
    unevaluated_case,
)

SEEDS = range(24)
pytestmark = pytest.mark.slow

CONSTRUCTS = [
    r"\[NOW", r"\[UNBOUNDED", r"\[RANGE \d+ SLIDE", r"\[RANGE \d+[\] ]", r"\[ROWS \d+[\] ]",
    r"\[ROWS \d+ SLIDE", r"\[PARTITION BY [^]]* ROWS \d+[\] ]", r"PARTITION BY [^]]* SLIDE",
    r"\[TUMBLE \d+[\] ]", r"\[HOP \d+ SLIDE \d+[\] ]", r"OFFSET", r"EMIT FINAL",
    r"\[SESSION \d+[\] ]", r"\[UNTIL", r"WHERE .*CURRENT_TIMESTAMP", r"CURRENT_TIME ",
    r"HAVING .*CURRENT_TIME", r"\(SELECT [^()]* CURRENT_TIME",
    r"(sum|avg|min|max|count)\([^)]*\) OVER", r"lag\(", r"lead\(",
    r"ntile\(", r"first_value\(", r"last_value\(", r" ROWS BETWEEN", r" RANGE BETWEEN",
    r"FOLLOWING",
    r"LIMIT \d", r"WITH TIES", r"ROW_NUMBER\(\) OVER", r"[^_]RANK\(\) OVER", r"DENSE_RANK\(\) OVER",
    r"NULLS LAST",
    r"\[[^]]* WHERE", r"PRECEDING", r"MICROSECONDS", r"SELECT ISTREAM", r"SELECT DSTREAM",
    r"SELECT RSTREAM", r"ISTREAM\(", r"DSTREAM\(", r"RSTREAM\(", r" JOIN", r"LEFT JOIN",
    r"RIGHT JOIN", r"FULL JOIN", r"CROSS JOIN", r"LEFT SEMI JOIN", r"LEFT ANTI JOIN", r"GROUP BY",
    r"HAVING", r"count\(\*\)", r"count\(DISTINCT", r"sum\(", r"avg\(", r"min\(", r"max\(",
    r"stddev\(", r"variance\(", r"percentile\(", r"approx_count_distinct\(", r"SELECT DISTINCT",
    r"DATE '", r"TIMESTAMP '", r"AS DATE", r"AS TIMESTAMP", r"date_(add|sub)\(", r"date_trunc\(",
    r"year\(", r"hour\(", r"datediff\(", r"FROM V3", r"HAVING count\(\*\) > 1\)",
    r"UNION SELECT", r"UNION ALL", r"EXCEPT SELECT", r"EXCEPT ALL", r"INTERSECT SELECT",
    r"INTERSECT ALL", r"FROM \(SELECT", r"FROM V1", r" IN \(SELECT", r"NOT IN \(SELECT",
    r" EXISTS \(", r"NOT EXISTS \(", r"[<>=] ALL \(", r"[<>=] ANY \(", r"= \(SELECT",
    r"SELECT \(SELECT", r"CASE WHEN", r"LIKE", r"BETWEEN", r"IS NULL", r"NULL\)", r"CAST\(",
    r" / ", r" % ", r"\|\|", r" NOT \(", r" OR ", r"^RELATION ", r"^STREAM ", r"Relation\(",
    r"ROLLUP \(", r"CUBE \(", r"GROUPING SETS \(", r"FILTER \(WHERE", r"count\(DISTINCT [^()]*, ",
    r"INTERVAL '", r"date_trunc\('\d",
    r"\(\S+, \S+\) IN \(SELECT", r"^WITH ", r"[SDR]stream\(", r"(EXCEPT|INTERSECT|UNION ALL) \w+$",
]  # fmt: skip


@pytest.fixture(scope="module")
def some_cases():
    return [seeded_case(seed, 4, late=False) for seed in SEEDS]


@pytest.fixture(scope="module")
def some_texts():
    cases = [unevaluated_case(seed, 4) for seed in range(400)]
    return [text for case in cases for text in case.queries.values()]


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_construct_is_generated(some_texts, construct):
    assert any(re.search(construct, text) for text in some_texts), construct


def test_a_seed_gives_the_same_case(some_cases):
    again = [seeded_case(seed, 4) for seed in SEEDS[:5]]
    assert again == some_cases[:5]


def test_no_tuple_is_late_unless_asked_for(some_cases):
    assert not any(late for case in some_cases for late in case.late().values())
    databases = [random_database(random.Random(seed), late=True) for seed in SEEDS]
    assert any(late for case in databases for late in case.late().values())


def test_relations_change_in_order_of_time_and_after_their_heartbeats(some_cases):
    for case in some_cases:
        assert valid(case)
        for relation in case.relations:
            promised = latest = reference.BEGINNING
            for action in case.schedule:
                if getattr(action, "target", None) != relation.name or not relation.timed:
                    continue
                if isinstance(action, Advance):
                    promised = max(promised, action.ts)
                    continue
                assert isinstance(action, Change)
                for ts, _, _ in action.rows:
                    time = reference.BEGINNING if ts is None else ts
                    assert time >= latest
                    assert time > promised or time == reference.BEGINNING
                    latest = time


def test_every_action_and_strategy_is_drawn(some_cases):
    drawn = {type(action) for case in some_cases for action in case.schedule}
    assert drawn >= {Push, Change, Advance, Run, Insert, Delete, Update, Register, Drop}
    assert {random_strategy(random.Random(seed)) for seed in range(500)} == set(STRATEGIES)


def test_a_latecomer_misses_what_was_promised_and_finds_relations_as_they_are():
    case = Case(
        streams=(Stream("S", (("t", "BIGINT"), ("a", "INT")), delay=2),),
        relations=(Relation("R", (("k", "INT"),), timed=False), Relation("C", (("k", "INT"),))),
        views={},
        queries={"s": "SELECT a FROM S", "r": "SELECT k FROM R", "c": "SELECT k FROM C"},
        schedule=(
            Push("R", ((7,),)),
            Push("S", ((1, 10), (5, 50), (4, 40))),
            Change("C", ((3, "+", (1,)), (6, "+", (2,)))),
            Update("R", "k", "k + 1"),
            *map(Register, "src"),
            Push("S", ((3, 30), (2, 20))),
            Insert("R", ((0,),)),
        ),
    )
    assert case.expected("s") == [(3, 1, (30,)), (4, 1, (40,)), (5, 1, (50,))]
    assert case.late() == {"S": [(2, 20)]}
    assert case.expected("r") == [(None, 1, (7,)), (5, 1, (0,)), (5, -1, (7,)), (5, 1, (8,))]
    assert case.expected("c") == [(None, 1, (1,)), (6, 1, (2,))]


def test_a_run_puts_later_changes_after_it():
    case = Case(
        streams=(Stream("S", (("t", "BIGINT"), ("a", "INT"))),),
        relations=(Relation("R", (("k", "INT"),), timed=False),),
        views={},
        queries={"r": "SELECT k FROM R", "late": "SELECT k FROM R"},
        schedule=(
            Insert("R", ((1,),)),
            Run(),
            Insert("R", ((2,),)),
            Push("S", ((9, 0),)),
            Delete("R", "k = 1"),
            Run(),
            Register("late"),
            Insert("R", ((3,),)),
        ),
    )
    assert case.expected("r") == [(None, 1, (1,)), (0, 1, (2,)), (9, -1, (1,)), (10, 1, (3,))]
    assert case.expected("late") == [(None, 1, (2,)), (10, 1, (3,))]


def test_most_queries_have_an_answer(some_cases):
    answers = [bool(case.expected(q)) for case in some_cases for q in case.queries]
    assert sum(answers) > 0.7 * len(answers)


class ReferenceEngine:
    """An engine that answers with the reference, perhaps wrongly: it stands in for Spark."""

    def __init__(self, case_of, spoil):
        self.case_of, self.spoil = case_of, spoil
        self.calls = []

    def __getattr__(self, method):
        return lambda *arguments: self.calls.append((method, arguments))

    def results(self, query):
        case = self.case_of()
        names = reference.output_names(case.queries[query], *case.reference_arguments())
        records = [
            {"ts": ts, "weight": weight} | dict(zip(names, row, strict=True))
            for ts, weight, row in self.spoil(case.expected(query))
        ]
        return SimpleNamespace(to_pylist=lambda **_: records)

    def left_out(self, query):
        records = [
            {"ts": ts, "weight": weight, "expression": f"{query}: {clause}"}
            for ts, weight, (clause,) in self.case_of().left_out(query)
        ]
        return SimpleNamespace(to_pylist=lambda **_: records)

    def late(self, stream):
        case = self.case_of()
        records = [dict(zip(case.names(stream), r, strict=True)) for r in case.late()[stream]]
        return SimpleNamespace(to_pylist=lambda **_: records)


def checked(case, spoil):
    """Checks a case against the stand-in."""
    current = [case]

    @contextmanager
    def factory(settings):
        assert settings == {"strategy": case.strategy}
        yield ReferenceEngine(lambda: current[0], spoil)

    return current, factory


def test_check_passes_a_right_engine_and_catches_a_wrong_one(some_cases):
    case = next(c for c in some_cases if len(c.expected("q1")) > 3)
    _, factory = checked(case, lambda rows: rows)
    assert check(factory, case) == []
    _, factory = checked(case, lambda rows: rows[:-1])
    failures = check(factory, case)
    assert failures
    assert failures[0].surplus
    assert "from millpond import Engine" in str(failures[0])


def test_shrinking_keeps_the_failure_and_drops_the_rest(some_cases, monkeypatch):
    case = next(c for c in some_cases if len(c.expected("q1")) > 3).only("q1")
    current, factory = checked(case, lambda rows: [(ts, w + 1, r) for ts, w, r in rows])

    def checking(engine_factory, candidate):
        current[0] = candidate
        return check(engine_factory, candidate)

    monkeypatch.setattr("tests.fuzz.check", checking)
    failure = shrink(factory, checking(factory, case)[0], seconds=10)
    assert len(failure.case.schedule) < len(case.schedule)
    assert failure.surplus


def test_a_case_prints_as_a_script_that_compiles(some_cases):
    for case in some_cases[:30]:
        compile(str(case), "case", "exec")
