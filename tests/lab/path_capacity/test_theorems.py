"""Theorems 1 to 3 of the Path Capacity paper on few instances, and on tables made up."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from millpond.lab.path_capacity import excess, theorem_1, theorem_2, theorem_3

EXPECTED = [
    (theorem_1, "holds holds differs differs holds differs differs differs"),
    (theorem_2, "holds holds differs differs differs differs differs"),
    (theorem_3, "holds differs differs"),
]


@pytest.mark.parametrize(("theorem", "verdicts"), EXPECTED)
def test_theorems_hold_under_their_assumptions_and_differ_without(
    theorem: object, verdicts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theorem, "INSTANCES_A_SEED", 60)
    tables = theorem.run([0])  # type: ignore[attr-defined]
    claims = theorem.check(tables)  # type: ignore[attr-defined]
    assert " ".join(claim.verdict for claim in claims) == verdicts
    theorem.EXPERIMENT.plot(tables, Figure())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("values", "verdict"), [([0.0, 0.0], "holds"), ([0.0, 2.0], "differs"), ([-1.0, 2.0], "fails")]
)
def test_a_theorem_that_turns_out_true_or_an_optimum_that_is_none_is_noticed(
    values: list[float], verdict: str
) -> None:
    tables = {"excess": {"setting": ["any", "any"], "excess": values}}
    assert excess.some_above(tables, "any", "least", "s", "why").verdict == verdict


@pytest.mark.parametrize(("mine", "verdict"), [(9.0, "holds"), (11.0, "differs"), (10.0, "fails")])
def test_a_counterexample_is_compared_with_what_was_worked_out(mine: float, verdict: str) -> None:
    row = {"what": ["it"], "mine": [mine], "other": [9.0], "by hand": [11.0], "least": [9.0]}
    (claim,) = excess.counterexample_claims({"counterexamples": row}, "least", ["why"])
    assert claim.verdict == verdict
