"""Whatever Spark reads and writes by the name of a format: nothing lost, nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from millpond import Engine
from millpond.connectors.sources import Declaration, Taken
from millpond.errors import InputError, MillpondError
from millpond.settings import Settings
from millpond.spark.format_source import Format, FormatSource
from millpond.spark.formats import source
from millpond.testing import check_source
from tests.connectors.declarations import schema

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM S (id BIGINT, at TIMESTAMP, price DECIMAL(9, 2), tags ARRAY<INT>)
  TIMESTAMP BY at
  FROM spark('json', 'in', checkpoint = 'notes', maxFilesPerTrigger = 1);
CREATE QUERY q AS SELECT id, at, price, tags FROM S INTO spark('orc', '{0}/out');
CREATE QUERY told AS SELECT id FROM S INTO csv('told.csv');
"""


def write(folder: Path, ids: range) -> None:
    """A file of the source, of rows an hour apart."""
    rows = [{"id": n, "at": f"2026-01-{n + 1:02}T01:00:00+01:00", "price": n / 4, "tags": [n]}
            for n in ids]  # fmt: skip
    text = "".join(f"{json.dumps(each)}\n" for each in rows)
    (folder / f".{ids[0]}").write_text(text)
    (folder / f".{ids[0]}").rename(folder / f"{ids[0]:02}.json")


def test_a_format_is_followed_over_restarts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    settings = Settings(page_rows=2)
    write(tmp_path / "in", range(3))
    with Engine(settings, spark, store=tmp_path / "store", directory=tmp_path) as engine:
        engine.execute(SCRIPT.format(tmp_path))
        engine.run_sources(rows=2)  # in the middle of a batch
    write(tmp_path / "in", range(3, 5))
    with Engine(settings, spark, store=tmp_path / "store", directory=tmp_path) as engine:
        engine.run_sources(rows=5)
        engine.finish(rows=0)
    assert (tmp_path / "told.csv").read_text().splitlines()[1:] == [
        f"{day(n)},1,{n}" for n in range(5)
    ]
    (parts,) = [list((tmp_path / "out").glob("*.orc"))]
    found = pa.concat_tables(orc.read_table(each) for each in parts).sort_by("id")
    assert found["id"].to_pylist() == list(range(5))
    assert found["tags"].to_pylist() == [[n] for n in range(5)]
    assert [each.replace(tzinfo=None) for each in found["at"].to_pylist()] == [
        datetime(2026, 1, n + 1) for n in range(5)
    ]
    with pytest.raises(InputError, match="notes of what was read by somebody else"):
        _drained(_opened(spark, tmp_path, follow=True, checkpoint="notes"))


def day(number: int) -> int:
    return int(datetime(2026, 1, number + 1).timestamp() * 1_000_000)


def _opened(spark: SparkSession, folder: Path, **options: Any) -> FormatSource:
    declared = Declaration(
        "S", schema("id BIGINT, name STRING"), None, Settings(page_rows=2), folder, lasts=False,
        session=lambda: spark,
    )  # fmt: skip
    return source(declared, "parquet", str(folder / "there"), **options)


def _drained(opened: FormatSource) -> list[Any]:
    return [row for page in opened.pages() for row in page.rows.to_pylist()]


def test_what_is_there_is_read_once_and_goes_on_anywhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    for part in range(2):
        rows = pa.table({"name": ["a", "b", None], "id": [1, 2, part], "more": [0.5] * 3})
        pq.write_table(rows, tmp_path / "there" / f"{part}.parquet")

    def opened(_: Declaration) -> FormatSource:
        return _opened(spark, tmp_path, follow=False, checkpoint="notes")

    found = check_source(opened, Declaration("S", schema("id BIGINT, name STRING")), 6)
    assert Counter(found) == Counter([(1, "a"), (2, "b")] * 2 + [(0, None), (1, None)])
    first = opened(Declaration("S", schema("id BIGINT")))
    first.forget()
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_batch_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also if Spark hands it over again, as after a kill; it may have another order then."""
    opened = _opened(spark, tmp_path, checkpoint="notes")
    opened._take(spark.createDataFrame([(1, "a")], "id BIGINT, name STRING"), 0)
    opened._take(spark.createDataFrame([(2, "b")], "id BIGINT, name STRING"), 0)
    pages = opened._of_batch(0, Taken())
    assert [page.rows.to_pylist() for page in pages] == [[{"id": 1, "name": "a"}]]
    opened.committed({"batch": 1, "rows": 0, "bad": 0})
    assert not (tmp_path / "notes/batches/000000000000").exists()
    opened.close()
    with pytest.raises(InterruptedError):
        opened._take(spark.createDataFrame([(2, "b")], "id BIGINT, name STRING"), 1)


@pytest.mark.parametrize(
    ("name", "said"), [("nope", "Failed to find the data source: n"), ("json", "the value one of")]
)
def test_what_cannot_be_read(spark: SparkSession, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x.json").write_text('{"id": "one"}\n')
    with Engine(spark=spark, directory=tmp_path) as engine:
        engine.execute(
            f"CREATE STREAM S (id BIGINT) FROM spark('{name}', 'in', follow = false);"
            "CREATE QUERY q AS SELECT id FROM S"
        )
        with pytest.raises(InputError, match=f"S, {name} by Spark: .*{said}"):
            engine.finish()


def test_what_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    declared = Declaration("S", schema("other INT"), lasts=False, session=lambda: spark)
    rate = FormatSource(declared, Format("S", "rate", "", {}, InputError), tmp_path, follows=True)
    with pytest.raises(InputError, match="no column other; columns here: timestamp, value"):
        next(iter(rate.pages_from({"batch": 0, "rows": 0, "bad": 0})))
    with pytest.raises(InputError, match="a format is a name"):
        source(declared, "")
    with pytest.raises(InputError, match="by checkpoint = 'directory'"):
        source(Declaration("S", schema("id INT"), lasts=True), "rate")


def test_what_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark=spark, directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT) TIMESTAMP BY t;"
            "CREATE QUERY q AS SELECT t FROM S INTO spark('nope')"
        )
        engine.push("S", [(1,), (2,)])
        with pytest.raises(MillpondError, match="query q, nope by Spark: Failed to find"):
            engine.finish()


def test_without_an_engine_there_is_no_session() -> None:
    with pytest.raises(InputError, match="it is the engine's"):
        Declaration("S", schema("id INT")).session()
