"""The engine at work: changes, heartbeats, queries that come and go, and where results go."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from itertools import pairwise

import pyarrow.csv
import pyarrow.parquet
import pytest

from millpond import Engine
from millpond.errors import MillpondError
from millpond.scheduling.strategy_text import driving_spark
from tests.patience import wait_until

STREAMS = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t;
"""
JOIN = "CREATE QUERY pairs AS SELECT S.a FROM S [RANGE 10], T [RANGE 10] WHERE S.a = T.a;"


@pytest.fixture
def engine(spark):
    with Engine(spark=spark) as engine:
        engine.execute(STREAMS)
        yield engine


def results(engine, query):
    """(ts, weight, row) of everything a query has put out; rows of one instant have no order."""
    found = [
        (r.pop("ts"), r.pop("weight"), tuple(r.values())) for r in engine.results(query, "rows")
    ]
    assert [r[0] for r in found] == sorted(
        (r[0] for r in found), key=lambda ts: (ts is not None, ts)
    )
    return sorted(found, key=lambda r: (r[0] is not None, r[0], str(r[2]), r[1]))


# Changes of relations.


def test_changes_flow_into_running_queries(engine):
    engine.execute(
        """CREATE RELATION R (k INT, n STRING);
           INSERT INTO R VALUES (1, 'one'), (1, 'one'), (2, 'two');
           CREATE QUERY names AS SELECT k, n FROM R;
           CREATE QUERY news AS SELECT S.a, n FROM S, R WHERE a = k;"""
    )
    engine.run_until_idle()
    assert results(engine, "names") == [(None, 2, (1, "one")), (None, 1, (2, "two"))]
    engine.push("S", [(5, 1), (6, 3)])
    engine.execute("INSERT INTO R VALUES (3, 'three')")
    engine.run_until_idle()
    assert results(engine, "names")[2:] == [(6, 1, (3, "three"))]
    engine.advance("S", 10)
    engine.advance("T", 10)
    engine.execute("UPDATE R SET n = 'uno' WHERE k = 1; DELETE FROM R WHERE k = 2;")
    engine.push("R", [{"k": 4, "n": None}])
    engine.finish()
    assert sorted(results(engine, "names")[3:], key=str) == [
        (11, -1, (2, "two")),
        (11, -2, (1, "one")),
        (11, 1, (4, None)),
        (11, 2, (1, "uno")),
    ]
    assert results(engine, "news") == [
        (5, 2, (1, "one")),
        (6, 1, (3, "three")),
        (11, 2, (1, "uno")),
    ]


def test_each_change_sees_the_ones_before_it(engine):
    engine.execute("CREATE RELATION R (k STRING, w INT); CREATE QUERY q AS SELECT * FROM R")
    for change in (
        "INSERT INTO R VALUES ('a', 1), ('b', 1)",
        "UPDATE R SET w = w + 1",
        "UPDATE R SET w = w + 1 WHERE k = 'a'",
        "DELETE FROM R WHERE w = 2",
        "INSERT INTO R VALUES ('a', 3)",
        "DELETE FROM R",
        "INSERT INTO R VALUES ('c', 7)",
    ):
        engine.execute(change)
        engine.run_until_idle()
    there = Counter()
    for _, weight, row in results(engine, "q"):
        there[row] += weight
    assert +there == Counter({("c", 7): 1})
    assert -there == Counter()
    engine.execute("CREATE QUERY later AS SELECT * FROM R")
    engine.run_until_idle()
    assert results(engine, "later") == [(None, 1, ("c", 7))]


def test_a_predicate_that_is_null_changes_nothing(engine):
    engine.execute(
        """CREATE RELATION R (k INT, n STRING);
           INSERT INTO R VALUES (NULL, 'a'), (1, NULL);
           CREATE QUERY names AS SELECT k, n FROM R;
           DELETE FROM R WHERE k > 5;
           UPDATE R SET n = 'b', k = k + 1 WHERE n IS NULL;"""
    )
    engine.finish()
    assert sorted(results(engine, "names"), key=str) == [
        (None, 1, (2, "b")),
        (None, 1, (None, "a")),
    ]


def test_like_takes_another_escape_character(engine):
    engine.execute(
        """CREATE RELATION R (s STRING);
           INSERT INTO R VALUES ('a%b'), ('axb'), ('a!b');
           CREATE QUERY q AS SELECT s FROM R
             WHERE s LIKE 'a!%b' ESCAPE '!' OR s LIKE 'a!!_' ESCAPE '!'"""
    )
    engine.finish()
    assert results(engine, "q") == [(None, 1, ("a!b",)), (None, 1, ("a%b",))]


