import json
import subprocess
import sys
from pathlib import Path

import pytest

import millpond
from millpond.cli import main

SCRIPT = """\
CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('s.csv');
CREATE QUERY big AS SELECT a FROM S WHERE a > 5;
SELECT count(*) FROM S [RANGE 10];
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.cql"
    path.write_text(text)
    return str(path)


def code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert isinstance(left.value.code, int)
    return left.value.code


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("--version") == 0
    assert capsys.readouterr().out == f"millpond {millpond.__version__}\n"


def test_check_counts_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, SCRIPT)
    assert code_of("check", file) == 0
    assert capsys.readouterr().out == f"{file}: 3 statements, no errors\n"


def test_check_warns_of_what_is_hardly_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(
        tmp_path, "CREATE STREAM S (a INT);\nSELECT DISTINCT a\nFROM S [RANGE 1 SECOND];\n"
    )
    assert code_of("check", file) == 0
    out, err = capsys.readouterr()
    assert out == f"{file}: 2 statements, no errors, 1 warning\n"
    lines = err.splitlines()
    assert lines[0].startswith(f"{file}:2:1: warning: DISTINCT takes rows back")
    assert lines[1:] == ["  SELECT DISTINCT a", "  ^"]
    assert code_of("explain", file) == 0
    assert "\nwarning: DISTINCT takes rows back" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_a_fault_in_a_script_names_its_place_and_exits_2(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "CREATE STREAM S (a INT);\nSELECT b\nFROM S;\n")
    assert code_of(command, file) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith(f"{file}:2:8: error: ")
    assert lines[1:] == ["  SELECT b", "         ^"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SET pagerows = 5", 'no setting "pagerows"; did you mean "page_rows"?'),
        ("SET page_rows = 0", "setting page_rows: '0' is not a whole number"),
        ("SET strategy = 'chian'", 'no strategy "chian"; did you mean "chain"?'),
        ("SET strategy = 'hmts(slices = 3)'", 'strategy "hmts" has no setting "slices"'),
        ("CREATE STREAM S (a INT) FROM cvs('x')", 'no source cvs; did you mean "csv"?'),
        ("CREATE STREAM S (a INT) FROM csv('x', headr = true)", "csv: no option headr"),
    ],
)
def test_check_knows_settings_and_connectors(
    tmp_path: Path, statement: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, f"\n{statement};")
    assert code_of("check", file) == 2
    place, _, found = capsys.readouterr().err.partition(" error: ")
    assert place.startswith(f"{file}:2:")
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nowhere.cql"], "millpond: error: nowhere.cql: No such file or directory\n"),
        (["check", "."], "millpond: error: .: Is a directory\n"),
        (["run", "--set", "x", "FILE"], "millpond: error: --set x: write it as key=value\n"),
        (["run", "--set", "seed=x", "FILE"], "millpond: error: --set seed=x: setting seed: 'x' is"),
        (["run", "--strategy", "none such", "FILE"], 'millpond: error: no strategy "none such"'),
        (["check", "--set", "strategy=fifoo", "FILE"], 'millpond: error: no strategy "fifoo"'),
        (["run", "--strategy", "dj", "FILE"], 'millpond: error: no strategy "dj"'),
        (
            ["run", "--set", "strategy=chain(max_tuples=0)", "FILE"],
            'millpond: error: strategy "chain": max_tuples is 0; give at least 1',
        ),
    ],
)
def test_other_faults_are_one_line_and_exit_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, SCRIPT)
    assert code_of(*(file if word == "FILE" else word for word in arguments)) == 2
    assert capsys.readouterr().err.startswith(message)


def test_wrong_usage_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run") == 2
    assert code_of("run", "--format", "xml", "x") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_binary_file_is_no_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    assert code_of("check", str(tmp_path / "x")) == 2
    assert "this is no text in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["syntax", "logical", "physical"])
def test_explain_prints_every_query(
    tmp_path: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("explain", "--stage", stage, written(tmp_path, SCRIPT)) == 0
    out = capsys.readouterr().out
    assert "big:\n" in out
    assert "q1:\n" in out


@pytest.mark.parametrize("stage", ["syntax", "logical", "physical"])
def test_explain_as_json_has_one_object_a_query(
    tmp_path: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, SCRIPT)
    assert code_of("explain", "--stage", stage, "--format", "json", file) == 0
    plans = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(plan["query"], plan["stage"]) for plan in plans] == [("big", stage), ("q1", stage)]
    assert all(plan["plan"] for plan in plans)


@pytest.mark.slow
def test_check_and_explain_start_no_jvm(tmp_path: Path) -> None:
    file = written(tmp_path, SCRIPT)
    probe = (
        "import subprocess, sys\n"
        "def refuse(*a, **k): raise SystemExit('a process was started')\n"
        "subprocess.Popen.__init__ = refuse\n"
        "from millpond.cli import main\n"
        "try:\n"
        f"    main([sys.argv[1], {file!r}])\n"
        "finally:\n"
        "    if 'pyspark' in sys.modules: print('pyspark was loaded')\n"
    )
    for command in ("check", "explain"):
        done = subprocess.run(
            [sys.executable, "-c", probe, command], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "pyspark was loaded" not in done.stdout


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    file = written(tmp_path, SCRIPT)
    command = f"{sys.executable} -m millpond explain {file} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
