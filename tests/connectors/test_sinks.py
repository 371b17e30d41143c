import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.catalog import Connector, QueryEntry
from millpond.connectors import Sink, open_sink
from millpond.errors import InputError
from tests.connectors.declarations import schema


def sink(connector: str, *arguments: Any, columns: str, **options: Any) -> Sink:
    plan = SimpleNamespace(schema=schema(columns))
    call = Connector(connector, arguments, tuple(options.items()))
    return open_sink(QueryEntry("q", plan, sink=call))


def results(**columns: list[Any]) -> pa.Table:
    return pa.table({"ts": [None, 5], "weight": [1, -1], **columns})


def test_csv_has_a_header_and_a_line_a_result(tmp_path: Path) -> None:
    file = tmp_path / "new" / "out.csv"
    opened = sink("csv", str(file), columns="a STRING, t TIMESTAMP")
    opened.write(results(a=["x,y", None], t=[datetime(2026, 1, 1), None]))
    opened.write(results(a=["", "z"], t=[None, None]).slice(1))
    opened.close()
    assert file.read_text().splitlines() == [
        "ts,weight,a,t",
        ',1,"x,y",2026-01-01 00:00:00.000000',
        "5,-1,,",
        '5,-1,"z",',
    ]


def test_a_query_without_results_leaves_a_header(tmp_path: Path) -> None:
    sink("csv", str(tmp_path / "out.csv"), columns="a INT").close()
    assert (tmp_path / "out.csv").read_text() == "ts,weight,a\n"


def test_json_has_an_object_a_result(tmp_path: Path) -> None:
    opened = sink("json", str(tmp_path / "out.jsonl"), columns="a DOUBLE, t TIMESTAMP")
    opened.write(results(a=[1.5, float("nan")], t=[datetime(2026, 1, 1, 0, 0, 0, 5), None]))
    opened.close()
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"ts": None, "weight": 1, "row": {"a": 1.5, "t": "2026-01-01T00:00:00.000005"}},
        {"ts": 5, "weight": -1, "row": {"a": "NaN", "t": None}},
    ]


def test_parquet_is_a_directory_of_parts(tmp_path: Path) -> None:
    opened = sink("parquet", str(tmp_path / "out"), columns="a INT")
    opened.write(results(a=[1, 2]))
    opened.write(results(a=[3, 4]))
    opened.close()
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["part-000000.parquet", "part-000001.parquet"]
    assert pq.read_table(tmp_path / "out").column("a").to_pylist() == [1, 2, 3, 4]


def test_results_may_have_columns_named_ts(tmp_path: Path) -> None:
    opened = sink("parquet", str(tmp_path / "out"), columns="ts BIGINT")
    table = results()
    opened.write(table.append_column("ts", pa.array([8, 9])))
    assert pq.read_table(tmp_path / "out").column_names == ["ts", "weight", "ts_2"]


@pytest.mark.parametrize("connector", ["csv", "json", "parquet"])
def test_a_new_run_replaces_and_append_adds(tmp_path: Path, connector: str) -> None:
    place = tmp_path / "out"

    def run(**options: Any) -> int:
        opened = sink(connector, str(place), columns="a INT", **options)
        opened.write(results(a=[1, 2]))
        opened.close()
        if connector == "parquet":
            return int(pq.read_table(place).num_rows)
        return len(place.read_text().splitlines()) - (connector == "csv")

    assert [run(), run(), run(append=True), run()] == [2, 2, 4, 2]


def test_a_parquet_sink_touches_only_its_own_parts(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    sink("parquet", str(tmp_path), columns="a INT")
    assert (tmp_path / "notes.txt").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for connector in ("csv", "json", "parquet"):
        with pytest.raises(InputError, match=r"^q INTO .*: (File exists|Not a directory)"):
            sink(connector, str(tmp_path / "file" / "out"), columns="a INT")