# Heartbeats.


def test_a_quiet_stream_holds_a_join_up_until_it_is_advanced(engine):
    engine.execute(JOIN)
    engine.push("T", [(1, 7)])
    engine.push("S", [(5, 7), (6, 7), (9, 8)])
    engine.run_until_idle()
    assert results(engine, "pairs") == []
    engine.advance("T", 5)
    engine.run_until_idle()
    assert results(engine, "pairs") == [(5, 1, (7,))]
    engine.advance("T", 8)
    engine.run_until_idle()
    assert results(engine, "pairs") == [(5, 1, (7,)), (6, 1, (7,))]


def test_a_relation_without_timestamps_holds_nothing_up(engine):
    engine.execute(
        """CREATE RELATION R (k INT);
           INSERT INTO R VALUES (7);
           CREATE QUERY known AS SELECT a FROM S [NOW], R WHERE a = k;"""
    )
    engine.push("S", [(5, 7), (6, 7)])
    engine.run_until_idle()
    assert results(engine, "known") == [(5, 1, (7,))]


def test_a_relation_with_timestamps_has_to_be_advanced(engine):
    engine.execute(
        """CREATE RELATION R (k INT) WITH (changes = true);
           CREATE QUERY known AS SELECT a FROM S [NOW], R WHERE a = k;"""
    )
    engine.push_changes("R", [(None, "+", (7,))])
    engine.push("S", [(5, 7), (6, 7)])
    engine.run_until_idle()
    assert results(engine, "known") == []
    engine.advance("R", 5)
    engine.run_until_idle()
    assert results(engine, "known") == [(5, 1, (7,))]


def test_streams_by_arrival_are_advanced_by_their_own_clock(spark):
    with Engine(spark=spark) as engine:
        engine.execute(
            """CREATE STREAM A (a INT);
               CREATE STREAM B (a INT);
               CREATE QUERY both AS SELECT a FROM A UNION ALL SELECT a FROM B;"""
        )
        engine.push("A", [(1,)])
        wait_until(lambda: engine.run_until_idle() or results(engine, "both"))
        ((_, weight, row),) = results(engine, "both")
        assert (weight, row) == (1, (1,))
        assert engine.format_time("both", 0) == "1970-01-01T00:00:00"


def test_on_a_wall_clock_a_quiet_stream_follows_the_others(spark):
    settings = {"clock": "wall", "heartbeat_timeout": 0.01}
    with Engine(spark=spark, settings=settings) as engine:
        engine.execute(STREAMS + JOIN)
        engine.push("T", [(1, 7)])
        time.sleep(0.02)  # longer than the timeout
        engine.push("S", [(5, 7), (6, 7)])
        engine.run_until_idle()
        assert results(engine, "pairs") == [(5, 1, (7,))]
        engine.push("T", [(5, 7)])
        assert engine.late("T").to_pylist() == [{"t": 5, "a": 7}]


# Queries come and go.


def test_a_query_sees_what_comes_after_its_registration(engine):
    engine.execute(
        """CREATE RELATION R (k INT);
           INSERT INTO R VALUES (1);
           CREATE QUERY old AS SELECT count(*) AS n FROM S;"""
    )
    engine.push("S", [(1, 1), (2, 2)])
    engine.advance("S", 5)
    engine.advance("T", 5)
    engine.execute("INSERT INTO R VALUES (2)")
    engine.run_until_idle()
    engine.execute(
        """CREATE QUERY new AS SELECT count(*) AS n FROM S;
           CREATE QUERY content AS SELECT k FROM R;"""
    )
    engine.push("S", [(6, 3)])
    engine.execute("INSERT INTO R VALUES (3)")
    engine.finish()
    assert results(engine, "old")[-1] == (6, 1, (3,))
    assert results(engine, "new") == [(None, 1, (0,)), (6, -1, (0,)), (6, 1, (1,))]
    content = results(engine, "content")
    assert sorted(content[:2]) == [(None, 1, (1,)), (None, 1, (2,))]
    assert content[2][1:] == (1, (3,))


