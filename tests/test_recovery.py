"""An engine that died goes on where it was: what it has logged, and nothing else, happened."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import CqlError, InputError, StateError
from millpond.identities import OperatorId
from millpond.storage.log import CommitLog
from tests.crashing import Mortal, die, recovered, validate_open

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t DELAY 2;"
RELATION = "CREATE RELATION R (a INT, b STRING) FROM push();"
QUERY = "CREATE QUERY q AS SELECT a FROM S [RANGE 3] WHERE a > 1;"


@pytest.fixture
def reopened(tmp_path):
    """Opens the store, as often as it is called, each time after a death."""
    engines = []

    def reopen(**settings):
        if engines:
            die(engines.pop())
        engines.append(Engine({"validate": "on"} | settings, store=tmp_path / "store"))
        validate_open(engines[-1])
        return engines[-1]

    yield reopen
    for engine in engines:
        engine.close()


def changed_log(path, change):
    """Writes the records of a log anew, each as ``change`` says."""
    log = CommitLog(path)
    found = [change(record) for record in log.read()]
    log.rewrite(found)
    log.close()


# -- statements ----------------------------------------------------------------------------------


def test_a_script_that_is_started_again_is_passed_over(reopened):
    script = STREAM + RELATION + QUERY + "INSERT INTO R VALUES (1, 'x');"
    reopened().execute(script)
    engine = reopened()
    engine.execute(script)
    assert engine.inputs.relations["r"].changed_rows == 1
    engine.execute("INSERT INTO R VALUES (2, 'y');")
    assert reopened().inputs.relations["r"].changed_rows == 2


def test_statements_are_passed_over_as_often_as_they_were_executed(reopened):
    twice = RELATION + "INSERT INTO R VALUES (1, 'x'); INSERT INTO R VALUES (1, 'x');"
    reopened().execute(twice)
    engine = reopened()
    engine.execute(twice + "INSERT INTO R VALUES (1, 'x');")
    assert engine.inputs.relations["r"].changed_rows == 3


def test_a_statement_may_be_repeated_within_one_run(reopened):
    engine = reopened()
    engine.execute(RELATION + "INSERT INTO R VALUES (1, 'x');")
    engine.execute("INSERT INTO R VALUES (1, 'x');")
    assert engine.inputs.relations["r"].changed_rows == 2


@pytest.mark.parametrize("name", ["q", '"q r"'])
def test_another_text_under_the_same_name_is_refused_with_both(reopened, name):
    reopened().execute(STREAM + f"CREATE QUERY {name} AS SELECT a FROM S;")
    other = f"CREATE QUERY {name} AS SELECT a FROM S WHERE a > 7"
    with pytest.raises(StateError) as refused:
        reopened().execute(other)
    assert f"CREATE QUERY {name} AS SELECT a FROM S\n" in str(refused.value)
    assert other in str(refused.value)


def test_what_was_dropped_may_be_declared_anew(reopened):
    reopened().execute(STREAM + QUERY)
    engine = reopened()
    engine.execute("DROP QUERY q; CREATE QUERY q AS SELECT a FROM S WHERE a > 7;")
    assert "a > 7" in reopened().query_entry("q").text


def test_a_statement_that_failed_did_not_happen(reopened):
    engine = reopened()
    engine.execute(RELATION)
    with pytest.raises(CqlError):
        engine.execute("CREATE RELATION T (a INT) FROM csv('/nowhere/t.csv');")
    assert list(reopened().catalog.entries) == ["r"]


def test_declarations_weights_and_settings_survive(reopened):
    engine = reopened()
    engine.execute("SET tick = '1 second';" + STREAM + QUERY)
    engine.execute("CREATE VIEW v AS SELECT a FROM S WHERE a > 5; SET driver_rows = 7;")
    engine.execute("CREATE QUERY p AS SELECT a FROM v; ALTER QUERY p SET WEIGHT 4;")
    engine.execute("ALTER QUERY q INACTIVE; CREATE QUERY gone AS SELECT a FROM S;")
    engine.drop("gone")
    engine = reopened()
    assert list(engine.catalog.entries) == ["s", "q", "v", "p"]
    assert engine.query_entry("p").weight == 4
    assert not engine.query_entry("q").active
    assert engine.settings.driver_rows == 7
    assert engine.catalog.tick_microseconds == 1_000_000


def test_a_query_holds_the_view_that_was_there_when_it_was_registered(reopened):
    engine = reopened()
    engine.execute(STREAM + "CREATE VIEW v AS SELECT a FROM S WHERE a > 5;")
    engine.execute("CREATE QUERY p AS SELECT a FROM v; DROP VIEW v;")
    engine.execute(
        "CREATE VIEW v AS SELECT a FROM S WHERE a > 6; CREATE QUERY r AS SELECT a FROM v"
    )
    plans = engine.explain("p", "logical").text, engine.explain("r", "logical").text
    for _ in range(2):
        engine = reopened()
        assert (engine.explain("p", "logical").text, engine.explain("r", "logical").text) == plans
        engine.compact_log()


def test_errors_of_a_query_that_skips_them_keep_their_place(reopened):
    reopened().execute(STREAM + "\n\n  CREATE QUERY q ON ERROR SKIP AS SELECT a + a AS b FROM S;")
    engine = reopened()
    engine.compact_log()
    assert reopened().query_entry("q") == engine.query_entry("q")


# -- inputs --------------------------------------------------------------------------------------


def test_tuples_late_ones_and_heartbeats_survive(reopened):
    engine = reopened()
    engine.execute(STREAM + QUERY)
    engine.push("S", [(10, 1), (3, 2), (11, 3)])
    engine.push("S", [(4, 4)])
    engine.advance("S", 20)
    for _ in range(2):
        engine = reopened()
        intake = engine.inputs.streams["s"]
        assert (intake.arrived, intake.late_count, intake.largest) == (2, 2, 11)
        assert intake.queue.heartbeat == 20
        assert engine.late("S").to_pylist() == [{"t": 3, "a": 2}, {"t": 4, "a": 4}]
        engine.compact_log()


def test_what_was_pushed_with_a_key_counts_once_after_a_death_too(reopened):
    engine = reopened()
    engine.execute(STREAM + QUERY)
    for _ in range(2):
        engine.push("S", [(10, 1)], key="first")
    for _ in range(2):
        engine = reopened()
        engine.push("S", [(10, 1)], key="first")
        assert engine.inputs.streams["s"].arrived == 1
        engine.compact_log()
    engine.push("S", [(11, 1)], key="second")
    assert engine.inputs.streams["s"].arrived == 2


def test_a_dropped_stream_takes_its_late_tuples_along(reopened):
    engine = reopened()
    engine.execute(STREAM)
    engine.push("S", [(10, 1), (3, 2)])
    engine.execute("DROP STREAM S;")
    validate_open(engine)
    for _ in range(3):
        assert not reopened().catalog.entries


def test_a_relation_survives_with_its_content(reopened):
    engine = reopened()
    engine.execute(RELATION + "INSERT INTO R VALUES (1, 'x'), (2, 'y');" + STREAM)
    engine.push("S", [(10, 1)])
    engine.execute("INSERT INTO R VALUES (3, 'z');")
    content = engine.inputs.relation("R").content().to_pylist()
    for _ in range(2):
        engine = reopened()
        assert engine.inputs.relation("R").content().to_pylist() == content
        engine.compact_log()
    engine.execute("INSERT INTO R VALUES (4, 'z');")
    assert engine.inputs.relation("R").content().num_rows == 4


def test_a_limit_of_rows_counts_those_of_the_run_before(reopened, tmp_path):
    (tmp_path / "s.csv").write_text("t,a\n" + "".join(f"{n},{n}\n" for n in range(20)))
    stream = f"CREATE STREAM File (t BIGINT, a INT) TIMESTAMP BY t FROM csv('{tmp_path}/s.csv');"
    engine = reopened(page_rows=3)
    engine.execute(stream + "CREATE QUERY f AS SELECT a FROM File;")
    engine.run_sources(rows=6)
    engine = reopened(page_rows=3)
    engine.finish(rows=10)
    assert engine.results("f")["a"].to_pylist() == list(range(10))


# -- the store -----------------------------------------------------------------------------------


def test_a_second_engine_is_refused(reopened, tmp_path):
    engine = reopened()
    with pytest.raises(StateError, match="another engine has it open"):
        Engine(store=tmp_path / "store")
    engine.close()
    Engine(store=tmp_path / "store").close()


def test_a_damaged_log_is_refused_and_the_store_is_free_again(reopened, tmp_path):
    engine = reopened()
    engine.execute(STREAM)
    engine.execute(QUERY)
    engine.close()
    path = tmp_path / "store" / "commits.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"?" + whole[101:])
    for _ in range(2):
        with pytest.raises(StateError, match="damaged at byte"):
            Engine(store=tmp_path / "store")
    path.write_bytes(whole)
    assert list(reopened().catalog.entries) == ["s", "q"]


@pytest.mark.parametrize("shortens", [False, True])
def test_what_runs_goes_on_where_others_would_be_planned_otherwise(reopened, monkeypatch, shortens):
    two = "CREATE QUERY w AS SELECT a FROM S WHERE a > 1;"
    engine = reopened()
    engine.execute(STREAM + QUERY + two)
    engine.push("S", [(1, 1), (2, 2)])
    engine.run_until_idle()
    if shortens:
        engine.compact_log()
    operators = engine.graph.whole().operators
    monkeypatch.setattr("millpond.sharing.planned.optimise", lambda plan, *policy: plan)
    engine = reopened(linear="apart", sharing="off")
    assert engine.graph.whole().operators == operators
    engine.push("S", [(3, 3)])
    engine.finish()
    assert [row["a"] for row in engine.results("w").to_pylist()] == [2, 3]


@pytest.mark.parametrize("setting", [{"tick": "1 second"}, {"seed": 3}])
def test_settings_that_times_and_samples_depend_on_must_be_the_same(reopened, setting):
    reopened().execute(STREAM)
    with pytest.raises(StateError, match="set the same or another store"):
        reopened(**setting)


def test_set_store_goes_on_with_what_is_there(reopened, tmp_path):
    reopened().execute(STREAM + QUERY)
    reopened().close()
    with Engine() as engine:
        engine.execute(f"SET store = '{tmp_path / 'store'}';" + STREAM)
        assert list(engine.catalog.entries) == ["s", "q"]
        engine.push("S", [(1, 1)])
        with pytest.raises(CqlError, match="make it the first statement"):
            engine.execute("SET store = 'memory';")
    assert reopened().inputs.streams["s"].arrived == 1


def test_what_no_step_committed_is_removed(reopened, tmp_path):
    engine = reopened()
    engine.execute(STREAM)
    for folder in ("pages", "state"):
        engine.store.path(engine.store.new_name(folder, ".parquet")).write_bytes(b"half a page")
    reopened()  # which looks at the files
    assert not list((tmp_path / "store" / "pages").iterdir())


# -- a log that begins anew ----------------------------------------------------------------------


def test_a_log_that_began_anew_says_the_same(reopened):
    engine = reopened()
    engine.execute(STREAM + RELATION + "CREATE QUERY first AS SELECT a FROM S [RANGE 3];")
    engine.push("S", [(10, 1), (3, 2)])
    engine.execute("INSERT INTO R VALUES (1, 'x'); SELECT count(*) AS n FROM S [RANGE 3];")
    engine.execute("SELECT b FROM R; CREATE QUERY j AS SELECT b FROM S [NOW], R WHERE S.a = R.a;")
    engine.push("S", [(12, 1)])
    engine.execute("DROP QUERY first; DROP QUERY q1; CREATE QUERY late AS SELECT b FROM R;")
    engine.execute("ALTER QUERY j INACTIVE; ALTER QUERY q2 SET WEIGHT 3;")
    operators = engine.graph.whole()
    engine = reopened()
    before = recovered(engine)
    engine.compact_log()
    engine = reopened()
    assert recovered(engine) == before
    assert engine.graph.whole() == operators
    assert list(engine.catalog.entries) == ["s", "r", "q2", "j", "late"]
    engine.execute("CREATE QUERY next AS SELECT a FROM S; ALTER QUERY j ACTIVE;")
    again = recovered(engine)
    assert recovered(reopened()) == again


def test_a_log_is_begun_anew_when_it_has_grown(reopened, tmp_path, monkeypatch):
    monkeypatch.setattr("millpond.storage.journal.LOG_BYTES", 10_000)
    path = tmp_path / "store" / "commits.log"
    engine = reopened()
    engine.execute(STREAM + RELATION)
    for n in range(200):
        engine.advance("S", n)
    before, long = recovered(engine), path.stat().st_size
    assert long > 10_000
    assert recovered(reopened()) == before
    assert path.stat().st_size < long / 4


@pytest.mark.parametrize("death", range(5))
def test_a_relation_is_whole_for_who_came_later_after_a_death(tmp_path, death):
    calls = iter(range(9))
    with Mortal(lambda: Engine(store=tmp_path / "store"), lambda: next(calls) == death) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT) TIMESTAMP BY t; CREATE QUERY p AS SELECT t FROM S;"
            "CREATE RELATION R (k INT) FROM push() WITH (changes = true)"
        )
        engine.push_changes("R", [(None, "+", (1,))])
        engine.push_changes("R", [(28, "+", (2,))])
        engine.execute("CREATE QUERY q AS SELECT count(*) AS n FROM R")
        engine.push("S", [(9,)])
        engine.finish()
        found = [(row["ts"], row["weight"], row["n"]) for row in engine.results("q").to_pylist()]
    assert found == [(None, 1, 1), (28, -1, 1), (28, 1, 2)]


# -- which queries run as one ----------------------------------------------------------------

TIMED = "CREATE STREAM T (ts BIGINT, k INT) TIMESTAMP BY ts;"
CHANGING = "CREATE RELATION C (k INT) FROM push() WITH (changes = true);"
KEEPS = "CREATE QUERY keep AS SELECT count(*) AS n FROM T [RANGE 1000];"


def groups_of(engine):
    return {group.name: group.queries for group in engine.queries.groups}


def feed(engine, *times):
    for ts in times:
        engine.push("T", [(ts, 1), (ts, 2)])
        engine.advance("T", ts)
        engine.run_until_idle()


def beginning_earlier(engine):
    """A query that nobody can run with, as it sees what others do not; what it puts out soon."""
    engine.execute(TIMED + KEEPS)
    feed(engine, 1, 2, 3)
    engine.execute("CREATE QUERY a FROM 2 AS SELECT ts FROM T WHERE k = 1")
    return [2, 3]


def behind_a_relation(engine):
    """A query whose relation is further than its stream, until the stream has overtaken it."""
    engine.execute(TIMED + CHANGING + KEEPS)
    feed(engine, 1, 2, 3)
    engine.push_changes("C", [(2, "+", (1,))])
    engine.advance("C", 8)
    engine.execute("CREATE QUERY a AS SELECT ts FROM T [NOW], C WHERE T.k = C.k AND T.k < 2")
    feed(engine, 6)
    return [6]


@pytest.mark.parametrize(
    ("begin", "other"),
    [
        (beginning_earlier, "SELECT ts FROM T WHERE k = 2"),
        (behind_a_relation, "SELECT ts FROM T [NOW], C WHERE T.k = C.k AND T.k < 3"),
    ],
)
@pytest.mark.parametrize("dies", [False, True])
def test_a_log_that_began_anew_knows_who_may_run_with_others(reopened, begin, other, dies):
    engine = reopened()
    soon = begin(engine)
    engine.compact_log()
    if dies:
        engine = reopened()
    feed(engine, 9)
    for name in ("x", "y"):
        engine.execute(f"CREATE QUERY {name} AS {other}")
    groups = groups_of(engine)
    assert [list(queries.values()) for queries in groups.values()] == [["x", "y"]]
    feed(engine, 10)
    engine = reopened()
    assert groups_of(engine) == groups
    engine.finish()
    answers = {name: [row["ts"] for row in engine.results(name).to_pylist()] for name in "axy"}
    assert answers == {"a": [*soon, 9, 10], "x": [10], "y": [10]}


def test_queries_that_stood_alone_keep_their_numbers_in_a_group(reopened):
    engine = reopened()
    engine.execute(TIMED)
    for name in ("a", "b"):
        engine.execute(f"CREATE QUERY {name} AS SELECT k FROM T [ROWS 3]")
    engine.execute("ALTER QUERY a INACTIVE; ALTER QUERY a ACTIVE")
    engine.compact_log()
    engine.execute("CREATE QUERY c AS SELECT k FROM T [ROWS 4]")
    groups = groups_of(engine)
    assert [sorted(queries.values()) for queries in groups.values()] == [["a", "b", "c"]]
    assert groups_of(reopened()) == groups


def test_nothing_is_left_of_a_part_that_was_cut_off_and_fused_again(reopened):
    engine = reopened()
    engine.execute(TIMED + "CREATE QUERY a AS SELECT count(*) AS n FROM T [RANGE 3] WHERE k = 1")
    feed(engine, 1, 2)
    part = next(iter(engine.runtime.cutting.cuts.named(OperatorId("op1"))))
    engine.execute(f"ALTER PLAN QUEUE AFTER {part}")
    assert part in engine.graph.operators
    engine.execute(f"ALTER PLAN NO QUEUE AFTER {part}")
    engine = reopened()
    before = recovered(engine)
    assert part not in engine.runtime.queues
    engine.compact_log()
    engine = reopened()
    assert recovered(engine) == before
    feed(engine, 3)
    assert engine.results("a")["n"].to_pylist()[-1] == 3


def test_a_query_that_was_restarted_reads_its_relation_after_a_death(reopened):
    engine = reopened()
    engine.execute(STREAM + RELATION + "INSERT INTO R VALUES (1, 'x');")
    risky = "CAST(S.a * 1500000000 AS INT)"
    engine.execute(f"CREATE QUERY j AS SELECT {risky} AS n, b FROM S [NOW], R WHERE b = 'x'")
    engine.push("S", [(1, 9), (5, 1)])
    with pytest.raises(InputError):
        engine.run_until_idle()
    engine.restart("j")
    engine = reopened()
    engine.push("S", [(7, 1), (12, 1)])
    engine.run_until_idle()
    assert [row["n"] for row in engine.results("j", "rows")][:1] == [1500000000]


@pytest.mark.parametrize("window", ["", " [RANGE 20]"])
def test_many_small_pages_that_one_step_reads(reopened, window):
    engine = reopened()
    stream = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
    script = f"{stream} CREATE QUERY q AS SELECT a FROM S{window}"
    engine.execute(script)
    for t in range(1, 101):
        engine.push("S", [(t, t)])
    engine.run_until_idle()
    before = engine.results("q").to_pylist()
    merged = engine.inputs.queues["stream:s"].pages
    engine = reopened()
    assert engine.results("q").to_pylist() == before
    assert [page.names for page in engine.inputs.queues["stream:s"].pages] == [
        page.names for page in merged
    ]
    engine.push("S", [(t, t) for t in range(101, 131)])
    engine.run_until_idle()
    with Engine() as other:
        other.execute(script)
        other.push("S", [(t, t) for t in range(1, 131)])
        other.run_until_idle()
        assert other.results("q").to_pylist() == engine.results("q").to_pylist()
