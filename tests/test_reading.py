"""A run reads the sources that somebody asks for, to their end or to the limits it was given."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from millpond import Engine
from millpond.errors import CqlError, InputError, StateError
from millpond.intake import reading
from millpond.intake.reading import Allowance, ReadLimits, endless
from tests.patience import PATIENCE_SECONDS, wait_until

SCRIPT = """
CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('s.csv');
CREATE STREAM T (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(10);
CREATE RELATION R (k INT) FROM csv('r.csv') WITH (changes = true);
CREATE VIEW V AS SELECT a FROM T [NOW] WHERE a > 3;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("a,ts\n1,1\n2,2\n3,3\n")
    (tmp_path / "r.csv").write_text("ts,op,k\n1,+,1\n")
    return tmp_path


def read_by(engine: Engine, query: str) -> list[str]:
    engine.execute(f"CREATE QUERY q AS {query}")
    return sorted(engine.inputs.sources_of(engine.graph))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT a FROM S", ["s"]),
        ("SELECT a FROM V", ["t"]),
        ("SELECT count(*) FROM R", ["r"]),
        ("SELECT S.a FROM S [NOW], T [NOW] WHERE S.a = T.a", ["s", "t"]),
        ("SELECT a FROM S [NOW] WHERE a IN (SELECT k FROM R)", ["r", "s"]),
        ("SELECT a FROM S UNION ALL SELECT k FROM R", ["r", "s"]),
    ],
)
def test_sources_are_read_if_a_query_reads_them(folder: Path, query: str, names: list[str]) -> None:
    with Engine(directory=folder) as engine:
        engine.execute(SCRIPT)
        assert engine.inputs.sources_of(engine.graph) == []
        assert read_by(engine, query) == names
        engine.execute("ALTER QUERY q DEACTIVATE")
        assert engine.inputs.sources_of(engine.graph) == []


def test_endless_sources_are_named_with_the_queries_that_wait(folder: Path) -> None:
    with Engine(directory=folder) as engine:
        engine.execute(SCRIPT)
        sources = {key: source for key, (source, _) in engine.inputs.sources.items()}
        assert endless(engine.catalog, sources) == []
        engine.execute("CREATE QUERY p AS SELECT a FROM S; CREATE QUERY q AS SELECT a FROM V")
        engine.execute("CREATE QUERY idle INACTIVE AS SELECT a FROM T")
        (found,) = endless(engine.catalog, sources)
        assert str(found) == "T FROM rate(10) has no end, and q reads it"
        engine.execute("CREATE QUERY z AS SELECT ts FROM T")
        (found,) = endless(engine.catalog, sources)
        assert str(found) == "T FROM rate(10) has no end, and q, z read it"


def test_a_relation_without_end_is_refused() -> None:
    with Engine() as engine:
        with pytest.raises(
            CqlError, match=r"R: rate\(10\) has no end, but the content of a relation"
        ):
            engine.execute("CREATE RELATION R (a BIGINT) FROM rate(10)")
        assert engine.show("relations").num_rows == 0
        engine.execute("CREATE RELATION R (a BIGINT) FROM rate(10, rows = 3)")


def test_a_relation_that_cannot_be_read_is_not_declared(folder: Path) -> None:
    (folder / "bad.csv").write_text("k\n1\nx\n")
    with Engine(settings={"page_rows": 1}, directory=folder) as engine:
        with pytest.raises(CqlError, match=r"bad\.csv, line 3, column k: 'x' is not an INT"):
            engine.execute("CREATE RELATION R (k INT) FROM csv('bad.csv')")
        assert engine.show("relations").num_rows == 0
        engine.execute("CREATE RELATION R (k INT); CREATE QUERY q AS SELECT k FROM R")


@pytest.mark.parametrize(("rows", "found"), [(0, 0), (1, 1), (4, 4), (6, 6), (99, 9), (None, 9)])
def test_rows_limit_what_is_read(tmp_path: Path, rows: int | None, found: int) -> None:
    (tmp_path / "s.csv").write_text("a,ts\n" + "".join(f"{n},{n}\n" for n in range(9)))
    with Engine({"page_rows": 4}, directory=tmp_path) as engine:
        engine.execute(SCRIPT.splitlines()[1] + "CREATE QUERY q AS SELECT a FROM S")
        engine.run_sources(rows=rows)
        assert engine.inputs.streams["s"].arrived == found
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == list(range(9))


