"""ALTER QUERY … ON ERROR: each element is judged by the policy of its time, or it is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millpond import Engine
from millpond.errors import CqlError, InputError
from tests.crashing import die, validate_open
from tests.drawn_examples import examples

STREAM = "CREATE STREAM S (t BIGINT, a BIGINT) TIMESTAMP BY t;"
BIG = 2**63 - 1
QUERY = "CREATE QUERY q{} AS SELECT a + a AS b FROM S;"


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(STREAM)
        yield engine


@pytest.fixture
def reopened(tmp_path):
    engines = []

    def reopen():
        if engines:
            die(engines.pop())
        engines.append(Engine(store=tmp_path / "store"))
        validate_open(engines[-1])
        return engines[-1]

    yield reopen
    for engine in engines:
        engine.close()


def feed(engine, *rows):
    engine.push("S", list(rows))
    engine.advance("S", rows[-1][0])
    engine.run_until_idle()


def answers(engine, query="q"):
    return engine.results(query)["b"].to_pylist()


def left_out(engine, query="q"):
    return [row["row"] for row in engine.left_out(query).to_pylist()]


def policy(engine):
    return engine.query_entry("q").on_error


def test_a_query_that_keeps_nothing_goes_on_with_the_other_policy(engine):
    engine.execute(QUERY.format(""))
    feed(engine, (1, 1), (2, 2))
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    feed(engine, (3, 3), (4, BIG), (5, 5))
    assert answers(engine) == [2, 4, 6, 10]
    assert left_out(engine) == [f"t = 4, a = {BIG}"]
    assert engine.left_out_count("q") == 1
    engine.execute("ALTER QUERY q SET ON ERROR STOP")
    assert left_out(engine) == []
    feed(engine, (6, 6))
    assert answers(engine) == [2, 4, 6, 10, 12]
    with pytest.raises(InputError, match="q"):
        feed(engine, (7, BIG))
    assert answers(engine) == [2, 4, 6, 10, 12]


def test_what_waits_is_judged_by_the_new_policy_and_nothing_twice(engine):
    engine.execute(QUERY.format(""))
    feed(engine, (1, 1))
    engine.push("S", [(2, 2), (3, BIG), (4, 4)])
    engine.advance("S", 4)
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    engine.run_until_idle()
    assert answers(engine) == [2, 4, 8]
    assert len(left_out(engine)) == 1


def test_others_keep_their_policy_and_what_they_share(engine):
    engine.execute(QUERY.format("") + QUERY.format("1") + QUERY.format("2 ON ERROR SKIP"))
    feed(engine, (1, 1))
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    with pytest.raises(InputError, match="q1"):
        feed(engine, (2, BIG), (3, 3))
    assert answers(engine) == answers(engine, "q2") == [2, 6]
    assert answers(engine, "q1") == [2]
    assert [failure.query for failure in engine.failures()] == ["q1"]


def test_a_query_that_came_late_sees_nothing_of_before(engine):
    engine.execute("CREATE QUERY first AS SELECT a + a AS b FROM S [RANGE 100];")
    feed(engine, (1, 1), (2, 2))
    engine.execute(QUERY.format(""))
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    feed(engine, (3, 3))
    engine.execute("ALTER QUERY q ON ERROR STOP; ALTER QUERY q ON ERROR SKIP")
    feed(engine, (4, BIG - BIG // 3 * 2))
    assert answers(engine)[0] == 6
    assert len(answers(engine)) == 2


def test_queries_of_a_group_leave_it(engine):
    for k in range(4):
        engine.execute(f"CREATE QUERY g{k} AS SELECT a + a AS b FROM S WHERE a > {k}")
    feed(engine, (1, 2))
    engine.execute("ALTER QUERY g1 ON ERROR SKIP")
    feed(engine, (2, 3))
    assert answers(engine, "g1") == answers(engine, "g0") == [4, 6]
    assert answers(engine, "g2") == [6]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT a + a AS b FROM S [RANGE 5]", "Istream"),
        ("SELECT count(a + a) AS b FROM S", "Aggregate"),
        ("SELECT ISTREAM a + a AS b FROM S [NOW]", "Istream"),
        ("SELECT DISTINCT a + a AS b FROM S", "Distinct"),
    ],
)
def test_a_query_that_keeps_what_came_is_refused_and_can_begin_anew(engine, query, reason):
    engine.execute(f"CREATE QUERY q AS {query}")
    feed(engine, (1, 1))
    with pytest.raises(CqlError, match=f"line 1, column 1: .*{reason}.*DEACTIVATE.*ACTIVATE"):
        engine.execute("ALTER QUERY q ON ERROR SKIP")
    assert policy(engine) == "stop"
    engine.execute("ALTER QUERY q DEACTIVATE; ALTER QUERY q ON ERROR SKIP; ALTER QUERY q ACTIVATE;")
    feed(engine, (2, BIG))
    assert policy(engine) == "skip"
    assert engine.left_out_count("q") == 1


@pytest.mark.parametrize("query", ["SELECT a + a AS b FROM S [RANGE 5]", "SELECT a AS b FROM S"])
def test_before_anything_has_come_any_query_changes(engine, query):
    engine.execute(f"CREATE QUERY q AS {query}; ALTER QUERY q ON ERROR SKIP")
    feed(engine, (1, BIG), (2, 1))
    engine.finish()
    assert policy(engine) == "skip"
    assert not engine.failures()


def test_a_query_in_which_nothing_can_fail_keeps_its_state(engine):
    engine.execute("CREATE QUERY q AS SELECT count(*) AS b FROM S [RANGE 100]")
    feed(engine, (1, 1))
    before = dict(engine.graph.operators)
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    assert engine.graph.operators == before
    feed(engine, (2, 1))
    assert answers(engine)[-1] == 2
    assert policy(engine) == "skip"


def test_a_failed_query_changes_and_is_restarted_by_who_asks_for_it(engine):
    engine.execute("CREATE QUERY q AS SELECT sum(a + a) AS b FROM S [RANGE 100]")
    with pytest.raises(InputError):
        feed(engine, (1, BIG))
    engine.execute("ALTER QUERY q ON ERROR SKIP; ALTER QUERY q SET WEIGHT 2")
    assert engine.failures()
    engine.restart("q")
    feed(engine, (2, BIG), (3, 4))
    assert answers(engine)[-1] == 8
    assert engine.left_out_count("q") == 1


def test_a_change_that_came_before_the_first_step_counts_what_was_pushed(engine):
    engine.execute(QUERY.format(""))
    engine.push("S", [(1, 1), (2, BIG)])
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    engine.finish()
    assert answers(engine) == [2]


@pytest.mark.parametrize("compacts", [False, True])
def test_a_changed_policy_survives(reopened, compacts):
    engine = reopened()
    engine.execute(STREAM + QUERY.format(""))
    feed(engine, (1, 1))
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    feed(engine, (2, BIG), (3, 3))
    if compacts:
        engine.compact_log()
    engine = reopened()
    assert policy(engine) == "skip"
    assert answers(engine) == [2, 6]
    assert len(left_out(engine)) == engine.left_out_count("q") == 1
    feed(engine, (4, BIG), (5, 5))
    engine.execute("ALTER QUERY q ON ERROR STOP;")
    if compacts:
        engine.compact_log()
    engine = reopened()
    assert policy(engine) == "stop"
    feed(engine, (6, 6))
    assert answers(engine) == [2, 6, 10, 12]
    assert left_out(engine) == []
    engine = reopened()
    engine.execute("CREATE QUERY late AS SELECT a AS b FROM S")
    with pytest.raises(InputError):
        feed(engine, (7, BIG))
    assert answers(engine, "late") == [BIG]


def test_a_change_that_waits_to_be_done_survives(reopened):
    engine = reopened()
    engine.execute(STREAM + QUERY.format(""))
    feed(engine, (1, 1))
    engine.push("S", [(2, 2), (3, BIG), (4, 4)])
    engine.advance("S", 4)
    engine.execute("ALTER QUERY q ON ERROR SKIP")
    engine = reopened()
    engine.compact_log()
    engine = reopened()
    engine.run_until_idle()
    assert answers(engine) == [2, 4, 8]
    assert len(left_out(engine)) == 1


def test_the_knob_of_the_entity_is_the_statement(engine):
    engine.execute(QUERY.format(""))
    entity = engine.entities().get("query", "q")
    entity.set("on_error", "skip")
    assert (policy(engine), entity.get("on_error")) == ("skip", "skip")


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.lists(st.sampled_from([1, 2, 3, BIG]), max_size=4)),
        st.tuples(st.just("work"), st.none()),
        st.tuples(st.just("alter"), st.sampled_from(["skip", "stop"])),
        st.tuples(st.just("die"), st.booleans()),
    ),
    max_size=14,
)


class Model:
    """The definition: what waits is judged by the policy at the time of the work."""

    def __init__(self):
        self.policy, self.waiting, self.answers, self.left_out = "stop", [], [], 0
        self.has_failed = False

    def work(self):
        for value in self.waiting:
            if value != BIG:
                self.answers.append(value + value)
            elif self.policy == "skip":
                self.left_out += 1
            else:
                self.has_failed = True
                return
        self.waiting = []

    def alter(self, policy):
        if policy != self.policy:
            self.policy, self.left_out = policy, 0


@pytest.mark.slow
@examples(40)
@given(EVENTS)
@example([("push", [1]), ("work", None), ("alter", "skip"), ("push", [BIG, 2]), ("die", True)])
@example([("push", [1, BIG]), ("alter", "skip"), ("die", False), ("work", None), ("push", [3])])
def test_each_element_is_judged_by_the_policy_of_its_time(tmp_path_factory, events):
    store, model, time = tmp_path_factory.mktemp("policies") / "store", Model(), 0
    engine = Engine(store=store)
    engine.execute(STREAM + QUERY.format(""))
    for kind, given_ in [*events, ("work", None)]:
        if kind == "push":
            rows = [(time + place, value) for place, value in enumerate(given_, start=1)]
            time += len(rows)
            engine.push("S", rows)
            engine.advance("S", time)
            model.waiting += given_
        elif kind == "alter":
            engine.execute_anew(f"ALTER QUERY q ON ERROR {given_.upper()}")
            model.alter(given_)
        elif kind == "die":
            if given_:
                engine.compact_log()
            die(engine)
            engine = Engine(store=store)
            validate_open(engine)
        else:
            model.work()
            if model.has_failed:
                with pytest.raises(InputError):
                    engine.run_until_idle()
                break
            engine.run_until_idle()
            assert answers(engine) == model.answers
            assert engine.left_out_count("q") == model.left_out
    assert bool(engine.failures()) == model.has_failed
    engine.close()
