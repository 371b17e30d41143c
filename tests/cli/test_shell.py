import io
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from millpond.cli.shell import Shell
from millpond.cli.terminal import converse, history_file, ready, start_shell
from millpond.facade.engine import Engine
from millpond.settings import Settings

STREAM = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts;"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def piped(text: str, monkeypatch: pytest.MonkeyPatch, store: str = "memory") -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    start_shell(Shell(Settings(store=store)))


def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create_pipe_input() as keys:
        keys.send_text(text)
        with create_app_session(input=keys, output=DummyOutput()):
            shell = Shell(Settings())
            try:
                converse(shell)
            finally:
                shell.close()


def test_statements_wait_for_their_semicolon_and_commands_do_not() -> None:
    assert not ready("SELECT a\nFROM S")
    assert not ready("SELECT ';")
    assert ready("SELECT a\nFROM S;")
    assert ready("\\d S")
    assert ready("")


def test_a_pipe_is_read_statement_by_statement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(f"{STREAM}\n\\d\n\\d s\n\\d t\n", monkeypatch)
    assert capsys.readouterr().out.splitlines() == [
        "stream S declared; INSERT feeds it, and \\push S FILE",
        "stream    S  (a INT, ts BIGINT)",
        "stream S",
        "  a   INT",
        "  ts  BIGINT",
        "  TIMESTAMP BY ts",
        "  FROM push()",
        'nothing is called "t"; \\d lists what is',
    ]


def test_a_fault_is_shown_and_the_shell_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(f"{STREAM}\nCREATE VIEW v AS\n  SELECT b\n  FROM S;\n\\d\n", monkeypatch)
    out, err = capsys.readouterr()
    assert err.startswith("<shell>:2:10: error: ")
    assert err.splitlines()[1:] == ["    SELECT b", "           ^"]
    assert out.splitlines()[-1] == "stream    S  (a INT, ts BIGINT)"


