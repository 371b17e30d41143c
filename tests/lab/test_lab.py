from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from millpond.errors import StateError
from millpond.lab import catalogue, report
from millpond.lab.commands import app
from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.lab.running import Outcome, run_all, run_one
from millpond.lab.words import about

QUICK = "chain-opening-example"


def invoke(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.stdout


def test_every_experiment_is_listed_with_its_claim() -> None:
    listed = {each["name"]: each["claim"] for each in json.loads(invoke("list", "--json"))}
    assert QUICK in listed
    assert all(len(claim) > 20 for claim in listed.values())
    assert QUICK in invoke("list")


def test_a_run_writes_plots_data_and_one_report(tmp_path: Path) -> None:
    invoke("run", QUICK, "--out", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{QUICK}.csv",
        f"{QUICK}.png",
        f"{QUICK}.svg",
        "report.html",
    ]
    page = (tmp_path / "report.html").read_text()
    assert "6 of 6 claims hold" in page
    assert f'src="{QUICK}.svg"' in page
    assert (tmp_path / f"{QUICK}.csv").read_text().startswith("instant,fifo,greedy,chain\n1.0,")


def test_the_same_run_writes_the_same_bytes(tmp_path: Path) -> None:
    outcome = run_one(catalogue.experiments()[QUICK])
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        report.write_files(outcome, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_verify_prints_one_line_a_claim() -> None:
    lines = invoke("verify", QUICK).splitlines()
    assert len(lines) == 6
    assert all(line.startswith("holds  chain-opening-example: ") for line in lines)
    verdicts = json.loads(invoke("verify", QUICK, "--json"))
    assert verdicts[1] == {
        "experiment": QUICK,
        "claim": "fifo: first empty at",
        "expected": "15",
        "measured": "15",
        "verdict": "holds",
    }


def _no_plot(tables: Tables, figure: Figure) -> None:
    figure.subplots()


def _failing(tables: Tables) -> Sequence[Claim]:
    return [Claim("pigs fly", "yes", "no <wings>", holds=False)]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    made = Experiment("pigs", "Chain", "Pigs", "Pigs fly.", lambda _: {}, _no_plot, _failing)
    for place in ("catalogue", "report"):
        monkeypatch.setattr(f"millpond.lab.{place}.experiments", lambda: {"pigs": made})
    return made


def test_verify_fails_when_a_claim_fails(failing: Experiment) -> None:
    assert invoke("verify", failing.name, code=1).startswith("FAILS  pigs: pigs fly | expected yes")


def test_the_report_shows_failures_and_escapes_text(failing: Experiment) -> None:
    page = report.html([run_one(failing)])
    assert "0 of 1 claims hold" in page
    assert '<td class="no">fails' in page
    assert "no &lt;wings&gt;" in page


def test_an_unknown_experiment_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(StateError, match='did you mean "chain-opening-example"'):
        catalogue.choose(["chain-opening-exmple"])
    invoke("run", "nonsense", code=2)


def test_experiments_run_in_two_processes_in_the_order_asked_for() -> None:
    finished: list[Outcome] = []
    chosen = catalogue.choose([QUICK, QUICK])
    outcomes = run_all(chosen, seeds=1, finished=finished.append)
    assert [outcome.name for outcome in outcomes] == [QUICK, QUICK]
    assert len(finished) == 2


def test_names_are_lower_case_words() -> None:
    with pytest.raises(StateError, match="words-with-dashes"):
        Experiment("Pigs fly", "Chain", "", "", lambda _: {}, _no_plot, _failing)


def test_about_is_relative() -> None:
    assert about(103.0, 100.0, 0.05)
    assert not about(106.0, 100.0, 0.05)
