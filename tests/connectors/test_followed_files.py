"""Files that are followed: their rows, their positions and their bad rows."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import open_source
from millpond.connectors.files import Block
from millpond.connectors.sources import Declaration
from millpond.errors import MillpondError
from millpond.settings import Settings
from millpond.testing import check_source
from tests.connectors.declarations import schema
from tests.connectors.followed_lives import ROWS_A_KILL, rows_there
from tests.connectors.reading import Reading
from tests.connectors.test_bad_rows import COLUMNS, MALFORMED, bad_csv, bad_json, mixed
from tests.patience import PATIENCE_SECONDS

PAGE_ROWS = 10


def opened(file: Path, columns: str = "a INT, b STRING", skips: bool = False, time=None, **options):
    name = "json" if "json" in file.name else "csv"
    call = Connector(name, (str(file),), (("follow", True), *options.items()))
    entry = StreamEntry("S", schema(columns), time, 0, call, skips_bad_rows=skips)
    return open_source(entry, Settings(page_rows=PAGE_ROWS))


def checked(file: Path, count: int, columns: str = "a INT, b STRING", skips: bool = False, **opts):
    """The rows, read from each position there is."""
    settings = Settings(page_rows=PAGE_ROWS)
    declaration = Declaration("S", schema(columns), None, settings, skips_bad_rows=skips)
    return check_source(lambda _: opened(file, columns, skips, **opts), declaration, count)


def test_csv_goes_on_behind_any_row_with_or_without_a_header(tmp_path) -> None:
    text = "".join(f'{n},"x{n}\n\n"\n' if n % 3 else f"\n{n},y\n" for n in range(25))
    wanted = [(n, f"x{n}\n\n" if n % 3 else "y") for n in range(25)]
    for number, head in enumerate(("", "\ufeffa,b\n", "b,x,a\n")):
        file = tmp_path / f"{number}.csv"
        turned = "".join(f'"{b}",,{a}\n' for a, b in wanted)
        file.write_text(head + (turned if head.startswith("b") else text))
        assert checked(file, 25) == wanted


def test_a_file_is_known_to_hold_no_rows_but_a_header(tmp_path) -> None:
    csv, json = ((tmp_path / f"x.{kind}") for kind in ("csv", "jsonl"))
    texts = [b"", b"a,b\n", b"a,b\n\n", b"a,b\n1,x\n", b"1,x\n", b"x\n"]
    found = [opened(csv)._text.holds_rows(Block("x", text, 0)) for text in texts]
    assert found == [False, False, False, True, True, True]
    assert opened(json)._text.holds_rows(Block("x", b"{}\n", 0))


def test_json_goes_on_behind_any_row(tmp_path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("".join(f'\n{{"a": {n}}}\r\n \n' for n in range(25)))
    assert checked(file, 25) == [(n, None) for n in range(25)]


def test_each_file_of_a_directory_has_its_own_header_and_lines(tmp_path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,x\n")
    (tmp_path / "2.csv").write_text("b,a\ny,3\ny,4\n")
    reading = Reading(opened(tmp_path, skips=True))
    reading.until_there(4)
    for name, line in (("1.csv", "5,x"), ("2.csv", "y,6"), ("1.csv", "x,7"), ("3.csv", "7,z")):
        with (tmp_path / name).open("a") as file:
            file.write(f"{line}\n")
        reading.until_there(len(reading.rows) + (line != "x,7"), int(line == "x,7"))
    reading.end()
    assert [row[0] for row in reading.rows] == [1, 2, 3, 4, 5, 6, 7]
    (bad,) = reading.bad
    assert (bad.offset, bad.raw) == (f"{tmp_path / '1.csv'}, line 5", b"x,7")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_300_malformed_lines_of_a_file_that_grows_are_all_put_aside(tmp_path, kind) -> None:
    file, rng = tmp_path / f"x.{kind}", random.Random(3)
    good = "{},1,2026-01-01" if kind == "csv" else '{{"id": {}, "v": 1, "at": "2026-01-01"}}'
    lines, ids, wrong = mixed(rng, bad_csv if kind == "csv" else bad_json, good.format)
    text = "\n".join([*(["id,v,at"] if kind == "csv" else []), *lines]) + "\n"
    source = opened(file, COLUMNS, skips=True, time=0)
    reading = Reading(source)
    while text:
        cut = rng.randrange(1, 4_000)
        with file.open("a", newline="") as out:
            out.write(text[:cut])
        text = text[cut:]
        if rng.random() < 0.2:
            reading.until_there(len(reading.rows))
    reading.until_there(len(ids), MALFORMED)
    reading.end()
    assert [row[0] for row in reading.rows] == ids
    assert [each.raw.decode() for each in reading.bad] == wrong


def test_bad_rows_count_in_positions(tmp_path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("a,b\n" + "".join(f"{n if n % 4 else 'x'},\n" for n in range(40)))
    assert checked(file, 40, skips=True) == [(n, None) for n in range(40) if n % 4]


def test_a_bad_row_stops_with_its_line_and_is_read_again(tmp_path) -> None:
    file = tmp_path / "x.csv"
    with Engine() as engine:
        engine.execute(f"CREATE STREAM S (a INT) FROM csv('{file}', follow = true)")
        engine.execute("CREATE QUERY q AS SELECT a FROM S")
        file.write_text("a\n1\n")
        engine.run_sources(rows=1)
        with file.open("a") as out:
            out.write("x\n")
        for _ in range(2):
            with pytest.raises(MillpondError, match=r"x.csv, line 3, column a: 'x' is not an INT"):
                engine.run_sources(rows=1)
        file.write_text("a\n1\n2\n")
        engine.run_sources(rows=1)
        assert [row["a"] for row in engine.results("q").to_pylist()] == [1, 2]
        assert "follow = True" in str(engine.show("streams").to_pylist())


def test_a_relation_with_changes_follows_a_file(tmp_path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("ts,op,k\n2026-01-01,+,1\n2026-01-02,+,2\n")
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(
            f"CREATE RELATION R (k INT) FROM csv('{file}', follow = true) WITH (changes = true)"
        )
        engine.execute("CREATE QUERY q AS SELECT k FROM R")
        engine.run_sources(rows=2)
    with file.open("a") as out:
        out.write("2026-01-03,-,1\n")
    with Engine(store=tmp_path / "store") as engine:
        engine.finish(rows=3)
        found = [(row["weight"], row["k"]) for row in engine.results("q").to_pylist()]
    assert found == [(1, 1), (1, 2), (-1, 1)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("'-'", "standard input is not followed"),
        ("'none/x.csv'", "no directory .*none, where none/x.csv would come"),
        ("'x.csv.gz'", "x.csv.gz is compressed"),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path, name, said) -> None:
    with Engine(directory=tmp_path) as engine, pytest.raises(MillpondError, match=said):
        engine.execute(f"CREATE STREAM S (a INT) FROM csv({name}, follow = true)")


def test_follow_is_true_or_false_and_for_what_does_not_end(tmp_path) -> None:
    with Engine(directory=tmp_path) as engine:
        with pytest.raises(MillpondError, match="follow is true or false, not 'yes'"):
            engine.execute("CREATE STREAM S (a INT) FROM json('x.json', follow = 'yes')")
        with pytest.raises(MillpondError, match="has no end, but the content of a relation"):
            engine.execute("CREATE RELATION R (a INT) FROM csv('x.csv', follow = true)")
        engine.execute("CREATE STREAM S (a INT) FROM csv('x.csv', follow = true)")
        with pytest.raises(MillpondError, match="S reads from"):
            engine.execute("CREATE QUERY q AS SELECT a FROM S INTO csv('x.csv.1')")


@pytest.mark.slow
def test_kills_lose_nothing_and_double_nothing(tmp_path) -> None:
    kills_while_a_file_grows(tmp_path, seed=1, kills=4)


def kills_while_a_file_grows(folder: Path, seed: int, kills: int) -> None:
    """Kills an engine that follows a file, and compares what it wrote with what it was to read."""
    command = [sys.executable, "-m", "tests.connectors.followed_lives", str(folder)]
    done = subprocess.run(
        [*command, str(seed), str(kills)],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{kills}\n"), done.stderr[-4_000:]
    lines, rows = (folder / "out.csv").read_text().splitlines()[1:], rows_there(folder)
    assert rows >= ROWS_A_KILL * kills
    assert [int(line.rpartition(",")[2]) for line in lines] == list(range(rows))
