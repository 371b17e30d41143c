from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.hmts.expensive_selection import PHASES, Elements
from millpond.lab.hmts.section_6_6 import SENTENCES, Runs
from millpond.lab.sentences import margins
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Record
from millpond.simulator.record import StepFunction


def record(end: float, results: list[float], memory: dict[float, float]) -> Record:
    found = Record(finished_seconds=end)
    found.memory = StepFunction(np.array(list(memory)), np.array(list(memory.values())))
    found.output_seconds = np.array(results)
    found.output_mass = np.ones(len(results))
    return found


def saw(low: float, high: float, up: float) -> dict[float, float]:
    """A queue that grows by 500 and is worked off, again and again."""
    return {low + 2 * n + part: up * part for n in range(int((high - low) / 2)) for part in (0, 1)}


def elements() -> Elements:
    """Seven; the fourth begins the second burst."""
    gaps: FloatArray = np.array([30.0, 30.0, 20.0, 80.0, 0.0, 0.0, 0.0])
    return Elements(gaps, np.ones(7), np.ones(7))


def test_the_second_burst_comes_after_80_seconds() -> None:
    assert elements().second_burst_seconds == 80.0


START = {0.0: 10_000.0, 1.0: 100.0}
CHAIN = {**START, **saw(50, 80, 500.0), 80.0: 1_200.0, 160.0: 50.0, 260.0: 0.0}
AS_SAID = Runs(
    elements(),
    record(
        260.0, [50.0, 150.0], {**START, 2.0: 3_000.0, 120.0: 5_000.0, 160.0: 4_000.0, 260.0: 0.0}
    ),
    record(260.0, [60.0, 180.0], CHAIN),
    record(161.0, [40.0, 80.0], {**START, 2.0: 20.0, 161.0: 0.0}),
)


def failing(runs: Runs) -> list[str]:
    return [text for text, margin in margins(SENTENCES, runs).items() if margin < 1]


def test_the_papers_own_curves_hold() -> None:
    assert failing(AS_SAID) == []
    assert PHASES[0][0] == 10_000


@pytest.mark.parametrize(
    ("end", "expected"),
    [(200.0, ["end of HMTS", "end of HMTS behind the last element, s"]), (161.9, [])],
)
def test_hmts_ends_shortly_after_160_seconds(end: float, expected: list[str]) -> None:
    assert failing(AS_SAID._replace(hmts=record(end, [40.0, 80.0], START))) == expected


def test_a_queue_that_only_falls_does_not_vacillate() -> None:
    calm = {**START, 50.0: 300.0, 80.0: 1_200.0, 160.0: 50.0}
    found = failing(AS_SAID._replace(chain=record(260.0, [60.0, 180.0], calm)))
    assert found == ["rises of Chain's queue from 50 to 80 s by 250 elements at least"]


def test_chain_with_much_left_in_the_end_is_not_low() -> None:
    late = {**CHAIN, 160.0: 9_000.0}
    found = failing(AS_SAID._replace(chain=record(260.0, [60.0, 180.0], late)))
    assert "mean elements queued by Chain from 160 to 260 s, over the figure's axis" in found


def test_results_at_the_same_time_are_not_earlier() -> None:
    same = AS_SAID._replace(hmts=record(161.0, [60.0, 150.0], START))
    assert "mean time of a result by GTS, the smaller, over that by HMTS" in failing(same)
