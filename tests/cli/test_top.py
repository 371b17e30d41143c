"""`millpond top`, `run --statistics` and `simulate`: what one sees of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millpond import Engine
from millpond.cli.top import view
from millpond.insight.bottleneck import OperatorView, bottleneck
from tests.cli.test_run import code_of

SCRIPT = """\
CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('{directory}/s.csv');
CREATE QUERY big AS SELECT a FROM S WHERE a > 5;
CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 10];
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    rows = "".join(f"{n % 10},{n}\n" for n in range(200))
    (tmp_path / "s.csv").write_text("a,ts\n" + rows)
    (tmp_path / "script.cql").write_text(SCRIPT.format(directory=tmp_path))
    return tmp_path / "script.cql"


def busy(load: float, waiting: int = 0) -> OperatorView:
    return OperatorView("op2", "Join", 10.0, 5.0, load, waiting, waiting * 8.0)


def test_the_bottleneck_is_said_in_words() -> None:
    light = OperatorView("op1", "Output q (arrivals)", 9.0, 9.0, 0.1, 0, 0.0)
    assert bottleneck([]) == "nobody: nothing runs"
    assert bottleneck([light]) == "nobody; the inputs set the pace"
    assert bottleneck([light, busy(0.5)]).startswith("nobody yet; op2 (Join)")
    assert bottleneck([light, busy(0.95, 3_000)]) == (
        "op2 (Join) takes 95% of the time; 3,000 rows wait for it, 300 s of input"
    )


def test_a_view_has_operators_backlog_and_latencies() -> None:
    with Engine() as engine:
        assert "nothing runs yet" in view(engine)
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t; CREATE QUERY q AS SELECT a FROM S;"
        )
        engine.push("S", [(1, 1), (2, 2)])
        engine.finish()
        text = view(engine)
    assert "Output q (arrivals)" in text
    assert "backlog 0.00 MB" in text
    assert "q: 2 results, latency mean " in text


def test_top_without_a_terminal_prints_plain_text(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("top", str(script)) == 0
    out, err = capsys.readouterr()
    assert "n: " in out
    assert "bottleneck: " in out.splitlines()[-1]
    assert "\x1b" not in out
    assert "backlog at most" in err


def test_top_ends_with_the_error_of_its_script(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (script.parent / "s.csv").write_text("a,ts\nx,1\n")
    assert code_of("top", str(script)) != 0
    assert "s.csv" in capsys.readouterr().err


def test_a_run_is_summed_up_written_down_and_simulated(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "measured.json"
    assert code_of("run", str(script), "--format", "jsonl", "--statistics", str(file)) == 0
    said = capsys.readouterr().err
    assert "steps in the driver" in said
    assert "backlog at most" in said
    assert "latency of n: mean " in said
    assert set(json.loads(file.read_text())["latency"]) == {"big", "n"}
    assert code_of("simulate", str(script), "--from-statistics", str(file)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["strategy", "peak", "backlog"]
    assert lines[1].startswith("measured: ")
    assert {"chain", "fifo", "auto", "hmts"} <= {line.split()[0] for line in lines[2:]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        ("{", "this is no JSON"),
        ("[]", "these are no statistics"),
        ('{"streams": {}}', "these are no statistics of an engine"),
    ],
)
def test_statistics_that_are_none_are_refused(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    file = tmp_path / "measured.json"
    if content is not None:
        file.write_text(content)
    assert code_of("simulate", str(script), "--from-statistics", str(file)) != 0
    assert words in capsys.readouterr().err


def test_explain_in_a_script_prints_the_plan(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(script.read_text() + "EXPLAIN big;\n")
    assert code_of("run", str(script)) == 0
    assert "Filter (a > 5)" in capsys.readouterr().out
