import pytest

from millpond.cli.faults import Script, describe_fault, report
from millpond.errors import CqlError, InputError, Position


def test_a_fault_shows_its_line_and_a_caret() -> None:
    script = Script("a.cql", "SELECT x\n\tFROM  nowhere")
    fault = describe_fault(CqlError("no stream", Position(2, 8)), script)
    assert fault == "a.cql:2:8: error: no stream\n  \tFROM  nowhere\n  \t      ^"


def test_a_place_after_the_end_has_no_line() -> None:
    script = Script("a.cql", "SELECT")
    assert describe_fault(CqlError("unfinished", Position(2, 1)), script) == (
        "a.cql:2:1: error: unfinished"
    )


def test_a_caret_may_stand_behind_the_line() -> None:
    fault = describe_fault(CqlError("unfinished", Position(1, 7)), Script("a.cql", "SELECT"))
    assert fault.splitlines()[1:] == ["  SELECT", "        ^"]


def test_an_error_without_a_place_is_one_line() -> None:
    assert describe_fault(InputError("x.csv, line 3: no")) == "millpond: error: x.csv, line 3: no"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 2),
        (CqlError("x"), 2),
        (KeyboardInterrupt(), 130),
        (ValueError("a\nb"), 70),
    ],
)
def test_every_error_has_its_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_interruption_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report(KeyboardInterrupt())
    assert capsys.readouterr().err == ""


def test_an_internal_error_is_one_line_unless_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report(ValueError("first\nsecond"))
    assert capsys.readouterr().err == (
        "millpond: internal error: ValueError: first (MILLPOND_DEBUG=1 shows where)\n"
    )
    monkeypatch.setenv("MILLPOND_DEBUG", "1")
    report(ValueError("first"))
    assert "ValueError: first" in capsys.readouterr().err
