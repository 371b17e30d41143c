"""Plans are graphs: views are shared, whoever walks a plan meets each node once, answers stay."""

from __future__ import annotations

import cProfile
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.catalog import Catalog
from millpond.cql.algebra import Aggregate, Distinct, Filter, Join
from millpond.cql.apply import apply, scanned
from millpond.cql.check.statements import check_script
from millpond.errors import MillpondError
from millpond.planning.draft import add_query
from millpond.planning.graph import Graph
from millpond.planning.guard import guard, left_out
from millpond.planning.optimise import optimise
from millpond.planning.physical import AggregateOperator, JoinOperator
from tests.drawn_examples import examples
from tests.planning.bags import content
from tests.planning.test_rewrites import checked

RELATION = "CREATE RELATION R (a INT, b INT);"
SELF_JOIN = "SELECT x.a, y.b FROM {0} x, {0} y WHERE x.a = y.a AND x.b > {1}"


def plan_of(script):
    """The plan of the last statement of a script."""
    catalog = Catalog()
    for statement in check_script(script, catalog):
        apply(statement.action, catalog)
    return statement.action.entry.plan


def levels(body, count, ends="CREATE QUERY q AS SELECT a, b FROM v{0}"):
    """A script with views, each over the one before; in the body {0} is that, {1} a number."""
    views = [
        f"CREATE VIEW v{i} AS {body.format('R' if i == 1 else f'v{i - 1}', i)};"
        for i in range(1, count + 1)
    ]
    return "\n".join([RELATION, *views, ends.format(count)])


# What it costs.


def calls(work):
    """How many functions are called, a measure of work that no machine changes."""
    profile = cProfile.Profile(builtins=False)
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def registered(script):
    """The engine with a script, or why there is none."""
    engine = Engine()
    engine.execute(script)
    return engine


BODIES = {
    "self join": SELF_JOIN,
    "self join of groups": "SELECT x.a, count(*) AS b FROM {0} x, {0} y "
    "WHERE x.a = y.a AND y.b > {1} GROUP BY x.a",
    "outer join": "SELECT x.a, y.b FROM {0} x LEFT JOIN {0} y ON x.a = y.b AND x.b > {1}",
    "union": "SELECT a, b FROM {0} WHERE a > {1} UNION SELECT b, a FROM {0} WHERE b > {1}",
    "except": "SELECT a, b FROM {0} EXCEPT SELECT b, a FROM {0} WHERE b > {1}",
    "in": "SELECT a, b FROM {0} WHERE a IN (SELECT b FROM {0} WHERE a > {1})",
    "not in": "SELECT a, b FROM {0} WHERE a NOT IN (SELECT b FROM {0} WHERE a > {1})",
    "value": "SELECT a, b FROM {0} WHERE a > (SELECT max(b) FROM {0})",
    "exists": "SELECT a, b FROM {0} o WHERE EXISTS (SELECT a FROM {0} i WHERE i.a = o.b)",
    "stream": "SELECT RSTREAM x.a, y.b FROM {0} x, {0} y WHERE x.a = y.a",
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["", " ON ERROR SKIP"])
@pytest.mark.parametrize("name", BODIES)
def test_registering_views_on_views_costs_in_proportion_to_their_number(name, policy):
    end = "CREATE QUERY q" + policy + " AS SELECT a + 1 AS a, b FROM v{0}"
    scripts = [levels(BODIES[name], count, end) for count in (8, 16, 32)]
    costs = [calls(lambda s=script: registered(s)) for script in scripts]
    assert costs[2] - costs[1] < 3 * (costs[1] - costs[0])
    assert costs[2] < 1_200_000


@pytest.mark.slow
def test_a_view_or_query_costs_the_same_however_many_there_are():
    engine = registered(RELATION)

    def one(i):
        engine.execute(
            f"CREATE VIEW v{i} AS SELECT a, count(*) AS b FROM R WHERE b > {i} GROUP BY a;"
            f"CREATE QUERY p{i} AS SELECT a, b FROM v{i} WHERE b > 1; SELECT a FROM v{i}"
        )

    first = calls(lambda: one(0))
    for i in range(1, 200):
        one(i)
    assert calls(lambda: one(200)) < 1.2 * first


def test_looking_at_a_plan_costs_in_proportion_too():
    engine = registered(levels(SELF_JOIN, 40))
    assert calls(lambda: engine.explain("q", "logical")) < 500_000
    assert calls(lambda: engine.explain("q")) < 500_000
    plan = engine.query_entry("q").plan
    assert set(scanned(plan)) == {"R"}
    assert len(repr(plan)) < 100
    assert calls(lambda: hash(plan_of(levels(SELF_JOIN, 40)))) < 500_000


