"""A source that has raised an error has not ended: nothing behind it is lost."""

from __future__ import annotations

import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond import Engine
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.sources import OpenPages, SourcePage, Taken
from millpond.errors import InputError

ROWS, BAD = 60, 41
"""So many rows, of which one is bad."""


def written(directory, kind, is_mended):
    """A file whose rows are good but for one, and all of them when it is mended."""
    times = [str(n) if is_mended or n != BAD else "x" for n in range(ROWS)]
    file = directory / f"s.{kind}"
    if kind == "csv":
        file.write_text("t,a\n" + "".join(f"{t},{n}\n" for n, t in enumerate(times)))
    elif kind == "json":
        file.write_text("".join(f'{{"t": {t}, "a": {n}}}\n' for n, t in enumerate(times)))
    else:
        values = [int(t) if t != "x" else None for t in times]
        pq.write_table(pa.table({"t": values, "a": range(ROWS)}), file)


@pytest.mark.parametrize("store", ["memory", "directory"])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_file_is_read_again_when_it_is_mended(tmp_path, kind, store):
    written(tmp_path, kind, is_mended=False)
    store = store if store == "memory" else tmp_path / "store"
    script = (
        f"CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM {kind}('s.{kind}');"
        "CREATE QUERY q AS SELECT a FROM S;"
    )
    with Engine({"page_rows": 10}, directory=tmp_path, store=store) as engine:
        engine.execute(script)
        for _ in range(3):
            with pytest.raises(InputError, match=rf"s\.{kind}"):
                engine.finish()
        written(tmp_path, kind, is_mended=True)
        engine.finish()
        assert [row["a"] for row in engine.results("q", "rows")] == list(range(ROWS))


def test_a_pipe_that_has_failed_has_not_ended(tmp_path):
    """It cannot be read again: it says so each time, and the store knows nothing of an end."""
    pipe = tmp_path / "s.csv"
    os.mkfifo(pipe)
    lines = "t,a\n1,1\nx,2\n3,3\n"
    writer = threading.Thread(target=lambda: pipe.write_text(lines), daemon=True)
    writer.start()
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('s.csv');"
            "CREATE QUERY q AS SELECT a FROM S;"
        )
        for _ in range(2):
            with pytest.raises(InputError, match=r"line 3, column t: 'x' is not a BIGINT"):
                engine.run_sources()
        assert -1 not in engine.inputs.read_rows.values()
    writer.join()


class Moody:
    """Fails once at each of some rows, and delivers the same rows whenever it is read."""

    ends = True

    def __init__(self, fails_at):
        self._fails_at = set(fails_at)

    def pages(self):
        for row in range(ROWS):
            if row in self._fails_at:
                self._fails_at.remove(row)
                raise InputError(f"row {row} cannot be had now")
            bad = row % 7 == 0
            yield SourcePage(
                pa.table({"a": [] if bad else [row]}), [BadRow(str(row), "odd", b"")] if bad else []
            )


@pytest.mark.parametrize("fails_at", [[0], [1, 2], [7, 8, 14, 30, 59]])
def test_rows_and_bad_rows_come_once_each(fails_at):
    pages = OpenPages.of(Moody(fails_at), Taken())
    rows, bad, errors = [], 0, 0
    while True:
        try:
            page = pages.behind(len(rows), bad)
        except InputError:
            errors += 1
            continue
        if page is None:
            break
        rows += page.rows.column("a").to_pylist()
        bad += len(page.bad)
    assert rows == [row for row in range(ROWS) if row % 7]
    assert (bad, errors) == (9, len(fails_at))


def test_a_file_that_is_gone_is_an_error_in_words(tmp_path):
    written(tmp_path, "csv", is_mended=False)
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('s.csv');"
            "CREATE QUERY q AS SELECT a FROM S;"
        )
        with pytest.raises(InputError, match="not a BIGINT"):
            engine.finish()
        (tmp_path / "s.csv").unlink()
        with pytest.raises(InputError, match=r"s\.csv: No such file"):
            engine.finish()


def test_changes_that_were_refused_are_read_again(tmp_path):
    file = tmp_path / "r.csv"
    file.write_text("ts,op,k\n1,+,1\n2,-,7\n3,+,2\n")
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE RELATION R (k INT) FROM csv('r.csv') WITH (changes = true);"
            "CREATE QUERY q AS SELECT k FROM R;"
        )
        for _ in range(2):
            with pytest.raises(InputError, match="a row is removed that is not there"):
                engine.finish()
        file.write_text("ts,op,k\n1,+,1\n2,-,1\n3,+,2\n")
        engine.finish()
        changes = [(row["ts"], row["weight"], row["k"]) for row in engine.results("q", "rows")]
        assert changes == [(1, 1, 1), (2, -1, 1), (3, 1, 2)]
