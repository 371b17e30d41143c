import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millpond.cli import main
from tests.patience import PATIENCE_SECONDS

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


def without_summary(text: str) -> str:
    """What is said on standard error, without the lines about what the run took."""
    lines = text.splitlines(keepends=True)
    summary = (" steps in the driver (", "millpond: backlog at most", "millpond: latency of")
    return "".join(line for line in lines if not any(each in line for each in summary))


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
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert without_summary(err) == (
        "millpond: S FROM rate(1000) has no end, and q1 reads it: "
        "this runs until Ctrl-C; --for 30s or --rows 1000 would end it\n"
    )


@pytest.mark.spark
def test_a_run_ends_when_its_reader_has_gone(tmp_path: Path) -> None:
    script = tmp_path / "endless.cql"
    script.write_text(
        "CREATE STREAM S (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(1000); SELECT a FROM S;"
    )
    command = [sys.executable, "-m", "millpond", "run", str(script), "--format", "csv"]
    process = subprocess.Popen(
        [*command, "--set", "page_rows=2000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == b"query,ts,weight,a\n"
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=PATIENCE_SECONDS) == 1
    assert b"Traceback" not in err
    process.stderr.close()


ENDLESS = """\
CREATE STREAM S (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(1000);
CREATE STREAM Unread (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(1000);
CREATE STREAM Pushed (a BIGINT, ts BIGINT) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT a FROM S;
CREATE QUERY p AS SELECT a FROM Pushed;
"""


@pytest.mark.spark
def test_an_endless_run_ends_after_so_many_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    (tmp_path / "endless.cql").write_text(ENDLESS)
    assert code_of("run", str(tmp_path / "endless.cql"), "--rows", "3", "--format", "jsonl") == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["row"]["a"] for line in out.splitlines()] == [0, 1, 2]
    assert without_summary(err) == (
        "millpond: warning: nothing feeds stream Pushed, which p reads; give it a source, such as "
        "FROM csv('file.csv') or FROM stdin()\n"
    )


@pytest.mark.spark
def test_an_endless_run_ends_after_some_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    (tmp_path / "endless.cql").write_text(ENDLESS)
    options = ["--format", "jsonl", "--set", "page_rows=10"]
    numbers: list[int] = []
    for seconds in (1, 10, 100):  # a busy machine may not read a page in one
        if len(numbers) < 10:
            more = ["--for", f"{seconds}s", *options]
            assert code_of("run", str(tmp_path / "endless.cql"), *more) == 0
            lines = capsys.readouterr().out.splitlines()
            numbers = [json.loads(line)["row"]["a"] for line in lines]
            assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 10


def test_limits_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endless.cql").write_text(ENDLESS)
    assert code_of("run", str(tmp_path / "endless.cql"), "--for", "a while") == 2
    assert (
        "--for a while: this is not a length of time such as '1 second'" in capsys.readouterr().err
    )
    assert code_of("run", str(tmp_path / "endless.cql"), "--rows", "-1") == 2


def test_a_script_that_asks_nothing_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "silent.cql").write_text("CREATE STREAM S (a INT) FROM rate(10);")
    assert code_of("run", str(tmp_path / "silent.cql")) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("millpond: warning: the script asks nothing, so nothing was read;")
    (tmp_path / "show.cql").write_text("CREATE STREAM S (a INT) FROM rate(10); SHOW STREAMS;")
    assert code_of("run", str(tmp_path / "show.cql")) == 0
    assert without_summary(capsys.readouterr().err) == ""


def test_a_query_into_its_own_input_is_refused_before_it_is_emptied(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(script.read_text().replace("out.csv", "s.csv"))
    before = (script.parent / "s.csv").read_text()
    assert code_of("run", str(script)) == 2
    assert "which this would overwrite" in capsys.readouterr().err
    assert (script.parent / "s.csv").read_text() == before


PIPED = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM {}; SELECT a FROM S WHERE a > 5;"


@pytest.mark.spark
@pytest.mark.parametrize("source", ["stdin()", "json('-')"])
def test_data_may_come_through_a_pipe(tmp_path: Path, source: str) -> None:
    (tmp_path / "q.cql").write_text(PIPED.format(source))
    data = '{"a": 1, "ts": 1}\n{"a": 7, "ts": 2}\n' if "json" in source else "a,ts\n1,1\n7,2\n"
    done = subprocess.run(
        [sys.executable, "-m", "millpond", "run", str(tmp_path / "q.cql"), "--format", "csv"],
        input=data,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "query,ts,weight,a\nq1,2,1,7\n"
    assert without_summary(done.stderr) == ""


@pytest.mark.slow
def test_a_script_from_standard_input_leaves_none_for_data() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "millpond", "run", "-"],
        input=PIPED.format("csv('-')"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "S: standard input is read by the script already" in done.stderr