def test_equal_graphs_are_equal_and_different_ones_are_not():
    one, two = plan_of(levels(SELF_JOIN, 30)), plan_of(levels(SELF_JOIN, 30))
    assert one == two
    assert one is not two
    assert optimise(one) == optimise(two)
    assert one != plan_of(levels(SELF_JOIN.replace(">", ">="), 30))


@pytest.mark.slow
def test_a_plan_may_be_as_high_as_it_likes():
    plan = checked("SELECT k FROM R")
    for _ in range(2000):
        plan = Distinct(plan)
    for policy in ("stop", "skip"):
        graph = Graph()
        output = add_query(graph, "q", optimise(plan, policy))
        assert len(graph.upstream(output)) == 2001
        assert len(graph.remove(output)) == 2001
    assert guard(plan).faults == []


# What is shared.


def test_views_are_operators_that_exist_once():
    graph = registered(levels(SELF_JOIN, 40)).graph
    joins = [o for o in graph.operators.values() if isinstance(o, JoinOperator)]
    assert len(joins) == 40


def shared_in(query, kind, views=""):
    """The nodes of a kind in the optimised plan of a query."""
    plan = optimise(plan_of(f"{RELATION} {views} CREATE QUERY q AS {query}"))
    return [node for node in dict.fromkeys(plan.walk()) if isinstance(node, kind)]


GROUPS = "CREATE VIEW g AS SELECT a, count(*) AS c FROM R GROUP BY a;"


def test_below_a_node_with_two_readers_only_the_disjunction_of_their_selections_is_pushed():
    query = "SELECT x.a FROM g x, g y WHERE x.a > 5 AND y.a < 3 AND x.c = y.c"
    (group,) = shared_in(query, Aggregate, GROUPS)
    assert str(group.input.predicate) == "((a > 5) OR (a < 3))"
    above = [f for f in shared_in(query, Filter, GROUPS) if f.input == group]
    assert sorted(str(f.predicate) for f in above) == ["(a < 3)", "(a > 5)"]


def test_a_selection_that_all_readers_have_is_pushed_and_not_repeated():
    query = "SELECT x.a FROM g x, g y WHERE x.a > 5 AND y.a > 5 AND y.c > 1 AND x.c = y.c"
    (group,) = shared_in(query, Aggregate, GROUPS)
    assert str(group.input.predicate) == "(a > 5)"
    above = [f for f in shared_in(query, Filter, GROUPS) if f.input == group]
    assert [str(f.predicate) for f in above] == ["(count(*) > 1)"]


def test_nothing_is_pushed_if_one_reader_selects_nothing():
    query = "SELECT x.a FROM g x, g y WHERE x.a > 5 AND x.c = y.c"
    (group,) = shared_in(query, Aggregate, GROUPS)
    assert not isinstance(group.input, Filter)


def test_a_node_with_two_readers_has_the_columns_of_both():
    views = "CREATE VIEW g AS SELECT a, count(*) AS c, max(b) AS m, max(a) AS n FROM R GROUP BY a;"
    query = "SELECT x.c, y.m FROM g x, g y WHERE x.a = y.a"
    (group,) = shared_in(query, Aggregate, views)
    assert [str(aggregate) for aggregate in group.aggregates] == ["count(*)", "max(b)"]


def test_a_join_with_two_readers_is_computed_once_with_its_projection():
    views = "CREATE VIEW j AS SELECT x.a + y.b AS s, x.b FROM R x, R y WHERE x.a = y.a;"
    engine = registered(
        f"{RELATION} {views} CREATE QUERY q AS SELECT x.s FROM j x, j y WHERE x.s > 1 AND x.b = y.b"
    )
    joins = [o for o in engine.graph.operators.values() if isinstance(o, JoinOperator)]
    assert len(joins) == 2
    assert joins[0].post.schema.names == ("s", "b")


def test_what_is_fused_into_its_readers_has_the_form_it_has_in_other_queries():
    both = (
        f"{RELATION} CREATE VIEW v AS SELECT a, b FROM R WHERE b > 1;"
        "CREATE QUERY one AS SELECT a, count(*) AS c FROM v WHERE a > 2 GROUP BY a;"
        "CREATE QUERY two AS SELECT g.a FROM v AS w, "
        "(SELECT a, count(*) AS c FROM v WHERE a > 2 GROUP BY a) AS g WHERE g.c = w.b"
    )
    graph = registered(both).graph
    assert sum(isinstance(o, AggregateOperator) for o in graph.operators.values()) == 1


# What is refused.


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("SELECT a, b FROM {0} WHERE a > {1} UNION ALL SELECT b, a FROM {0}", "1099511627776 ways"),
        ("SELECT a + a AS a, b FROM {0}", "parts, and 20000 are allowed"),
    ],
)
def test_what_would_explode_inside_one_operator_is_refused_and_leaves_nothing(body, words):
    engine = registered(levels(body, 40, "SELECT a FROM v1"))
    before = len(engine.graph.operators)
    with pytest.raises(MillpondError, match=words):
        engine.execute("CREATE QUERY q AS SELECT a, b FROM v40")
    assert len(engine.graph.operators) == before
    assert engine.catalog.get("q") is None


