"""The formulas of composition agree with plans run tuple by tuple."""

import numpy as np
import pytest

from millpond.approximation.precision import (
    EXACT,
    Difference,
    Distinct,
    Intersection,
    Join,
    Partners,
    Precision,
    Projection,
    Selection,
    Semijoin,
    Union,
    precision,
    relative_width,
)
from tests.approximation.precision.simulated_plans import KINDS, Step, drawn_plan, run

TUPLES, RUNS = 3000, 8
PARTNERS = Partners((0.6, 0.3, 0.1))
ONE = [Selection(0.4), Projection(), Distinct(PARTNERS)]
TWO = [
    Join(),
    Union((0.3, 0.7)),
    Semijoin(0.4, PARTNERS),
    Difference(0.4, PARTNERS),
    Intersection(0.4),
]


def disagreement(random, plan):
    """How far what was measured is from the formulas, in standard errors of the difference."""
    differences = []
    for _ in range(RUNS):
        flow, said = run(random, plan, TUPLES)
        count = max(len(flow.is_delivered), 1)
        measured = np.array([flow.is_delivered.sum() / count, flow.wrong / count])
        differences.append(measured - [float(said.right), float(said.wrong)])
    mean, error = np.mean(differences, axis=0), np.std(differences, axis=0, ddof=1) / RUNS**0.5
    return float(np.max(np.abs(mean) / (error + 0.002)))


@pytest.mark.parametrize("kind", KINDS)
def test_each_operator_over_inputs_that_are_wrong(kind):
    random = np.random.default_rng(5)
    below = [Step("projection", [None], precision(0.2, 0.6), {}) for _ in range(2)]
    inputs = (
        below if kind in {"union", "join", "semijoin", "intersection", "difference"} else below[:1]
    )
    plan = Step(kind, inputs, precision(0.1, 0.3), {"selectivity": 0.4})
    assert disagreement(random, plan) < 6


def test_random_plans():
    random = np.random.default_rng(6)
    plans = [drawn_plan(random, int(random.integers(2, 6))) for _ in range(200)]
    found = [disagreement(random, plan) for plan in plans]
    assert max(found) < 4
    assert np.median(found) < 1.2


@pytest.mark.parametrize("composition", ONE + TWO)
def test_exact_inputs_leave_an_operator_its_own_precision(composition):
    inputs = [EXACT] * (2 if composition in TWO else 1)
    own = precision(0.2, 0.5)
    found = composition.compose(inputs, own)
    assert found.fp == pytest.approx(0.2)
    assert found.fn == pytest.approx(0.5)
    assert composition.compose(inputs, EXACT) == EXACT


def test_the_products_of_selection_and_join():
    """1 - FP and 1 + FN are products over operators, whatever the selectivity."""
    a, b, own = precision(0.1, 0.2), precision(0.3, 0.5), precision(0.05, 0.1)
    found = Join().compose([a, b], own)
    assert 1 - found.fp == pytest.approx(0.9 * 0.7 * 0.95)
    assert 1 + found.fn == pytest.approx(1.2 * 1.5 * 1.1)
    for selectivity in (0.1, 0.5, 0.9):
        found = Selection(selectivity).compose([a], own)
        assert 1 - found.fp == pytest.approx(0.9 * 0.95)
        assert 1 + found.fn == pytest.approx(1.2 * 1.1)


def test_missing_partners_make_a_difference_wrong():
    """Half of the right side is missed: as many wrong tuples as half of those with a partner."""
    found = Difference(0.25).compose([EXACT, precision(0, 1)], EXACT)
    assert found.right == 1
    assert found.wrong == pytest.approx(0.75 * 0.5 / 0.25)


def test_formulas_of_arrays_are_those_of_numbers():
    rights, wrongs = np.array([1.0, 0.5, 0.2]), np.array([0.0, 0.3, 1.0])
    own = precision(0.1, 0.2)
    for composition in ONE + TWO:
        count = 2 if composition in TWO else 1
        found = composition.compose([Precision(rights, wrongs)] * count, own)
        for at in range(3):
            one = [Precision(float(rights[at]), float(wrongs[at]))] * count
            assert float(found.right[at]) == pytest.approx(
                float(composition.compose(one, own).right)
            )
            assert float(found.wrong[at]) == pytest.approx(
                float(composition.compose(one, own).wrong)
            )


def test_rates_of_the_paper_and_back():
    for fp, fn in ((0, 0), (0.3, 0.7), (0.9, 4)):
        assert (precision(fp, fn).fp, precision(fp, fn).fn) == pytest.approx((fp, fn))
    assert Precision(0.0, 0.0).fn == float("inf")
    assert EXACT.score == 1


def test_the_width_of_a_count_holds_the_truth():
    """Counts of what is delivered, times both ends, are around what ought to be counted."""
    for fp in (0, 0.1, 0.5):
        for fn in (0, 0.2, 1.5):
            given = precision(fp, fn)
            delivered = float(given.right + given.wrong)
            assert (1 - fp) * delivered <= 1 <= (1 + fn) * delivered + 1e-12
            assert relative_width(given, 0) == pytest.approx(fp + fn)
    assert relative_width(EXACT, 0.1) == pytest.approx(0.1)
