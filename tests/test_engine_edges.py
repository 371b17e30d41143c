"""What lies at the edge of Python's range, of a disk, or of a run, met on Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.cli.results import JsonPrinter, TablePrinter
from millpond.errors import CqlError, MillpondError

STREAM = "CREATE STREAM S (t BIGINT, d DATE) TIMESTAMP BY t;"


def test_dates_beyond_the_year_9999_are_shown(spark, capsys):
    far = pa.table({"t": [1], "d": pa.array([4_000_000], pa.int32()).cast(pa.date32())})
    with Engine(spark=spark) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT d FROM S")
        for printer in (TablePrinter(engine.format_time), JsonPrinter(engine.format_time)):
            engine.subscribe("q", partial(printer.write, "q"))
        engine.push("S", far)
        engine.finish()
        assert engine.results("q", "rows") == [{"ts": 1, "weight": 1, "d": "12921-08-18"}]
        assert engine.results("q", "pandas")["d"].dt.year.tolist() == [12921]
        assert "12921-08-18" in engine.query("q")._repr_html_()
    assert capsys.readouterr().out.count("12921-08-18") == 2


def test_dates_beyond_the_year_9999_are_grouped_and_taken_back(spark):
    days = pa.array([4_000_000, 4_000_001, 4_000_000], pa.int32()).cast(pa.date32())
    with Engine(spark=spark) as engine:
        engine.execute(
            STREAM + "CREATE QUERY q AS SELECT d, count(*) AS n FROM S [RANGE 1] GROUP BY d;"
            "CREATE RELATION R (d DATE); CREATE QUERY p AS SELECT d FROM R"
        )
        engine.push("R", pa.table({"d": days}))
        for time in (1, 2):  # two steps: the state of the groups is asked for
            engine.push("S", pa.table({"t": [time] * 3, "d": days}))
            engine.run_until_idle()
        engine.execute("DELETE FROM R")
        engine.finish()
        counts = {(row["d"], row["n"]) for row in engine.results("q", "rows")}
        rows = engine.results("p", "rows")
    assert {("12921-08-18", 2), ("12921-08-19", 1), ("12921-08-18", 4)} <= counts
    assert sum(row["weight"] for row in rows) == 0


def test_times_beyond_the_year_9999_are_shown(spark):
    with Engine(spark=spark) as engine:
        engine.execute(
            "CREATE STREAM S (t TIMESTAMP) TIMESTAMP BY t; CREATE QUERY q AS SELECT t FROM S"
        )
        assert engine.format_time("q", 2**60) == "38504-08-17T21:30:06.846976"
        assert engine.format_time("q", -(2**61)) == "-71100-09-29T04:59:46.306048"


def test_a_seed_in_use_is_not_changed(spark):
    with Engine(spark=spark) as engine:
        engine.execute("SET seed = 5;" + STREAM + "CREATE QUERY q AS SELECT t FROM S")
        engine.push("S", [(1, None)])
        engine.run_until_idle()
        with pytest.raises(
            CqlError, match="setting seed can be changed only before the first step"
        ):
            engine.execute("SET seed = 7")
        assert engine.settings.seed == 5


def test_a_full_disk_names_query_and_file(spark, tmp_path: Path):
    with Engine(spark=spark, directory=tmp_path) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT t FROM S INTO json('/dev/full')")
        engine.push("S", [(1, None)])
        with pytest.raises(
            MillpondError, match=r"q INTO json\('/dev/full'\): No space left on device"
        ):
            engine.finish()
