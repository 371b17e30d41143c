"""Data that do not pass the driver: sources, steps, sinks and results on the executors."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond import Engine
from millpond.errors import MillpondError
from millpond.spark.lazy import LazySpark

pytestmark = pytest.mark.spark

ROWS = 400


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same tuples, out of order, as CSV, JSON and Parquet."""
    directory, rng = tmp_path_factory.mktemp("files"), random.Random(7)
    rows = [(max(0, n // 2 - rng.choice((0, 0, 1, 3, 9))), n, f"k{n % 5}") for n in range(ROWS)]
    (directory / "s.csv").write_text(
        "t,a,k\n" + "".join(f"{t},{a},{k}\n" for t, a, k in rows), encoding="utf-8"
    )
    lines = (json.dumps({"t": t, "a": a, "k": k}) for t, a, k in rows)
    (directory / "s.json").write_text("\n".join(lines), encoding="utf-8")
    columns = list(zip(*rows, strict=True))
    types = (pa.int64(), pa.int32(), pa.string())
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    pq.write_table(pa.table(arrays, names=["t", "a", "k"]), directory / "s.parquet")
    return directory


def run(spark, directory, source, driver_rows, sink=""):
    settings = {"driver_rows": driver_rows, "page_rows": 64}
    with Engine(settings, spark, directory=directory) as engine:
        engine.execute(
            f"""CREATE STREAM S (t BIGINT, a INT, k STRING) TIMESTAMP BY t DELAY 2 MICROSECONDS
                  FROM {source};
                CREATE QUERY counts AS SELECT k, count(*) AS n FROM S [RANGE 20] GROUP BY k {sink};
                CREATE QUERY last AS SELECT a FROM S [ROWS 3];
                CREATE QUERY pairs AS ISTREAM(SELECT x.a FROM S [RANGE 3] x, S [RANGE 3] y
                  WHERE x.k = y.k AND x.a < y.a);
                CREATE QUERY all_at_once AS RSTREAM(SELECT a FROM S [RANGE 2]);"""
        )
        engine.finish()
        queries = ("counts", "last", "pairs", "all_at_once")
        answers = {query: engine.results(query).to_pylist() for query in queries}
        frame = engine.results("counts", "spark")
        as_frame = (frame.columns, [tuple(row) for row in frame.collect()])
        places = {
            each.operator.label(): engine.runtime.statistics[identity].tally
            for identity, each in engine.runtime.running.items()
        }
        return answers, engine.late("S").to_pylist(), as_frame, places


@pytest.mark.parametrize("source", ["csv('s.csv')", "json('s.json')", "parquet('s.parquet')"])
def test_files_read_there_give_the_same_tuples_order_and_lateness(spark, files, source):
    here, late, frame, _ = run(spark, files, source, 50_000)
    there, late_there, frame_there, places = run(spark, files, source, 0)
    assert (there, late_there) == (here, late)
    assert late
    assert all(found.executor_steps > 0 for found in places.values())
    assert frame[0] == frame_there[0] == ["ts", "weight", "k", "n"]
    assert sorted(map(str, frame[1])) == sorted(map(str, frame_there[1]))
    assert len(frame[1]) == len(here["counts"])


def test_two_files_read_there_at_once_give_the_same(spark, files):
    answers = []
    for driver_rows in (50_000, 0):
        settings = {"driver_rows": driver_rows, "page_rows": 64}
        with Engine(settings, spark, directory=files) as engine:
            for name, source in (("S", "csv('s.csv')"), ("P", "parquet('s.parquet')")):
                engine.execute(
                    f"CREATE STREAM {name} (t BIGINT, a INT, k STRING) TIMESTAMP BY t "
                    f"DELAY 2 MICROSECONDS FROM {source};"
                )
            engine.execute(
                "CREATE QUERY both AS SELECT S.a, P.a AS b FROM S [RANGE 2], P [RANGE 2] "
                "WHERE S.k = P.k AND S.a <= P.a;"
            )
            engine.finish()
            late = [engine.late(name).to_pylist() for name in ("S", "P")]
            answers.append((sorted(map(str, engine.results("both").to_pylist())), late))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > ROWS


def test_a_parquet_sink_written_there_holds_the_same(spark, files, tmp_path):
    answers = []
    for name, driver_rows in (("here", 50_000), ("there", 0)):
        directory = tmp_path / name
        sink = f"INTO parquet('{directory}')"
        answers.append(run(spark, files, "csv('s.csv')", driver_rows, sink)[0]["counts"])
        rows = pa.concat_tables(map(pq.read_table, sorted(directory.iterdir()))).to_pylist()
        assert rows == answers[0]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("driver_rows", [50_000, 0])
def test_an_error_names_the_line_wherever_it_is_read(spark, tmp_path, driver_rows):
    lines = ["t,a"] + [f"{n},{n}" for n in range(150)] + ["150,x"]
    (tmp_path / "bad.csv").write_text("\n".join(lines), encoding="utf-8")
    settings = {"driver_rows": driver_rows, "page_rows": 64}
    with Engine(settings, spark, directory=tmp_path) as engine:
        engine.execute(
            """CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('bad.csv');
               CREATE QUERY q AS SELECT a FROM S"""
        )
        with pytest.raises(MillpondError, match=r"bad\.csv, line 152"):
            engine.finish()


def test_what_the_driver_reads_while_spark_starts_is_not_read_again(spark, files, monkeypatch):
    asked = iter([False] * 3)
    monkeypatch.setattr(LazySpark, "is_started", property(lambda self: next(asked, True)))
    answers, late, *_ = run(spark, files, "csv('s.csv')", driver_rows=10)
    assert next(asked, None) is None, "the driver has read some pages"
    monkeypatch.undo()
    expected, expected_late, *_ = run(spark, files, "csv('s.csv')", driver_rows=10**6)
    assert (answers, late) == (expected, expected_late)


@pytest.mark.parametrize("most", [3, 1_000_000])
def test_an_rstream_comes_as_far_as_its_content_fits(spark, monkeypatch, most):
    monkeypatch.setattr("millpond.execution.operators.snapshots.MOST_ROWS", most)
    monkeypatch.setattr("millpond.execution.operators.snapshots.MOST_INSTANTS", most)
    answers, steps = [], []
    for driver_rows in (50_000, 0):
        with Engine({"driver_rows": driver_rows}, spark) as engine:
            engine.execute("""
                CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
                CREATE QUERY slid AS RSTREAM(SELECT a FROM S [RANGE 12 SLIDE 3]);
                CREATE QUERY pairs AS RSTREAM(
                  SELECT x.a, y.a AS b FROM S [RANGE 4 SLIDE 2] x, S [RANGE 6] y);
                CREATE QUERY whole AS RSTREAM(SELECT a FROM S [RANGE 5]);
            """)
            for first in (0, 40):
                engine.push("S", [(first + 2 * n, n % 4) for n in range(8)])
                engine.run_until_idle()
            engine.finish()
            queries = ("slid", "pairs", "whole")
            answers.append([engine.results(query).to_pylist() for query in queries])
            steps.append(engine.runtime.tally)
    assert answers[0] == answers[1]
    assert all(answers[0])
    assert steps[1].executor_steps > (20 if most == 3 else 2)
