"""Rows that cannot be read are put aside, each with its place, the reason and its bytes."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.cli.notices import warn_of_bad_rows
from millpond.connectors import open_source
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.sources import OpenPages, SourcePage, Taken
from millpond.errors import CqlError, InputError, OutputError
from millpond.settings import Settings
from tests.connectors.declarations import schema, tuples
from tests.crashing import die

COLUMNS = "id BIGINT, v INT, at TIMESTAMP"
MALFORMED = 300
PAGE_ROWS = 64


def skipping(connector: str, file: Path, columns: str = COLUMNS, page_rows: int = PAGE_ROWS):
    call = Connector(connector, (str(file),))
    entry = StreamEntry("S", schema(columns), 0, 0, call, skips_bad_rows=True)
    return open_source(entry, Settings(page_rows=page_rows))


def read(source) -> tuple[list, list[BadRow]]:
    pages = [page for page in source.pages() if isinstance(page, SourcePage)]
    return [r for p in pages for r in tuples(p.rows)], [b for p in pages for b in p.bad]


def bad_csv(rng: random.Random, number: int) -> str:
    kinds = [
        f"{number},x,2026-01-01",
        f"{number},{2**31},2026-01-01",
        f"{number},1",
        f"{number},1,2026-01-01,more",
        f"{number},1,yesterday",
        f",{number},2026-01-01",
        f"{number}.5,1,2026-01-01",
        f'"{number}"",1,2026-01-01"',
        f"{2**62},1,2026-01-01",
        "\x00",
        f"{number};1;2026-01-01",
    ]
    return rng.choice(kinds)


def bad_json(rng: random.Random, number: int) -> str:
    kinds = [
        f'{{"id": {number}, "v": "x"}}',
        f'{{"id": {number}, "v": 1',
        f'{{"id": {number}, "v": {2**31}}}',
        f'{{"id": {number}, "id": 2}}',
        f"[{number}]",
        "null",
        f'"{number}"',
        '{"v": 1}',
        f'{{"id": {number}, "at": "soon"}}',
        f'{{"id": {number}, "v": [1]}}',
        f"{{'id': {number}}}",
        f'{{"id": {number}}} more',
        f'{{"id": {2**70}}}',
        "[" * 5000,
        f'{{"id": true, "v": {number}}}',
    ]
    return rng.choice(kinds)


def mixed(rng: random.Random, bad, good) -> tuple[list[str], list[int], list[str]]:
    """Good lines with as many bad ones among them: all, the ids of the good ones, the bad ones."""
    lines, ids, wrong = [], [], []
    for number in range(2 * MALFORMED):
        if number % 2 == (number // 50) % 2:  # runs of different lengths
            ids.append(number)
            lines.append(good(number))
        else:
            wrong.append(bad(rng, number))
            lines.append(wrong[-1])
    assert len(wrong) == MALFORMED
    return lines, ids, wrong


@pytest.mark.parametrize("seed", range(2))
def test_300_malformed_lines_of_csv_are_all_put_aside(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "a.csv"
    lines, ids, wrong = mixed(random.Random(seed), bad_csv, lambda n: f"{n},1,2026-01-01")
    file.write_text("\n".join(["id,v,at", *lines]) + "\n")
    rows, bad = read(skipping("csv", file))
    assert [row[0] for row in rows] == ids
    assert [each.raw.decode() for each in bad] == wrong
    numbers = [2 + place for place, line in enumerate(lines) if line in set(wrong)]
    assert [each.offset for each in bad] == [f"{file}, line {number}" for number in numbers]
    assert all(str(file) in each.reason for each in bad)


@pytest.mark.parametrize("seed", range(2))
def test_300_malformed_lines_of_json_are_all_put_aside(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "a.jsonl"
    good = '{{"id": {}, "v": 1, "at": "2026-01-01"}}'
    lines, ids, wrong = mixed(random.Random(seed), bad_json, good.format)
    file.write_text("\n".join(lines))
    rows, bad = read(skipping("json", file))
    assert [row[0] for row in rows] == ids
    assert [each.raw.decode() for each in bad] == wrong


def test_300_values_of_parquet_that_do_not_fit_are_put_aside(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    values = [n if n % 2 else 2**31 + n for n in range(2 * MALFORMED)]
    table = pa.table({"id": range(2 * MALFORMED), "v": pa.array(values, pa.int64())})
    pq.write_table(table, file)
    rows, bad = read(skipping("parquet", file, "id BIGINT, v INT"))
    assert [row[0] for row in rows] == list(range(1, 2 * MALFORMED, 2))
    assert [json.loads(each.raw)["id"] for each in bad] == list(range(0, 2 * MALFORMED, 2))
    assert bad[1].offset == f"{file}, row 3"


def test_a_file_that_does_not_fit_at_all_is_an_error_still(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,other\n1,2\n")
    with pytest.raises(InputError, match="no column v"):
        read(skipping("csv", file))
    parquet = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["x"], "v": [1]}), parquet)
    with pytest.raises(InputError, match="string is not BIGINT"):
        read(skipping("parquet", parquet, "id BIGINT, v INT"))


def test_bytes_that_are_no_text_are_told_in_base64(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"id,v,at\n1,caf\xe9,2026-01-01\n2,2,2026-01-01\n")
    rows, (bad,) = read(skipping("csv", file))
    assert len(rows) == 1
    assert bad.raw == b"1,caf\xe9,2026-01-01"
    assert bad.values[2:] == (None, base64.b64encode(bad.raw).decode())


def test_a_first_line_without_a_header_may_be_bad(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("1,2\n2,2,2026-01-01\n")
    rows, (bad,) = read(skipping("csv", file))
    assert [row[0] for row in rows] == [2]
    assert bad.raw == b"1,2"


@pytest.mark.parametrize("taken", [(0, 0), (3, 2), (5, 0), (64, 64), (65, 64), (300, 299)])
def test_whoever_goes_on_gets_the_rest_of_rows_and_bad_rows(tmp_path: Path, taken) -> None:
    file = tmp_path / "a.csv"
    rng = random.Random(7)
    lines, _, wrong = mixed(rng, bad_csv, lambda n: f"{n},1,2026-01-01")
    file.write_text("\n".join(["id,v,at", *lines]) + "\n")
    rows, _ = read(skipping("csv", file))
    pages = OpenPages.of(skipping("csv", file), Taken(*taken))
    found, bad, reached = [], [], list(taken)
    while (page := pages.behind(*reached)) is not None:
        found += tuples(page.rows)
        bad += [each.raw.decode() for each in page.bad]
        reached = [reached[0] + page.rows.num_rows, reached[1] + len(page.bad)]
    assert found == rows[taken[0] :]
    assert bad == wrong[taken[1] :]


def test_a_page_is_cut_with_the_bad_rows_before_its_last_row() -> None:
    table = pa.table({"a": [1, 2, 3]})
    bad = tuple(BadRow(str(after), "", b"", after) for after in (0, 1, 2, 3))
    first, rest = SourcePage(table, bad, lambda rows: rows).cut(2)
    assert [each.offset for each in first.bad] == ["0", "1"]
    assert [(each.offset, each.after) for each in rest.bad] == [("2", 0), ("3", 1)]
    assert (first.position, rest.position) == (2, 3)


# -- in an engine --------------------------------------------------------------------------


def declare(engine: Engine, folder: Path, policy: str) -> None:
    engine.execute(
        f"CREATE STREAM S (id BIGINT, v INT) TIMESTAMP BY id FROM csv('{folder}/a.csv') "
        f"ON BAD ROW {policy}"
    )
    engine.execute(f"CREATE QUERY q AS SELECT id FROM S INTO csv('{folder}/out.csv')")


def write_input(folder: Path) -> tuple[list[int], list[int]]:
    good = [n for n in range(400) if n % 7 and n % 50 > 3]
    bad = [n for n in range(400) if n not in good]
    lines = [f"{n},{'x' if n in bad else n}" for n in range(400)]
    (folder / "a.csv").write_text("\n".join(["id,v", *lines]) + "\n")
    return good, bad


def ids_in(file: Path, column: str) -> list[int]:
    table = pa.csv.read_csv(file)
    return [int(str(value).split(",")[0]) for value in table[column].to_pylist()]


def test_bad_rows_are_counted_shown_and_readable(tmp_path: Path, capsys) -> None:
    _, bad = write_input(tmp_path)
    with Engine(Settings(page_rows=50)) as engine:
        declare(engine, tmp_path, "SKIP")
        engine.finish()
        assert engine.bad_row_count("s") == len(bad)
        table = engine.bad_rows("S")
        assert [int(raw.split(",")[0]) for raw in table["raw"].to_pylist()] == bad
        assert table["reason"][0].as_py().endswith("line 2, column v: 'x' is not an INT")
        assert engine.bad_rows("S", last_rows=3).num_rows == 3
        assert engine.entities().get("stream", "S").get("bad_rows") == len(bad)
        (shown,) = engine.execute("SHOW STREAMS")[0].to_pylist()
        assert f"{len(bad)} bad rows put aside" in shown["detail"]
        warn_of_bad_rows(engine)
        warning = capsys.readouterr().err
        assert f"stream S: {len(bad)} rows could not be read and were put aside" in warning
        assert f"the last: {tmp_path}/a.csv, line {bad[-1] + 2}, column v" in warning
        engine.validate()


def test_without_a_policy_the_first_bad_row_stops_the_run(tmp_path: Path) -> None:
    write_input(tmp_path)
    with Engine() as engine:
        declare(engine, tmp_path, "STOP")
        with pytest.raises(InputError, match="line 2, column v"):
            engine.finish()
        assert engine.bad_row_count("S") == 0
        assert engine.bad_rows("S").num_rows == 0


@pytest.mark.parametrize("shortens", [False, True])
def test_dead_letters_are_there_once_however_often_the_engine_dies(
    tmp_path: Path, shortens: bool
) -> None:
    good, bad = write_input(tmp_path)
    for rows in (37, 90, 91, 200, None):
        engine = Engine(Settings(page_rows=25), store=tmp_path / "store")
        declare(engine, tmp_path, f"INTO csv('{tmp_path}/dead.csv')")
        if rows is None:
            engine.finish()
        else:
            engine.run_sources(rows=rows)
        if shortens:
            engine.compact_log()
        engine.validate()
        die(engine)
    assert ids_in(tmp_path / "out.csv", "id") == good
    assert ids_in(tmp_path / "dead.csv", "raw") == bad


def test_a_sink_of_dead_letters_that_fails_stops_the_source_and_loses_none(
    tmp_path: Path, monkeypatch
) -> None:
    _, bad = write_input(tmp_path)
    with Engine(Settings(page_rows=25)) as engine:
        declare(engine, tmp_path, f"INTO csv('{tmp_path}/dead.csv')")
        sink = engine.deliveries.bad_rows("s").sink._sink
        with monkeypatch.context() as patch:
            patch.setattr(sink, "write", lambda table: 1 / 0)
            with pytest.raises(OutputError, match="S#bad_rows INTO csv"):
                engine.finish()
        taken = engine.bad_row_count("S")
        assert taken < len(bad)
        engine.run_sources()
        assert ids_in(tmp_path / "dead.csv", "raw") == bad
        engine.validate()


def test_dropping_a_stream_gives_its_dead_letters_free(tmp_path: Path) -> None:
    write_input(tmp_path)
    with Engine() as engine:
        for _ in range(2):
            declare(engine, tmp_path, f"INTO csv('{tmp_path}/dead.csv')")
            engine.run_sources()
            engine.execute("DROP QUERY q")
            engine.execute("DROP STREAM S")
            engine.validate()


def test_only_sources_of_streams_have_bad_rows() -> None:
    with Engine() as engine:
        with pytest.raises(CqlError, match="whoever pushes a bad row gets the error"):
            engine.execute("CREATE STREAM S (a INT) ON BAD ROW SKIP")
        with pytest.raises(CqlError, match="ON BAD ROW is for streams"):
            engine.execute("CREATE RELATION R (a INT) FROM csv('x.csv') ON BAD ROW SKIP")
        with pytest.raises(CqlError, match="STOP, SKIP or INTO"):
            engine.execute("CREATE STREAM S (a INT) FROM csv('x.csv') ON BAD ROW IGNORE")
