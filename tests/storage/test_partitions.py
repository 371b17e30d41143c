"""Rows in pieces are all rows, equal ones together; a page of pieces is a page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StoreError
from millpond.storage import partitions
from millpond.storage.pages import Page
from millpond.storage.partitions import partitioned, pieces_of
from millpond.storage.store import Store

SCHEMA = pa.schema([("_ts", pa.int64()), ("k", pa.string()), ("x", pa.float64())])
ROWS = st.tuples(
    st.integers(0, 9),
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0.0, 1.5, float("nan")]),
)


def table(rows: list[tuple[int, str | None, float | None]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def counted(parts: list[pa.Table]) -> Counter[str]:
    return Counter(str(tuple(row.values())) for part in parts for row in part.to_pylist())


@given(parts=st.lists(st.lists(ROWS, max_size=8), max_size=5), count=st.integers(1, 5))
def test_pieces_are_all_rows_and_equal_ones_are_together(tmp_path_factory, parts, count):
    folder = tmp_path_factory.mktemp("pieces")
    tables = [table(rows) for rows in parts]
    pieces = list(partitioned(tables, SCHEMA, ["k", "x"], folder, count))
    assert len(pieces) == count
    assert counted(pieces) == counted(tables)
    keys = [set(counted([piece.drop_columns("_ts")])) for piece in pieces]
    assert sum(map(len, keys)) == len(set[str]().union(*keys))
    assert not list(folder.iterdir())


def test_large_ones_are_in_many_pieces_but_not_too_many():
    assert pieces_of(partitions.PIECE_BYTES - 1) == 1
    assert pieces_of(5 * partitions.PIECE_BYTES) == 6
    assert pieces_of(10**15) == partitions.MOST_PIECES


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_page_of_parts_is_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_durable: bool
) -> None:
    monkeypatch.setattr(partitions, "PIECE_BYTES", 10)
    store = Store(tmp_path / "store") if is_durable else Store()
    store.prepare()
    parts = [table([(3, "a", 1.0), (1, "b", 2.0)]), SCHEMA.empty_table(), table([(9, "c", 3.0)])]
    page = Page.written(store, iter(parts))
    assert page is not None
    assert (page.rows, page.first, page.last) == (3, 1, 9)
    assert page.memory_bytes == 0
    assert page.is_in_parts
    assert [part.num_rows for part in page.parts()] == [2, 1]
    assert store.read_again_bytes == 0
    assert page.table.equals(pa.concat_tables(parts))
    again = Page.referred(store, page.reference())
    assert counted(list(again.parts())) == counted(parts)
    paths = [store.path(name) for name in page.names]
    page.free()
    store.sweep()
    assert not any(path.exists() for path in paths)
    assert Page.written(store, iter([SCHEMA.empty_table()])) is None
    store.close()


def test_a_page_of_some_small_files_is_read_once() -> None:
    """As the tasks of a step write it; who needs it next has it at hand."""
    store = Store()
    store.prepare()
    parts = [table([(1, "a", 1.0)]), table([(2, "b", 2.0)])]
    page = Page.written(store, iter(parts))
    assert page is not None
    assert not page.is_in_parts
    assert [part.num_rows for part in page.parts()] == [2]
    assert store.read_again_bytes > 0
    store.close()


def test_a_page_whose_parts_fail_leaves_no_files() -> None:
    store = Store()
    store.prepare()

    def parts():
        yield table([(1, "a", 1.0)])
        raise StoreError("full")

    before = store.bytes
    with pytest.raises(StoreError):
        Page.written(store, parts())
    disk = store.path("spilled")
    assert not disk.exists() or not list(disk.iterdir())
    assert store.bytes == before
    store.close()


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_scratch_folder_goes_with_what_is_in_it(tmp_path: Path, is_durable: bool) -> None:
    store = Store(tmp_path / "store") if is_durable else Store()
    store.prepare()
    with store.scratch() as folder:
        (folder / "0.arrow").write_bytes(b"some")
    assert not folder.exists()
    store.close()


def test_what_a_killed_process_left_of_pieces_goes_with_the_next(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.prepare()
    left = store.new_slot()
    (left / "7.arrow").write_bytes(np.arange(5).tobytes())
    store.close()
    assert not left.exists()
