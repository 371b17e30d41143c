from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from millpond.lab.commands import app
from millpond.lab.experiment import Experiment
from tests.lab.made_up import DIFFERS, FAILS, HOLDS, experiment

QUICK = "chain-opening-example"


def invoke(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    made = {
        "cows": experiment("cows", HOLDS),
        "pigs": experiment("pigs", HOLDS, DIFFERS),
        "sows": experiment("sows", HOLDS, FAILS),
    }
    for place in ("catalogue", "report", "commands"):
        monkeypatch.setattr(f"millpond.lab.{place}.everything", lambda: made)
    for place in ("catalogue", "commands"):
        monkeypatch.setattr(f"millpond.lab.{place}.experiments", lambda: made)
    return made


def test_every_experiment_is_listed_with_its_claim() -> None:
    listed = {each["name"]: each["claim"] for each in json.loads(invoke("list", "--json").stdout)}
    assert QUICK in listed
    assert all(len(claim) > 20 for claim in listed.values())
    assert QUICK in invoke("list").stdout


def test_a_run_writes_plots_data_and_one_report(tmp_path: Path) -> None:
    invoke("run", QUICK, "--out", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{QUICK}.csv",
        f"{QUICK}.png",
        f"{QUICK}.svg",
        "report.html",
    ]
    page = (tmp_path / "report.html").read_text()
    assert "6 claims: 6 hold, 0 differ, 0 fail" in page
    assert f'src="{QUICK}.svg"' in page
    assert (tmp_path / f"{QUICK}.csv").read_text().startswith("instant,fifo,greedy,chain\n1.0,")


def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs() -> None:
    refused = invoke("run", QUICK, "--out", "/dev/null/x", code=2)
    assert 'error: cannot write into the folder "/dev/null/x": Not a directory' in refused.stderr
    assert "--out" in refused.stderr
    assert "1/1" not in refused.stderr


def test_verify_prints_one_line_a_claim_and_counts_them() -> None:
    *lines, summary = invoke("verify", QUICK).stdout.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("holds   chain-opening-example: ") for line in lines)
    assert summary == "1 experiment, 6 claims: 6 hold, 0 differ, 0 fail"


def test_verify_as_json_has_claims_changes_and_counts() -> None:
    found = json.loads(invoke("verify", QUICK, "--json").stdout)
    assert found["claims"][1] == {
        "experiment": QUICK,
        "claim": "fifo: first empty at",
        "expected": "15",
        "measured": "15",
        "verdict": "holds",
    }
    assert found["changed"] == []
    assert found["summary"] == {"holds": 6, "differs": 0, "fails": 0}


def test_what_differs_as_recorded_is_no_fault(
    made_up: dict[str, Experiment], tmp_path: Path
) -> None:
    record = str(tmp_path / "record")
    invoke("verify", "pigs", "--against", record, "--record")
    told = invoke("verify", "pigs", "--against", record).stdout
    assert told.endswith("1 experiment, 2 claims: 1 hold, 1 differ, 0 fail\n")
    assert "CHANGED" not in told


def test_a_verdict_that_changed_is_a_fault_and_is_told(
    made_up: dict[str, Experiment], tmp_path: Path
) -> None:
    record = tmp_path / "record"
    record.write_text(json.dumps({"pigs": {"water is wet": "differs", "pigs fly": "differs"}}))
    told = invoke("verify", "pigs", "--against", str(record), code=1).stdout
    assert "CHANGED pigs: water is wet | was differs, is holds\n" in told
    assert told.endswith("1 not as recorded; if that is meant: millpond lab verify --record\n")
    found = json.loads(invoke("verify", "pigs", "--against", str(record), "--json", code=1).stdout)
    assert found["changed"] == [
        {"experiment": "pigs", "claim": "water is wet", "was": "differs", "now": "holds"}
    ]


def test_a_claim_that_fails_is_a_fault_recorded_or_not(
    made_up: dict[str, Experiment], tmp_path: Path
) -> None:
    record = str(tmp_path / "record")
    told = invoke("verify", "sows", "--against", record, "--record", code=1).stdout
    assert "FAILS   sows: pigs sing" in told
    told = invoke("verify", "sows", "--against", record, code=1).stdout
    assert "CHANGED" not in told


def test_other_seeds_are_not_compared_nor_recorded(
    made_up: dict[str, Experiment], tmp_path: Path
) -> None:
    record = str(tmp_path / "record")
    assert "CHANGED" not in invoke("verify", "pigs", "--against", record, "--seeds", "1").stdout
    refused = invoke("verify", "pigs", "--against", record, "--seeds", "1", "--record", code=2)
    assert refused.stderr == (
        "error: --record is for the experiments' own seeds: leave out --seeds\n"
    )


def test_records_that_cannot_be_read_or_written_are_refused(
    made_up: dict[str, Experiment], tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "nowhere" / "record")
    refused = invoke("verify", "cows", "--against", nowhere, code=2)
    assert f'error: cannot read the recorded verdicts in "{nowhere}"' in refused.stderr
    refused = invoke("verify", "cows", "--against", nowhere, "--record", code=2)
    assert f'error: cannot record verdicts in "{nowhere}"' in refused.stderr


@pytest.mark.parametrize("command", ["run", "verify"])
def test_unknown_names_and_bad_seeds_are_refused(command: str) -> None:
    assert 'no experiment "nonsense"' in invoke(command, "nonsense", code=2).stderr
    for seeds in ("0", "-1", "many"):
        invoke(command, QUICK, "--seeds", seeds, code=2)