def test_the_past_of_dropped_queries_is_forgotten(engine):
    """Each moment at which queries are registered has its own view of a relation, for a while."""
    engine.execute("CREATE RELATION R (a INT); CREATE QUERY q AS SELECT S.a FROM S, R")
    for ts in range(3):
        engine.execute(f"INSERT INTO R VALUES ({ts})")
        engine.push("S", [(ts, ts)])
        engine.execute(f"CREATE QUERY q{ts} AS SELECT S.a FROM S, R")
    assert len(engine.inputs.relation("R").queues) == 4
    engine.execute("DROP QUERY q0; DROP QUERY q1")
    assert [q.name for q in engine.inputs.relation("R").queues] == ["relation:r", "relation:r@3"]
    engine.push("S", [(5, 5)])
    engine.finish()
    assert results(engine, "q2") == [(2, 3, (2,)), (5, 3, (5,))]


def test_equal_queries_share_their_operators_and_survive_each_other(engine):
    text = "SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a"
    engine.execute(f"CREATE QUERY one AS {text}; CREATE QUERY two AS {text};")
    engine.push("S", [(1, 1), (2, 1)])
    engine.advance("S", 2)
    engine.run_until_idle()
    operators = len(engine.runtime.running)
    assert operators == 3
    assert results(engine, "one") == results(engine, "two") != []
    engine.execute("DROP QUERY one")
    assert len(engine.runtime.running) == operators - 1
    engine.push("S", [(3, 1)])
    engine.finish()
    assert results(engine, "two")[-1] == (7, -1, (1, 1))
    with pytest.raises(MillpondError, match="one"):
        engine.results("one")


def test_an_inactive_query_rests(engine):
    engine.execute("CREATE QUERY q INACTIVE AS SELECT a FROM S; CREATE QUERY p AS SELECT a FROM S")
    for ts, change in ((1, ""), (2, "ACTIVATE"), (3, "DEACTIVATE"), (4, "ACTIVATE")):
        if change:
            engine.execute(f"ALTER QUERY q {change}")
        engine.push("S", [(ts * 10, ts)])
        engine.advance("S", ts * 10 + 5)
        engine.run_until_idle()
    assert [row for _, _, row in results(engine, "q")] == [(2,), (4,)]
    assert [row for _, _, row in results(engine, "p")] == [(1,), (2,), (3,), (4,)]


def test_the_strategy_and_its_settings_may_change_at_any_time(engine):
    engine.execute("CREATE QUERY q AS SELECT a FROM S")
    engine.run_until_idle()
    for ts, strategy in enumerate(("fifo", "threshold(beta = 0.8)", "chain(max_tuples = 7)")):
        engine.execute(f"SET strategy = '{strategy}'")
        engine.push("S", [(ts, ts)])
        engine.run_until_idle()
    engine.finish()
    assert [row for _, _, row in results(engine, "q")] == [(0,), (1,), (2,)]


@pytest.mark.parametrize("strategy", driving_spark())
def test_every_strategy_gives_the_same_answers(spark, strategy):
    answers = {}
    for name in (strategy, "fifo"):
        with Engine({"strategy": name}, spark) as engine:
            engine.execute(STREAMS + JOIN)
            engine.execute("CREATE QUERY n AS SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a")
            for page in range(2):
                for stream in ("S", "T"):
                    engine.push(stream, [(5 * page + i, i % 3) for i in range(5)])
                engine.run_until_idle()
            engine.finish()
            answers[name] = [results(engine, "pairs"), results(engine, "n")]
    assert answers[strategy] == answers["fifo"] != [[], []]


def test_strategies_are_told_what_was_measured(engine, monkeypatch):
    monkeypatch.setattr("millpond.execution.telling.STATISTICS_SECONDS", 0.0)
    monkeypatch.setattr("millpond.execution.telling.TELLING_SHARE", 1e9)
    engine.execute("CREATE QUERY q AS SELECT a FROM S WHERE a < 2")
    version = engine.runtime.plan_version
    for ts in range(3):
        engine.push("S", [(ts, a) for a in range(8)])
        engine.run_until_idle()
    assert engine.runtime.plan_version > version
    (operator,) = engine.runtime.plan().operators
    assert operator.inputs[0].selectivity == 0.25
    assert operator.inputs[0].cost_seconds > 0
    assert operator.inputs[0].tuple_bytes == 28  # time, order of arrival, a


# Plans that are run again.


def test_a_plan_sees_the_pages_of_its_own_step_only(engine):
    engine.execute("SET small_steps = 'spark';" + JOIN)
    expected = 0
    for ts, rows in enumerate((1, 200, 1, 3000, 2)):
        for stream in ("S", "T"):
            engine.push(stream, [(100 * ts, a) for a in range(rows)])
            engine.advance(stream, 100 * ts + 50)
        engine.run_until_idle()
        expected += rows
        assert engine.result_count("pairs") == expected


