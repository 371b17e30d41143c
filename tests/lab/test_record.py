from __future__ import annotations

import json
from pathlib import Path

import pytest

from millpond.errors import StateError
from millpond.lab.catalogue import experiments
from millpond.lab.record import RECORD, changes, read, verdicts_of, write
from tests.lab.made_up import DIFFERS, FAILS, HOLDS, outcome


def test_every_experiment_is_recorded_and_no_other() -> None:
    assert list(read(RECORD)) == list(experiments())


def test_no_claim_is_recorded_as_failing() -> None:
    verdicts = {verdict for claims in read(RECORD).values() for verdict in claims.values()}
    assert verdicts == {"holds", "differs"}


def test_what_is_recorded_is_not_changed(tmp_path: Path) -> None:
    path, found = tmp_path / "record", [outcome("pigs", HOLDS, DIFFERS)]
    write(path, found, ["pigs"])
    assert changes(read(path), found) == []


def test_other_verdicts_new_claims_and_lost_ones_are_changes(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(json.dumps({"pigs": {"pigs fly": "holds", "pigs walk": "holds"}}))
    assert changes(read(path), [outcome("pigs", DIFFERS, FAILS)]) == [
        ("pigs", "pigs fly", "holds", "differs"),
        ("pigs", "pigs walk", "holds", "absent"),
        ("pigs", "pigs sing", "absent", "fails"),
    ]


def test_an_experiment_that_is_not_recorded_has_changed() -> None:
    assert changes({}, [outcome("pigs", HOLDS)]) == [("pigs", "water is wet", "absent", "holds")]


def test_recording_keeps_what_was_not_run_and_drops_what_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "record"
    write(path, [outcome("pigs", HOLDS), outcome("cows", HOLDS), outcome("gone", HOLDS)], ALL)
    write(path, [outcome("pigs", DIFFERS)], ["cows", "pigs"])
    assert read(path) == {"cows": {"water is wet": "holds"}, "pigs": {"pigs fly": "differs"}}


ALL = ["cows", "gone", "pigs"]


def test_two_claims_of_one_text_are_refused() -> None:
    with pytest.raises(StateError, match='pigs has two claims "water is wet"'):
        verdicts_of(outcome("pigs", HOLDS, HOLDS))


@pytest.mark.parametrize("text", ["", "[1]", '{"pigs": "holds"}'])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record"
    path.write_text(text)
    with pytest.raises(StateError, match=r"cannot read the recorded verdicts|is no record of"):
        read(path)
