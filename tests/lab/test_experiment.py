from __future__ import annotations

import pytest

from millpond.errors import StateError
from millpond.lab.experiment import Claim, Instead
from tests.lab.made_up import experiment


@pytest.mark.parametrize(
    ("paper", "instead", "verdict"),
    [
        (True, None, "holds"),
        (True, False, "holds"),
        (True, True, "holds"),
        (False, True, "differs"),
        (False, False, "fails"),
        (False, None, "fails"),
    ],
)
def test_the_verdict_follows_from_both_checks(
    paper: bool, instead: bool | None, verdict: str
) -> None:
    otherwise = None if instead is None else Instead("", "", instead)
    assert Claim("", "", "", paper, otherwise).verdict == verdict


def test_names_are_lower_case_words() -> None:
    with pytest.raises(StateError, match="words-with-dashes"):
        experiment("Pigs fly")
