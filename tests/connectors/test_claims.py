"""No sink writes what a source reads or another sink writes, by whatever name."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from millpond import Engine
from millpond.connectors.locations import Location
from millpond.errors import MillpondError

READ = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM {source}"
WRITE = "CREATE QUERY {name} AS SELECT a FROM S INTO {sink}"
CONTENT = "a,ts\n1,1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(CONTENT)
    (tmp_path / "sub").mkdir()
    return tmp_path


def symbolic(folder: Path) -> str:
    (folder / "link.csv").symlink_to("data.csv")
    return "link.csv"


def hard(folder: Path) -> str:
    os.link(folder / "data.csv", folder / "sub" / "hard.csv")
    return "sub/hard.csv"


def through_a_linked_folder(folder: Path) -> str:
    (folder / "other").symlink_to(folder)
    return "other/data.csv"


OTHER_NAMES: list[Callable[[Path], str]] = [
    lambda folder: "data.csv",
    lambda folder: "./sub/../data.csv",
    lambda folder: str(folder / "data.csv"),
    symbolic,
    hard,
    through_a_linked_folder,
]


@pytest.mark.parametrize("name", OTHER_NAMES)
@pytest.mark.parametrize("sink", ["csv('{}')", "json('{}')", "csv('{}', append = true)"])
def test_a_query_does_not_write_into_its_input(
    folder: Path, name: Callable[[Path], str], sink: str
) -> None:
    with Engine() as engine:
        engine.execute(READ.format(source="csv('data.csv')"))
        with pytest.raises(
            MillpondError, match=r"S reads from data\.csv, which this would overwrite"
        ):
            engine.execute(WRITE.format(name="q", sink=sink.format(name(folder))))
        assert engine.show("queries").num_rows == 0
    assert (folder / "data.csv").read_text() == CONTENT


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        ("csv('.')", "csv('new.csv')"),
        ("csv('.')", "json('./sub/../new.csv')"),
        ("csv('*.csv')", "csv('new.csv')"),
        ("csv('**/*.csv')", "csv('sub/deeper/new.csv')"),
        ("parquet('sub')", "parquet('sub')"),
        ("parquet('sub')", "parquet('sub', append = true)"),
        ("parquet('sub/part-000000.parquet')", "parquet('./sub')"),
        ("parquet('sub/*.parquet')", "parquet('sub')"),
        ("parquet('sub')", "csv('sub/x.parquet')"),
    ],
)
def test_nor_into_a_folder_or_pattern_that_is_read(folder: Path, source: str, sink: str) -> None:
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts")
        engine.execute(WRITE.format(name="first", sink="parquet('sub')"))
        log = engine.deliveries.of("first")
        assert log.sink is not None
        log.sink.write(log.table())
        engine.execute("DROP QUERY first; DROP STREAM S")
        before = (folder / "sub" / "part-000000.parquet").read_bytes()
        engine.execute(READ.format(source=source))
        with pytest.raises(MillpondError, match=r"S reads from .*, which this would overwrite"):
            engine.execute(WRITE.format(name="q", sink=sink))
    assert (folder / "data.csv").read_text() == CONTENT
    assert (folder / "sub" / "part-000000.parquet").read_bytes() == before
    assert not (folder / "new.csv").exists()


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        ("csv('.')", "json('out.json')"),
        ("csv('.')", "csv('sub/out.csv')"),
        ("csv('*.csv')", "csv('sub/out.csv')"),
        ("csv('.')", "csv('_out.csv')"),
        ("csv('data.csv')", "csv('out.csv')"),
        ("csv('data.csv')", "parquet('.')"),
        ("csv('data.csv')", "csv('/dev/null')"),
    ],
)
def test_what_is_not_read_may_be_written(folder: Path, source: str, sink: str) -> None:
    with Engine() as engine:
        engine.execute(READ.format(source=source))
        engine.execute(WRITE.format(name="q", sink=sink))


def test_two_queries_do_not_write_into_one_file(folder: Path) -> None:
    (folder / "link.csv").symlink_to("out.csv")
    with Engine() as engine:
        engine.execute(READ.format(source="push()"))
        for first, second in (
            ("csv('out.csv')", "csv('out.csv')"),
            ("csv('out.csv')", "json('./out.csv')"),
            ("csv('link.csv')", "json('out.csv', append = true)"),
            ("parquet('out')", "parquet('sub/../out')"),
            ("parquet('out')", "json('out/part-000007.parquet')"),
        ):
            engine.execute(WRITE.format(name="one", sink=first))
            with pytest.raises(MillpondError, match="query one writes to it already"):
                engine.execute(WRITE.format(name="two", sink=second))
            engine.execute("DROP QUERY one")
            engine.execute(WRITE.format(name="two", sink=second))
            engine.execute("DROP QUERY two")


def test_devices_may_be_shared(folder: Path) -> None:
    with Engine() as engine:
        engine.execute(READ.format(source="push()"))
        engine.execute(WRITE.format(name="one", sink="csv('/dev/null')"))
        engine.execute(WRITE.format(name="two", sink="json('/dev/null')"))


def test_what_a_query_writes_is_not_read_meanwhile(folder: Path) -> None:
    with Engine() as engine:
        engine.execute(READ.format(source="push()"))
        engine.execute(WRITE.format(name="q", sink="csv('out.csv')"))
        with pytest.raises(
            MillpondError, match=r"T: out\.csv is what query q writes to; DROP QUERY q"
        ):
            engine.execute("CREATE RELATION T (a INT) FROM csv('out.csv')")
        engine.execute("DROP QUERY q; CREATE RELATION T (a INT) FROM csv('out.csv')")


def test_a_refused_declaration_claims_nothing(folder: Path) -> None:
    with Engine() as engine:
        engine.execute(READ.format(source="push()"))
        (folder / "twice.csv").write_text("a,A\n1,2\n")
        with pytest.raises(MillpondError, match="two columns"):
            engine.execute("CREATE RELATION T (a INT) FROM csv('twice.csv')")
        engine.execute(WRITE.format(name="q", sink="csv('twice.csv')"))
        with pytest.raises(MillpondError, match="append is true or false, not 'maybe'"):
            engine.execute(WRITE.format(name="p", sink="csv('p.csv', append = 'maybe')"))
        engine.execute(WRITE.format(name="r", sink="csv('p.csv')"))


def test_standard_input_has_one_reader(folder: Path) -> None:
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT) FROM csv('-')")
        with pytest.raises(MillpondError, match="T: standard input is read by S already"):
            engine.execute("CREATE STREAM T (a INT) FROM stdin()")
        with pytest.raises(MillpondError, match="q INTO -: this is standard input"):
            engine.execute("CREATE QUERY q AS SELECT a FROM S INTO csv('-')")
    with Engine() as engine:
        engine.ground.claims.keep_stdin("the shell")
        with pytest.raises(MillpondError, match="standard input is read by the shell already"):
            engine.execute("CREATE STREAM T (a INT) FROM json('/dev/stdin')")


@pytest.mark.parametrize(
    ("pattern", "file", "is_covered"),
    [
        ("a/*.csv", "a/x.csv", True),
        ("a/*.csv", "a/b/x.csv", False),
        ("a/*.csv", "a/.x.csv", False),
        ("a/**/*.csv", "a/x.csv", True),
        ("a/**/*.csv", "a/b/c/x.csv", True),
        ("*/x.csv", "a/x.csv", True),
        ("[ab]/?.csv", "a/x.csv", True),
        ("[ab]/?.csv", "c/x.csv", False),
    ],
)
def test_a_pattern_covers_files_to_come(
    tmp_path: Path, pattern: str, file: str, is_covered: bool
) -> None:
    assert Location(pattern, tmp_path / pattern).covers(tmp_path / file) == is_covered