def test_quit_ends_the_reading(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped("\\q\n\\d\n", monkeypatch)
    assert capsys.readouterr().out == ""


def test_timing_help_and_unknown_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped("\\timing\n\\timing\n\\x\n\\?\n", monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "timing is on"
    assert lines[1].startswith("time: ")
    assert lines[2:4] == ["timing is off", "no command \\x; \\? lists them"]
    assert "  \\q                  leave (also Ctrl-D)" in lines


def test_show_answers_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped("SET page_rows = 7;\nSHOW SETTINGS;\n", monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["page_rows", "7"] for line in lines)


def test_an_unexpected_failure_does_not_end_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(Shell, "_execute", fail)
    piped(f"{STREAM}\n\\d\n", monkeypatch)
    out, err = capsys.readouterr()
    assert out == "nothing is declared yet\n"
    assert err == "millpond: internal error: ValueError: broken (MILLPOND_DEBUG=1 shows where)\n"


def test_a_terminal_takes_several_lines_and_keeps_history(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("CREATE STREAM S\r(a INT);\r\\d\r\\q\r", monkeypatch)
    assert capsys.readouterr().out.splitlines()[-1] == "stream    S  (a INT)"
    assert "(a INT);" in history_file().read_text()


def test_ctrl_c_discards_and_ctrl_d_leaves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("SELECT nonsense\x03\\d\r\x04", monkeypatch)
    assert capsys.readouterr().out.splitlines()[-1] == "nothing is declared yet"


@pytest.mark.spark
def test_a_select_sees_its_stream_from_the_start_each_time(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark: object,
) -> None:
    (tmp_path / "s.csv").write_text("a,ts\n1,1\n7,2\n")
    source = f"CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('{tmp_path}/s.csv');"
    piped(f"{source}\nSELECT a FROM S WHERE a > 5;\nSELECT a FROM S WHERE a > 5;\n", monkeypatch)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("  2     +1  7\n") == 2
    assert (
        out.count("(1 result; the query is not registered: CREATE QUERY name AS … does that)") == 2
    )


@pytest.mark.spark
def test_changes_show_in_registered_queries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    piped(
        "CREATE RELATION R (a INT);\n"
        "CREATE QUERY n AS SELECT count(*) AS n FROM R;\n"
        "INSERT INTO R VALUES (1), (2);\n",
        monkeypatch,
    )
    out, err = capsys.readouterr()
    assert err == ""
    assert "+1  0" in out
    assert "+1  2" in out


FED = (
    "{0} rows into {1}; it is complete up to {2}, and results come up to there: "
    "\\advance {1} TIME moves it on"
)


def test_every_statement_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text("k\n1\n2\n2\n")
    piped(
        f"""
        SET page_rows = 7;
        CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts DELAY 2;
        CREATE STREAM T (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(10, rows = 3);
        CREATE RELATION R (k INT) FROM csv('{tmp_path}/r.csv');
        CREATE RELATION K (k INT);
        CREATE VIEW v AS SELECT a FROM S;
        CREATE QUERY q INACTIVE AS SELECT a FROM T;
        ALTER QUERY q SET WEIGHT 3;
        INSERT INTO S VALUES (1, 10), (2, 12);
        INSERT INTO K VALUES (5);
        DROP QUERY q; DROP VIEW v;
        """,
        monkeypatch,
    )
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "page_rows is set",
        "stream S declared; INSERT feeds it, and \\push S FILE",
        "stream T declared; rate(10, rows = 3) is read when a query asks for it",
        "relation R declared, 3 rows",
        "relation K declared, no rows yet",
        "view v declared",
        "query q registered; it is inactive",
        "query q is inactive, weight 3",
        FED.format(2, "S", 9),
        "1 row into K",
        "query q dropped",
        "view v dropped",
    ]


def test_files_are_pushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.csv").write_text("a,ts\n1,1\n7,2\n")
    (tmp_path / "s.jsonl").write_text('{"a": 1, "ts": 3}\n')
    (tmp_path / "bad.csv").write_text("a,ts\n1,4\nx,5\n")
    piped(
        f"{STREAM}\n\\push S {tmp_path}/s.csv\n\\push s '{tmp_path}/s.jsonl'\n"
        f"\\advance S 9\n\\push S {tmp_path}/bad.csv\n\\push S nowhere.csv\n"
        "\\push nobody x.csv\n\\push S\n\\push\n"
        "\\advance S\n\\advance S soon\nSHOW STREAMS;\n",
        monkeypatch,
    )
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[1].startswith("2 rows into S; it is complete up to 1, and results")
    assert lines[2].startswith("1 row into s; it is complete up to 2, and results")
    assert lines[3:6] == [
        "\\push NAME FILE: which file?",
        "\\push NAME FILE: which stream?",
        "\\advance NAME TIME: up to when? a number of ticks or a timestamp",
    ]
    assert "3 tuples, 0 late" in lines[-1]
    assert [line.partition("error: ")[2] for line in err.splitlines()] == [
        f"{tmp_path}/bad.csv, line 3, column a: 'x' is not an INT",
        "S: no file nowhere.csv",
        'no stream or relation "nobody"; known: S',
        "S: 'soon' is not a time: give a number of ticks or a datetime",
    ]


def test_the_shell_keeps_its_input_for_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped("CREATE STREAM S (a INT) FROM stdin();\nSHOW STREAMS;\n", monkeypatch)
    out, err = capsys.readouterr()
    assert "S: standard input is read by the shell already" in err
    assert out.strip() == "name"


@pytest.mark.spark
def test_a_select_sees_what_was_pushed_before_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark: object,
) -> None:
    (tmp_path / "s.csv").write_text("a,ts\n7,2\n")
    piped(
        "CREATE STREAM S (x INT);\nINSERT INTO S VALUES (1);\nDROP STREAM S;\n"
        f"{STREAM}\nINSERT INTO S VALUES (1, 1);\n\\push S {tmp_path}/s.csv\n"
        "CREATE STREAM Endless (n BIGINT) FROM rate(10);\n"
        "CREATE RELATION R (a INT);\nINSERT INTO R VALUES (1);\nUPDATE R SET a = 7;\n"
        "SELECT S.a FROM S;\nSELECT S.a FROM S [NOW], R WHERE S.a = R.a;\nSHOW QUERIES;\n",
        monkeypatch,
    )
    out, err = capsys.readouterr()
    assert err == ""
    results = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert results == [
        ["time", "±", "a"],
        ["1", "+1", "1"],
        ["2", "+1", "7"],
        ["time", "±", "a"],
        ["2", "+1", "7"],
    ]
    assert "(2 results; the query is not registered" in out
    assert out.splitlines()[-1] == "name"  # SHOW QUERIES: none


@pytest.mark.spark
def test_registered_queries_answer_to_what_is_fed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark: object,
) -> None:
    (tmp_path / "s.csv").write_text("a,ts\n7,2\n8,3\n")
    piped(
        f"{STREAM}\nCREATE QUERY q AS SELECT a FROM S;\nINSERT INTO S VALUES (1, 1);\n"
        f"\\push S {tmp_path}/s.csv\n\\advance S 3\n"
        "CREATE STREAM T (n BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(10, rows = 2);\n"
        "CREATE QUERY p AS SELECT n FROM T;\n\\run 100s\n",
        monkeypatch,
    )
    out, err = capsys.readouterr()
    assert err == ""
    results = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert [r[2] for r in results] == ["a", "1", "7", "8", "n", "0", "1"]


def test_there_is_nothing_to_run_without_a_query_or_for_no_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(
        f"\\run\n{STREAM}\nCREATE QUERY q INACTIVE AS SELECT a FROM S;\n\\run soon\n", monkeypatch
    )
    out, err = capsys.readouterr()
    assert out.startswith("no query is registered, so there is nothing to read for")
    assert err.startswith("<shell>: error: \\run soon: this is not a length of time")


class _Interrupted(Engine):
    def run_sources(self, *_: object) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_stops_a_run_and_not_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("millpond.cli.shell.Engine", _Interrupted)
    piped(
        "CREATE STREAM T (n BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(10);\n"
        "CREATE QUERY p INACTIVE AS SELECT n FROM T;\nALTER QUERY p ACTIVATE;\n\\run\n\\d p\n",
        monkeypatch,
    )
    out, err = capsys.readouterr()
    assert err == (
        "millpond: T FROM rate(10) has no end, and p reads it: "
        "Ctrl-C stops it, \\run 30s would end it\n"
    )
    assert "stopped\nquery p\n" in out


def test_a_shell_goes_on_with_its_store(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What is typed again is meant again; a bare SELECT knows what was declared before."""
    store, query = str(tmp_path / "store"), "CREATE QUERY n AS SELECT count(*) AS n FROM R;"
    relation, row = "CREATE RELATION R (a INT);", "INSERT INTO R VALUES (7);"
    piped(f"{relation}\n{query}\n{row}\n", monkeypatch, store)
    capsys.readouterr()
    piped(f"{row}\nSELECT a FROM R;\n{relation}\nSHOW n;\n", monkeypatch, store)
    out, err = capsys.readouterr()
    assert '"R" exists already' in err
    assert "1 result" in out
    with Engine(store=store) as engine:
        assert engine.inputs.relations["r"].changed_rows == 2