def test_what_a_query_held_goes_with_it(engine):
    engine.execute(JOIN)
    directory = engine.store.directory
    engine.push("S", [(1, 1), (2, 1)])
    engine.push("T", [(1, 1), (2, 1)])
    engine.run_until_idle()
    assert [path for path in directory.rglob("*") if path.is_file()] != []
    engine.finish()
    engine.execute("DROP QUERY pairs")
    assert list(directory.glob("*/*")) == []


def test_a_session_of_another_kind_keeps_its_settings(spark):
    other = spark.newSession()
    foreign = {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "7"}
    for key, value in foreign.items():
        other.conf.set(key, value)
    with Engine(spark=other) as engine:
        engine.execute(STREAMS + "CREATE QUERY q AS SELECT t + 9223372036854775807 AS b FROM S")
        engine.push("S", [(1, 1)])
        with pytest.raises(MillpondError, match="leaves the range"):
            engine.finish()
    assert {key: other.conf.get(key) for key in foreign} == foreign


# Results.


def test_results_come_in_four_forms(engine):
    engine.execute("CREATE QUERY q AS SELECT a FROM S")
    engine.push("S", [(1, 5)])
    engine.finish()
    rows = [{"ts": 1, "weight": 1, "a": 5}]
    assert engine.results("q").to_pylist() == rows
    assert engine.results("q", "rows") == rows
    assert engine.results("q", "pandas").to_dict("records") == rows
    assert [row.asDict() for row in engine.results("q", "spark").collect()] == rows
    assert engine.query("q").results().to_pylist() == rows
    assert "1 result elements" in engine.query("q")._repr_html_()
    assert "1 result elements" in engine._repr_html_()


def test_subscribers_get_complete_instants_in_order(engine):
    engine.execute("CREATE QUERY q AS SELECT a FROM S")
    seen = []
    engine.subscribe("q", lambda table: seen.append(table["ts"].to_pylist()))
    for ts in (1, 1, 2, 4):
        engine.push("S", [(ts, ts)])
        engine.run_until_idle()
    engine.finish()
    times = [ts for page in seen for ts in page]
    assert times == [1, 2, 4]  # two equal tuples at 1 are one element of weight 2
    assert all(a[-1] < b[0] for a, b in pairwise(seen))


def test_columns_called_like_the_times_of_results_stay_apart(engine):
    engine.execute("CREATE QUERY q AS SELECT a AS ts, a AS weight FROM S")
    engine.push("S", [(1, 5)])
    engine.finish()
    assert engine.results("q", "rows") == [{"ts": 1, "weight": 1, "ts_2": 5, "weight_2": 5}]


def test_what_cannot_be_called_back_is_refused(engine):
    engine.execute("CREATE QUERY q AS SELECT a FROM S")
    with pytest.raises(MillpondError, match="not 5"):
        engine.subscribe("q", 5)


def test_results_need_not_be_kept(spark):
    with Engine(spark=spark, keep_results=False) as engine:
        engine.execute(STREAMS + "CREATE QUERY q AS SELECT a FROM S")
        seen = []
        engine.subscribe("q", seen.append)
        engine.push("S", [(1, 5)])
        engine.finish()
        assert engine.results("q").num_rows == 0
        assert [table.num_rows for table in seen] == [1]


def test_sinks_hold_the_results_when_the_engine_closes(spark, tmp_path):
    with Engine(spark=spark, directory=tmp_path) as engine:
        engine.execute(STREAMS)
        for form in ("csv", "json", "parquet"):
            engine.execute(
                f"CREATE QUERY to_{form} AS SELECT count(*) AS n FROM S [RANGE 1] "
                f"INTO {form}('{form}.out')"
            )
        engine.push("S", [(1, 5)])
        engine.finish()
        expected = engine.results("to_csv", "rows")
    assert len(expected) == 5
    assert pyarrow.csv.read_csv(tmp_path / "csv.out").to_pylist() == expected
    lines = [json.loads(line) for line in (tmp_path / "json.out").read_text().splitlines()]
    assert [{"ts": r["ts"], "weight": r["weight"], **r["row"]} for r in lines] == expected
    assert pyarrow.parquet.read_table(tmp_path / "parquet.out").to_pylist() == expected


# Time.


