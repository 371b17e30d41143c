import io
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from millpond.cli import shell as shell_module
from millpond.cli.shell import Shell, history_file, ready, start_shell
from millpond.settings import Settings

STREAM = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts;"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def piped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    start_shell(Settings())


def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create_pipe_input() as keys:
        keys.send_text(text)
        with create_app_session(input=keys, output=DummyOutput()):
            shell = Shell(Settings())
            try:
                shell_module._converse(shell)
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
    assert out == "stream    S  (a INT, ts BIGINT)\n"


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
    assert "  \\q             leave (also Ctrl-D)" in lines


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
