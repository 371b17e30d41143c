from __future__ import annotations

from matplotlib.figure import Figure

from millpond.lab.chain import propositions
from millpond.lab.chain.instances import Instance
from millpond.lab.chain.propositions import MEASURES, check
from millpond.lab.experiment import Tables

CHART = ((0.0, 1.0), (2.0, 0.9), (3.0, 0.25), (4.0, 0.0))
"""One segment of three units, the second operator being steeper, and one of a unit."""


def test_deltas_are_those_of_the_steps_above_the_envelope() -> None:
    assert propositions._deltas(CHART) == [0.9 - 0.5, 0.0]
    assert propositions._rise(CHART) == 0.0
    assert propositions._below(CHART) == 0.0


def test_of_one_slope_one_tuple_is_in_the_middle() -> None:
    instance = Instance((CHART,), ((0, 0, 0, 1),))
    assert propositions._middle_and_disorder(instance) == (1, 0.0)


def test_what_is_broken_fails() -> None:
    def verdicts(**broken: float) -> list[str]:
        row: dict[str, list[float]] = {name: [0.0] for name in MEASURES}
        row |= {name: [value] for name, value in broken.items()}
        tables: Tables = {"broken by": row, "example 1": {"fifo": [4.0], "greedy": [2.2]}}
        propositions.plot(tables, Figure())
        return [claim.verdict for claim in check(tables)]

    assert set(verdicts()) == {"holds"}
    assert verdicts(middle=1.0).count("fails") == 0
    for name in MEASURES:
        assert verdicts(**{name: 2.0}).count("fails") == 1
