from __future__ import annotations

import pytest

from millpond.lab.unified.trees import NAMES, as_in_the_text, drawn_costs, is_the_papers

AS_DRAWN = dict(zip(NAMES, (1.0, 1.0, 4.0, 1.0, 2.0, 1.0, 0.5, 0.8, 10.0), strict=True))


def test_the_costs_of_the_picture_are_as_in_the_text_and_give_its_partitions() -> None:
    assert as_in_the_text(AS_DRAWN)
    assert is_the_papers(AS_DRAWN)


@pytest.mark.parametrize("other", [{"C": 0.5}, {"O": 0.5}, {"D": 5.0}, {"G": 20.0}], ids=str)
def test_other_forks_are_not_as_in_the_text(other: dict[str, float]) -> None:
    assert not as_in_the_text(AS_DRAWN | other)


def test_a_short_stem_goes_with_the_first_branch_alone() -> None:
    assert not is_the_papers(AS_DRAWN | {"E": 0.1, "D": 0.1})


def test_costs_are_drawn_anew_for_every_seed() -> None:
    (one,), (other,) = (list(drawn_costs([seed], 1)) for seed in (1, 2))
    assert one != other
    assert all(0.25 <= cost <= 16 for cost in one.values())