def test_seconds_limit_how_long_is_read() -> None:
    with Engine({"pace": "wall", "page_rows": 10}) as engine:
        engine.execute("CREATE STREAM T (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(200);")
        engine.execute("CREATE QUERY q AS SELECT a FROM T")
        began = time.monotonic()
        engine.run_sources(seconds=0.3)
        rows_due = 200 * (time.monotonic() - began) + 1
        assert engine.inputs.streams["t"].arrived <= rows_due


def test_rows_are_allowed_until_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([100.0, 100.2, 100.29, 100.3, 101.0])
    clock = SimpleNamespace(monotonic=lambda: next(moments))  # of this module alone
    monkeypatch.setattr("millpond.intake.reading.time", clock)
    allowance = Allowance(ReadLimits(seconds=0.3), {})
    assert [allowance.of("S") for _ in range(4)] == [math.inf, math.inf, 0, 0]


@pytest.mark.parametrize("parts", [[], ["a,ts\n1,1\n2,2\n3,3"]])
def test_a_silent_pipe_is_not_waited_for_beyond_the_limit(tmp_path: Path, parts: list[str]) -> None:
    os.mkfifo(tmp_path / "s.csv")
    over = threading.Event()

    def feed() -> None:
        with (tmp_path / "s.csv").open("w") as text:
            text.write("".join(parts))
            text.flush()
            over.wait(PATIENCE_SECONDS)
            text.write("\n4,4\n" if parts else "a,ts\n3,3\n4,4\n")

    writer = threading.Thread(target=feed)
    writer.start()
    with Engine(directory=tmp_path) as engine:
        engine.execute(SCRIPT.splitlines()[1] + "CREATE QUERY q AS SELECT a FROM S")
        stream = engine.inputs.streams["s"]
        wait_until(lambda: engine.run_sources(seconds=0.2) or stream.arrived == 2 * len(parts))
        engine.run_sources(seconds=0.2)
        assert stream.arrived == 2 * len(parts)  # not the line that is not whole
        over.set()
        writer.join()
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == ([1, 2, 3, 4] if parts else [3, 4])


@pytest.mark.parametrize("limits", [{"rows": -1}, {"seconds": float("nan")}, {"seconds": "soon"}])
def test_limits_that_make_no_sense_are_refused(limits: dict) -> None:
    with pytest.raises(InputError, match="must be a number from 0"):
        ReadLimits(**limits)


# With Spark.


def test_a_source_that_nobody_reads_does_not_hold_a_run_up(spark, folder: Path) -> None:
    with Engine(spark=spark, directory=folder) as engine:
        engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S")
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == [1, 2, 3]
        assert engine.inputs.streams["t"].arrived == 0
        with pytest.raises(StateError, match="S has ended"):
            engine.push("S", [(4, 4)])
        # T was not read, so it has not ended: who asks for it now gets it from its start.
        engine.execute("CREATE QUERY p AS SELECT a FROM T")
        engine.finish(rows=5)
        assert engine.results("p")["a"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_limited_run_is_gone_on_with(spark, folder: Path) -> None:
    with Engine(spark=spark, directory=folder) as engine:
        engine.execute(
            SCRIPT + "CREATE QUERY q AS SELECT a FROM S; CREATE QUERY p AS SELECT a FROM T"
        )
        engine.run_sources(rows=2)
        assert engine.results("q")["a"].to_pylist() == [1]  # time 2 may go on
        engine.run_sources(rows=1)
        engine.push("S", [(9, 3)])
        engine.finish(rows=0)
        assert engine.results("q")["a"].to_pylist() == [1, 2, 3, 9]
        assert engine.results("p")["a"].to_pylist() == [0, 1, 2]


def test_a_run_over_an_endless_source_ends_when_it_is_told(
    spark, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(spark=spark, directory=folder, settings={"page_rows": 100}) as engine:
        engine.execute(SCRIPT + "CREATE QUERY n AS SELECT count(*) AS n FROM T [RANGE 10]")
        stream = engine.inputs.streams["t"]
        monkeypatch.setattr(
            reading, "time", SimpleNamespace(monotonic=lambda: stream.arrived / 500)
        )
        engine.finish(seconds=0.5)
        assert stream.arrived >= 250
        assert engine.results("n")["n"].to_pylist()[-1] == 0  # the window ran empty
