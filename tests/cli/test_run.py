import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millpond.cli import main

SCRIPT = """\
CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('{directory}/s.csv');
CREATE QUERY big AS SELECT a FROM S WHERE a > 5;
CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 10];
CREATE QUERY all_rows AS SELECT a FROM S INTO csv('{directory}/out.csv');
SHOW QUERIES;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("a,ts\n1,1\n7,2\n")
    (tmp_path / "script.cql").write_text(SCRIPT.format(directory=tmp_path))
    return tmp_path / "script.cql"


def code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert isinstance(left.value.code, int)
    return left.value.code


def last_words(script: Path, code: int, capsys: pytest.CaptureFixture[str]) -> str:
    """The last line on stderr of a run that ends with this code."""
    assert code_of("run", str(script), "--format", "jsonl") == code
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.spark
@pytest.mark.parametrize("strategy", ["round-robin", "fifo"])
def test_json_lines_are_all_there_is_on_stdout(
    script: Path, strategy: str, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    assert code_of("run", str(script), "--format", "jsonl", "--strategy", strategy) == 0
    out, err = capsys.readouterr()
    results = [json.loads(line) for line in out.splitlines()]
    assert [r for r in results if r["query"] == "big"] == [
        {"query": "big", "ts": 2, "weight": 1, "row": {"a": 7}}
    ]
    counts = [(r["ts"], r["weight"], r["row"]["n"]) for r in results if r["query"] == "n"]
    assert counts == [
        (None, 1, 0),
        (1, -1, 0),
        (1, 1, 1),
        (2, -1, 1),
        (2, 1, 2),
        (12, -1, 2),
        (12, 1, 1),
        (13, -1, 1),
        (13, 1, 0),
    ]
    assert {r["query"] for r in results} == {"big", "n", "all_rows"}
    assert "all_rows" in err  # what SHOW answered


@pytest.mark.spark
def test_a_query_with_a_sink_also_writes_there(
    script: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    assert code_of("run", str(script)) == 0
    assert "all_rows\n" in capsys.readouterr().out
    assert (script.parent / "out.csv").read_text() == "ts,weight,a\n1,1,1\n2,1,7\n"


@pytest.mark.spark
def test_late_tuples_are_warned_of(
    script: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    (script.parent / "s.csv").write_text("a,ts\n1,5\n7,2\n8,6\n")
    warning = last_words(script, 0, capsys)
    assert warning.startswith("millpond: warning: stream S: 1 of 3 tuples came too late")


@pytest.mark.spark
def test_a_fault_while_running_names_the_query(
    script: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    with script.open("a") as file:
        file.write("CREATE QUERY far AS SELECT ts + 9223372036854775807 AS x FROM S;")
    error = last_words(script, 2, capsys)
    assert error.startswith("millpond: error: query far: a number leaves the range of its type")


@pytest.mark.spark
def test_faulty_data_is_one_line(
    script: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    (script.parent / "s.csv").write_text("a,ts\n1,1\nx,2\n")
    err = last_words(script, 2, capsys)
    assert err == f"millpond: error: {script.parent}/s.csv, line 3, column a: 'x' is not an INT"


def test_a_missing_source_names_the_statement(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (script.parent / "s.csv").unlink()
    assert code_of("run", str(script)) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"{script}:1:1: error: S: no file {script.parent}/s.csv\n")


@pytest.mark.spark
def test_a_pipe_sees_results_only_and_ctrl_c_is_quiet(tmp_path: Path) -> None:
    script = tmp_path / "endless.cql"
    script.write_text(
        "CREATE STREAM S (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(1000);\n"
        "SELECT a FROM S WHERE a % 1000 = 0;\n"
    )
    command = [sys.executable, "-m", "millpond", "run", str(script), "--format", "jsonl"]
    process = subprocess.Popen(
        [*command, "--set", "page_rows=5000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    first = json.loads(process.stdout.readline())
    assert first["row"] == {"a": 0}
    os.kill(process.pid, signal.SIGINT)
    started = time.monotonic()
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "")
    assert time.monotonic() - started < 60
