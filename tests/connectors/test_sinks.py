import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.catalog import Connector, QueryEntry
from millpond.connectors import open_sink
from millpond.connectors.sinks import NamedSink
from millpond.errors import MillpondError, OutputError
from tests.connectors.declarations import schema


def sink(
    connector: str, *arguments: Any, columns: str, resume: Any = None, **options: Any
) -> NamedSink:
    plan = SimpleNamespace(schema=schema(columns), is_stream=True)
    call = Connector(connector, arguments, tuple(options.items()))
    return open_sink(QueryEntry("q", plan, sink=call), resume=resume)


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
        with pytest.raises(OutputError, match=r"^query q INTO .*: (File exists|Not a directory)"):
            sink(connector, str(tmp_path / "file" / "out"), columns="a INT")


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files cannot grow beyond this, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("connector", ["csv", "json", "parquet"])
def test_a_full_disk_names_the_query_and_the_file(tmp_path: Path, connector: str) -> None:
    place = tmp_path / "out"
    opened = sink(connector, str(place), columns="a STRING")
    opened.write(results(a=["x", "y"]))
    before = content(place)
    much = pa.table({"ts": range(5000), "weight": [1] * 5000, "a": [str(n) for n in range(5000)]})
    with room_for(8192), pytest.raises(OutputError) as raised:
        opened.write(much)
    assert str(raised.value).startswith(f"query q INTO {connector}('{place}'): ")
    assert "File too large" in str(raised.value)
    assert content(place) == before  # nothing of what could not be written whole
    opened.write(much)
    with room_for(0), pytest.raises(OutputError):
        opened.write(much)
    opened.close()


def content(place: Path) -> dict[str, bytes]:
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("connector", ["csv", "json"])
def test_a_full_device_is_named_and_closing_is_quiet(connector: str) -> None:
    if connector == "csv":  # its header is written at once
        with pytest.raises(OutputError, match=r"query q INTO csv\('/dev/full'\): No space left"):
            sink("csv", "/dev/full", columns="a INT")
        return
    opened = sink("json", "/dev/full", columns="a INT")
    for _ in range(2):
        with pytest.raises(OutputError, match=r"query q INTO json\('/dev/full'\): No space left"):
            opened.write(results(a=[1, 2]))
    opened.close()


class _Faulty:
    def write(self, table: pa.Table) -> None:
        raise ValueError("no such table")

    def close(self) -> None:
        raise OSError(5, "Input/output error")


def test_every_fault_of_a_sink_is_named() -> None:
    untouched = NamedSink(_Faulty(), "q", "mine()")
    with pytest.raises(OutputError, match=r"^query q INTO mine\(\): Input/output error$"):
        untouched.close()
    failed = NamedSink(_Faulty(), "q", "mine()")
    with pytest.raises(OutputError, match=r"^query q INTO mine\(\): ValueError: no such table$"):
        failed.write(results(a=[1, 2]))
    failed.close()


@pytest.mark.parametrize(
    ("connector", "options", "message"),
    [
        ("csv", {"append": "maybe"}, "query q: append is true or false, not 'maybe'"),
        ("json", {"append": 1}, "query q: append is true or false, not 1"),
        ("parquet", {"append": None}, "query q: append is true or false, not None"),
        ("csv", {"delimiter": ";;"}, "q: delimiter ';;' is not one character"),
    ],
)
def test_faulty_options_are_refused(
    tmp_path: Path, connector: str, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(MillpondError, match=message):
        sink(connector, str(tmp_path / "out"), columns="a INT", **options)
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("days", [2**31 - 1, -(2**31), 4_000_000])
def test_dates_far_away_are_written(tmp_path: Path, days: int) -> None:
    day = pa.array([days, None], pa.int32()).cast(pa.date32())
    expected = str(np.datetime64(days, "D"))
    for connector in ("csv", "json"):
        opened = sink(connector, str(tmp_path / connector), columns="d DATE")
        opened.write(results(d=day))
        opened.close()
        assert expected in (tmp_path / connector).read_text()


@pytest.mark.parametrize("connector", ["csv", "json"])
def test_a_text_file_goes_on_behind_its_mark(connector: str, tmp_path: Path) -> None:
    file = tmp_path / "out"
    opened = sink(connector, str(file), columns="a INT")
    opened.write(results(a=[1, 2]))
    mark, content = opened.mark(), file.read_bytes()
    opened.write(results(a=[3, 4]))
    opened.close()
    whole = file.read_bytes()
    again = sink(connector, str(file), columns="a INT", resume=mark)
    assert file.read_bytes() == content
    again.write(results(a=[3, 4]))
    again.close()
    assert file.read_bytes() == whole


def test_a_text_file_that_has_lost_results_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text("ts,weight,a\n")
    with pytest.raises(OutputError, match="had 99 bytes when the store was last open"):
        sink("csv", str(file), columns="a INT", resume=99)
    assert file.read_text() == "ts,weight,a\n"


def test_parts_behind_the_mark_are_written_anew(tmp_path: Path) -> None:
    opened = sink("parquet", str(tmp_path / "out"), columns="a INT")
    opened.write(results(a=[1, 2]))
    mark = opened.mark()
    opened.write(results(a=[3, 4]))
    again = sink("parquet", str(tmp_path / "out"), columns="a INT", resume=mark)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["part-000000.parquet"]
    again.write(results(a=[5, 6]))
    part = pq.read_table(tmp_path / "out" / "part-000001.parquet")
    assert part["a"].to_pylist() == [5, 6]