@pytest.mark.slow
def test_expressions_nested_too_deeply_are_refused_in_words():
    for count in (160, 400):
        with pytest.raises(MillpondError, match="nested too deeply"):
            optimise(plan_of(levels("SELECT a + {1} AS a, b FROM {0}", count)))


# What it means.

WHERE = ("a > 1", "b < 2", "a > 1 AND b < 2", "a + 1 > b", "a IS NULL OR b > 0")
OVER_BOTH = ("x.a > 1", "y.b < 2", "x.b > 0 AND y.b < 2", "x.b > y.b")
BODY = (
    "SELECT {0} AS a, b FROM {1} WHERE {2}",
    "SELECT x.a, y.b FROM {1} x, {3} y WHERE x.a = y.a AND {4}",
    "SELECT x.a, y.b FROM {1} x LEFT JOIN {3} y ON x.a = y.b AND y.a > 0",
    "SELECT x.a, y.b FROM {1} x FULL JOIN {3} y ON x.a = y.b",
    "SELECT a, count(*) AS b FROM {1} WHERE {2} GROUP BY a",
    "SELECT a, b FROM {1} WHERE {2} UNION ALL SELECT b, a FROM {3}",
    "SELECT a, b FROM {1} EXCEPT SELECT a, b FROM {3} WHERE {2}",
    "SELECT DISTINCT a, b FROM {1} WHERE {2}",
    "SELECT a, b FROM {1} WHERE a IN (SELECT b FROM {3} WHERE {2})",
    "SELECT a, b FROM {1} WHERE b <= (SELECT max(a) FROM {3} WHERE {2})",
)
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 3)), max_size=5)


@st.composite
def programs(draw):
    """Bodies of views, each with the two sources it reads: -1 is the relation."""
    count = draw(st.integers(1, 5))
    made = []
    for i in range(count):
        near = st.integers(max(-1, i - 2), i - 1)
        one, other, condition = draw(near), draw(near), draw(st.sampled_from(WHERE))
        over_both = draw(
            st.sampled_from(["x.a > 1", "y.b < 2", "x.b > 0 AND y.b < 2", "x.b > y.b"])
        )
        body, first = draw(st.sampled_from(BODY)), draw(st.sampled_from(["a", "a + 1"]))
        made.append((body, first, one, other, condition, over_both))
    return made


def as_views(program):
    """The program with views; the query reads the last."""
    names = {-1: "R"} | {i: f"v{i}" for i in range(len(program))}
    views = [
        f"CREATE VIEW v{i} AS "
        + body.format(first, names[one], condition, names[other], qualified)
        + ";"
        for i, (body, first, one, other, condition, qualified) in enumerate(program)
    ]
    return "\n".join([RELATION, *views, f"CREATE QUERY q AS SELECT a, b FROM v{len(program) - 1}"])


def as_one_text(program):
    """The program as one query; each use of a view has a selection of its own, always true."""
    uses = iter(range(1000, 10**9))

    def text(i):
        if i == -1:
            return "R"
        body, first, one, other, condition, qualified = program[i]
        inner = body.format(first, text(one), condition, text(other), qualified)
        return f"(SELECT a, b FROM ({inner}) WHERE coalesce(a, 0) <> {next(uses)})"

    return f"{RELATION} CREATE QUERY q AS SELECT a, b FROM {text(len(program) - 1)}"


@pytest.mark.slow
@examples(200)
@given(programs(), ROWS)
def test_a_graph_gives_the_answers_of_the_tree_it_stands_for(program, rows):
    relations = {"R": Counter(rows)}
    graph, tree = optimise(plan_of(as_views(program))), optimise(plan_of(as_one_text(program)))
    assert content(graph, relations) == content(tree, relations)


@pytest.mark.slow
@examples(100)
@given(programs(), ROWS)
def test_rewriting_changes_no_answer(program, rows):
    if any("SELECT b FROM" in body or "max(" in body for body, *_ in program):
        return  # subqueries in expressions have no meaning of their own here
    plan, relations = plan_of(as_views(program)), {"R": Counter(rows)}
    assert content(plan, relations) == content(optimise(plan), relations)
    assert content(optimise(plan, "skip"), relations) == content(plan, relations)


def test_what_a_view_leaves_out_counts_once_for_each_use():
    body = "SELECT x.a + 1 AS a, y.b FROM {0} x, {0} y WHERE x.a = y.b"
    faults = guard(plan_of(levels(body, 40))).faults
    assert [fault.uses for fault in faults] == [2**i for i in reversed(range(39))]
    aside = optimise(left_out(faults))
    assert len(list(aside.walk())) < 1000
    assert any(isinstance(node, Join) for node in aside.walk())
