"""What tasks read of the files of pages: each row of a step once, whichever task gets it."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from millpond.planning.branches import Branch, Outputs
from millpond.storage import portions
from millpond.storage.files import ARROW, PARQUET, READ_BYTES, open_rows, read_rows, write_rows
from millpond.storage.portions import FileSpan, Portion, Scan


class Compiled:
    """A branch that makes nothing of its rows."""

    def __init__(self):
        self.calls = 0

    def needs(self, names):
        return names

    def made_of(self, rows, ended):
        self.calls += 1
        return rows


@pytest.fixture
def compiled(monkeypatch):
    made = Compiled()
    monkeypatch.setattr(portions, "_compiled", lambda *_: made)
    return made


def table(chance, rows, is_sorted):
    times = [chance.randrange(50) for _ in range(rows)]
    times = sorted(times) if is_sorted else times
    ends = [time + chance.randrange(50) for time in times]
    numbers = [chance.randrange(10**9) for _ in range(rows)]
    return pa.table({"_ts": times, "_te": ends, "c0": pa.array(numbers, pa.int64())})


def meant(rows, span):
    """The rows that a span means, one by one."""
    whole = rows.to_pylist()
    if span.is_whole:
        return whole
    if span.ends:
        return [r for r in whole if r["_ts"] <= span.after < r["_te"] <= span.until]
    return [r for r in whole if span.after < r["_ts"] <= span.until]


@pytest.mark.parametrize("suffix", [ARROW, PARQUET])
@pytest.mark.parametrize("cut_rows", [1, 40, 10**9])
@pytest.mark.parametrize("together", [1, 60, 10**9])
def test_tasks_share_the_rows_of_a_step(
    tmp_path, monkeypatch, compiled, suffix, cut_rows, together
):
    """Whatever is cut, read or evaluated together: every row that is meant comes once, in order."""
    monkeypatch.setattr(portions, "CUT_ROWS", cut_rows)
    monkeypatch.setattr(portions, "TOGETHER_ROWS", together)
    chance = random.Random(f"{suffix}{cut_rows}{together}")
    for trial in range(8):
        spans, expected = list[FileSpan](), list[dict]()
        for number in range(chance.randint(0, 6)):
            is_sorted, name = chance.random() < 0.5, f"{trial}-{number}{suffix}"
            rows = table(chance, chance.randint(1, 90), is_sorted)
            write_rows(rows, tmp_path / name)
            after, until = sorted(chance.choices([5, 20, 30, 45], k=2))
            is_whole = chance.random() < 0.3
            ends = not is_whole and chance.random() < 0.4
            spans.append(FileSpan(name, after, until, ends, is_whole, is_sorted))
            expected += meant(rows, spans[-1])
        portion = Portion(Branch, Outputs(()), 0, False, tuple(spans))
        tasks, is_cut = chance.randint(1, 4), chance.random() < 0.5
        with Scan(tmp_path) as scan:
            found = [
                row
                for task in range(tasks)
                for part in portion.table(scan, task, tasks, is_cut)
                for row in part.to_pylist()
            ]
            alone = [r for part in portion.table(scan, 0, 1) for r in part.to_pylist()]
        key = repr
        assert sorted(found, key=key) == sorted(expected, key=key)
        assert alone == expected


def test_many_small_pieces_are_evaluated_together(tmp_path, compiled):
    rows = pa.table({"_ts": np.arange(10), "_te": np.arange(10) + 5})
    names = [f"{number}{ARROW}" for number in range(50)]
    for name in names:
        write_rows(rows, tmp_path / name)
    spans = tuple(FileSpan(name, 3, 7, ends=True, is_whole=False) for name in names)
    with Scan(tmp_path) as scan:
        [found] = Portion(Branch, Outputs(()), 0, True, spans).table(scan, 0, 1)
    assert found.num_rows == 50 * len(meant(rows, spans[0])) > 0
    assert compiled.calls == 1


@pytest.mark.parametrize("rows", [1, READ_BYTES // 8 + 1])
def test_a_file_that_is_gone_can_still_be_used_where_it_was_read(tmp_path, rows):
    """Little is read, much is mapped: a step goes on though another has given the page up."""
    path, wanted = tmp_path / f"page{ARROW}", pa.table({"c0": np.arange(rows)})
    write_rows(wanted, path)
    file, whole = open_rows(path), read_rows(path)
    path.unlink()
    piece = file.piece(0, ["c0"])
    file.close()
    assert piece.equals(wanted)
    assert whole.equals(wanted)
