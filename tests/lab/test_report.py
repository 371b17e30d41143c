from __future__ import annotations

from pathlib import Path

import pytest

from millpond.errors import StateError
from millpond.lab import catalogue, report
from millpond.lab.running import run_one
from tests.lab.made_up import DIFFERS, FAILS, HOLDS, experiment

QUICK = "chain-opening-example"


@pytest.mark.slow
def test_the_same_run_writes_the_same_bytes(tmp_path: Path) -> None:
    outcome = run_one(catalogue.experiments()[QUICK])
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        report.write_files(outcome, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_the_report_shows_all_verdicts_and_escapes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pigs = experiment("pigs", HOLDS, DIFFERS, FAILS)
    monkeypatch.setattr("millpond.lab.report.everything", lambda: {"pigs": pigs})
    page = report.html([run_one(pigs)])
    assert "3 claims: 1 hold, 1 differ, 1 fail" in page
    for verdict in ("holds", "differs", "fails"):
        assert f'<td class="{verdict}">{verdict}' in page
    assert "Instead: they jump. Why: no &lt;wings&gt;." in page
    assert "they hum" not in page


def test_a_folder_that_cannot_be_written_into_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    for refused in (report.prepare, lambda folder: report.write([], folder)):
        with pytest.raises(StateError, match=r'the folder ".*file": File exists; name another'):
            refused(blocked)