def test_moments_are_counted_in_ticks_and_printed_as_moments(spark):
    with Engine(spark=spark) as engine:
        engine.execute(
            """SET tick = '1 second';
               CREATE STREAM S (at TIMESTAMP, a INT) TIMESTAMP BY at DELAY 2 SECONDS;
               CREATE QUERY q AS SELECT a, at FROM S [RANGE 1 MINUTE];
               CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 1 MINUTE];"""
        )
        first = dt.datetime(2026, 1, 1, 12, 0, 0, 400_000)
        engine.push("S", [(first, 1), (first + dt.timedelta(seconds=2), 2), (first, 3)])
        engine.finish()
        seconds = int(dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC).timestamp())
        rows = results(engine, "q")
        assert sorted(rows) == [
            (seconds, 1, (1, first)),
            (seconds, 1, (3, first)),
            (seconds + 2, 1, (2, first + dt.timedelta(seconds=2))),
        ]
        assert engine.format_time("q", rows[0][0]) == "2026-01-01T12:00:00"
        assert [ts for ts, weight, _ in results(engine, "n") if weight == 1] == [
            None, seconds, seconds + 2, seconds + 61, seconds + 63,
        ]  # fmt: skip


def test_files_are_read_to_their_end(spark, tmp_path):
    (tmp_path / "s.csv").write_text("t,a\n1,7\n3,8\n")
    (tmp_path / "r.csv").write_text("ts,op,k\n2,+,8\n4,-,8\n")
    with Engine(spark=spark, directory=tmp_path) as engine:
        engine.execute(
            """CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('s.csv');
               CREATE RELATION R (k INT) FROM csv('r.csv') WITH (changes = true);
               CREATE QUERY q AS SELECT a FROM S [RANGE 5], R WHERE a = k;
               CREATE QUERY gone AS DSTREAM(SELECT a FROM S [RANGE 5], R WHERE a = k);"""
        )
        seen = []
        engine.finish(lambda name, progress: seen.append(name))
        assert results(engine, "q") == [(3, 1, (8,))]
        assert results(engine, "gone") == [(4, 1, (8,))]
        assert set(seen) == {"S", "R"}


def test_data_that_does_not_fit_is_reported_in_plain_words(engine, capfd):
    engine.execute(
        """CREATE RELATION R (k BIGINT);
           INSERT INTO R VALUES (9000000000000000000);
           CREATE QUERY q AS SELECT sum(a * 9000000000000000000) AS n FROM S;"""
    )
    engine.push("S", [(1, 1), (2, 5)])
    for work in (engine.finish, lambda: engine.execute("UPDATE R SET k = k * 2")):
        with pytest.raises(
            MillpondError, match=r": a number leaves the range of its type"
        ) as caught:
            work()
        assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_query_that_fails_holds_no_other_up(engine):
    engine.execute(
        """CREATE QUERY bad AS SELECT t + 9223372036854775807 AS x FROM S;
           CREATE QUERY worse AS SELECT sum(a + 9223372036854775800) AS n FROM S GROUP BY t;
           CREATE QUERY good AS SELECT a, count(*) AS n FROM S [RANGE 1] GROUP BY a;"""
    )
    engine.push("S", [(1, 7), (1, 7)])
    with pytest.raises(
        MillpondError, match=r"query (bad|worse).*: (a number|sum) .*1 more: query "
    ):
        engine.finish()
    assert {failure.query for failure in engine.failures()} == {"bad", "worse"}
    assert engine.show("failures")["query"].to_pylist() != []
    assert "failed" in engine.show("bad")["detail"][0].as_py()
    engine.run_until_idle()  # told once
    assert results(engine, "good") == [(1, 1, (7, 2)), (3, -1, (7, 2))]
    engine.execute("DROP QUERY bad; DROP QUERY worse")
    assert engine.failures() == []
    engine.run_until_idle()


def test_an_update_goes_to_spark_where_its_expressions_must(spark):
    with Engine(spark=spark) as engine:
        engine.execute("""
            CREATE RELATION R (k INT, n STRING);
            INSERT INTO R VALUES (1, 'a'), (3, 'b');
            UPDATE R SET n = CAST(k * 0.5 AS STRING) WHERE k = 3;
            CREATE QUERY q AS SELECT k, n FROM R;
        """)
        engine.finish()
        rows = [(row["k"], row["n"]) for row in engine.results("q").to_pylist()]
    assert sorted(rows) == [(1, "a"), (3, "1.5")]
