from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.errors import InputError
from tests.connectors.declarations import opened, rows


def written(tmp_path: Path, name: str = "a.parquet", **columns: pa.Array) -> str:
    pq.write_table(pa.table(columns), tmp_path / name)
    return str(tmp_path / name)


def test_columns_are_found_by_name_and_converted(tmp_path: Path) -> None:
    times = pa.array([datetime(2026, 1, 1)], pa.timestamp("ns"))
    file = written(tmp_path, TS=times, more=pa.array([1]), a=pa.array([5]))
    assert rows(opened("a INT, ts TIMESTAMP", "parquet", file)) == [(5, datetime(2026, 1, 1))]


def test_directories_and_patterns_read_all_their_files(tmp_path: Path) -> None:
    written(tmp_path, "x1.parquet", a=pa.array([1]))
    written(tmp_path, "x2.parquet", a=pa.array([2]))
    assert rows(opened("a INT", "parquet", str(tmp_path))) == [(1,), (2,)]
    assert rows(opened("a INT", "parquet", str(tmp_path / "*2.parquet"))) == [(2,)]


def test_pages_and_progress_count_rows(tmp_path: Path) -> None:
    file = written(tmp_path, a=pa.array(range(25)))
    source = opened("a INT", "parquet", file, page_rows=10)
    pages = source.pages()
    assert next(pages).num_rows == 10
    assert (source.progress().done, source.progress().total, source.progress().unit) == (
        10,
        25,
        "rows",
    )
    assert [page.num_rows for page in pages] == [10, 5]


def test_faults_name_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, a=pa.array([1, 2**40]), s=pa.array(["x", "y"]))
    with pytest.raises(
        InputError, match=r"a\.parquet, row 2, column a: 1099511627776 is not an INT"
    ):
        rows(opened("a INT", "parquet", file))
    with pytest.raises(InputError, match=r"a\.parquet, row 1, column s: string is not INT"):
        rows(opened("s INT", "parquet", file))
    with pytest.raises(InputError, match=r"a\.parquet: no column z; columns here: a, s"):
        rows(opened("z INT", "parquet", file))


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(InputError, match=r"a\.parquet: no Parquet file"):
        rows(opened("a INT", "parquet", str(tmp_path / "a.parquet")))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), file)
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 100 + content[104:])
    with pytest.raises(InputError, match=r"a\.parquet: damaged \(") as raised:
        rows(opened("a INT", "parquet", str(file)))
    assert "\n" not in str(raised.value)
    file.write_bytes(content[:100])
    with pytest.raises(InputError, match=r"a\.parquet: no Parquet file \("):
        rows(opened("a INT", "parquet", str(file)))
