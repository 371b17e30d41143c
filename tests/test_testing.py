"""The checks for connectors pass those that are built in, and find what is not kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from millpond.connectors import Progress, arrow_schema, csv_files, json_lines, parquet_files, rate
from millpond.connectors.sources import Declaration, SourcePage
from millpond.settings import Settings
from millpond.testing import check_sink, check_source
from tests.connectors.declarations import schema

DECLARATION = Declaration("S", schema("id BIGINT, v INT"), settings=Settings(page_rows=3))


def test_built_in_sources_keep_what_sources_have_to(tmp_path) -> None:
    table = pa.table({"id": range(10), "v": range(10)})
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    pq.write_table(table, tmp_path / "a.parquet")
    for source, file in ((csv_files.source, "a.csv"), (parquet_files.source, "a.parquet")):
        rows = check_source(partial(source, file=str(tmp_path / file)), DECLARATION, 10)
        assert rows == [(n, n) for n in range(10)]
    (tmp_path / "b.csv").write_text("id,v\n" + "".join(f"{n},{n or 'x'}\nx\n" for n in range(10)))
    lenient = replace(DECLARATION, skips_bad_rows=True)
    rows = check_source(partial(csv_files.source, file=str(tmp_path / "b.csv")), lenient, 20)
    assert rows == [(n, n) for n in range(1, 10)]
    check_source(lambda declaration: rate.source(declaration, 5, rows=10), DECLARATION, 10)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_built_in_sinks_keep_what_sinks_have_to(tmp_path, kind) -> None:
    modules = {"csv": csv_files, "json": json_lines, "parquet": parquet_files}
    place = tmp_path / f"out.{kind}"

    def read() -> list[int]:
        if kind == "csv":
            return pyarrow.csv.read_csv(place)["id"].to_pylist()
        if kind == "json":
            return [row["id"] for row in pa.json.read_json(place)["row"].to_pylist()]
        return pq.read_table(place)["id"].to_pylist()

    check_sink(lambda results: modules[kind].sink(results, str(place)), read)


class Counting:
    """A source of numbers whose positions may be wrong by some."""

    ends = True

    def __init__(self, declaration, wrong_by=0):
        self._types, self._wrong_by = arrow_schema(declaration.schema), wrong_by

    def pages(self):
        return self.pages_from(0)

    def pages_from(self, position):
        for first in range(position, 10, 3):
            ids = list(range(first, min(first + 3, 10)))

            def position_after(rows, first=first):
                return first + rows + self._wrong_by

            yield SourcePage(pa.table([ids, ids], schema=self._types), (), position_after)

    def progress(self):
        return Progress(0, None, "rows")


def test_a_source_that_knows_where_it_is_goes_on_there() -> None:
    check_source(Counting, DECLARATION, 10)


@pytest.mark.parametrize(("wrong_by", "complaint"), [(1, "is lost"), (-1, "comes twice")])
def test_a_source_with_wrong_positions_is_found(wrong_by, complaint) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_source(partial(Counting, wrong_by=wrong_by), DECLARATION, 10)


class Listing:
    """A sink that is a list; it may forget too little or pass over nothing."""

    def __init__(self, results, rows, forgets=True):
        self._rows = rows
        if forgets:
            del rows[results.resume or 0 :]

    def write(self, table):
        self._rows += table["id"].to_pylist()

    def mark(self):
        return len(self._rows)

    def close(self):
        pass


def test_a_sink_that_forgets_nothing_is_found() -> None:
    rows: list[int] = []
    check_sink(lambda results: Listing(results, rows), lambda: rows)
    rows = []
    with pytest.raises(AssertionError, match="is there twice"):
        check_sink(lambda results: Listing(results, rows, forgets=False), lambda: rows)
