"""The Path Capacity paper's experiment (section 5): bursts on five streams, in rising phases.

The paper names the self-similar arrivals and what the plan is made of. Loads, lengths and the draws
of the plan it does not print: `searched_setting` looks for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from millpond.lab.experiment import Axes, Table
from millpond.lab.path_capacity.queries import RATES, Ranges, full_load_scale, sixteen_queries
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Record, simulate
from millpond.workloads import SelfSimilar

FLOWS = (64, 128, 64, 128, 64)
STRATEGIES = ("path-capacity", "simplified-segment", "chain")
AS_DRAWN = Ranges()
UNIT_SECONDS = 0.1
"""The time unit of all strategies."""


@dataclass(frozen=True)
class Setting:
    """Loads of the phases, each so long; load one keeps the processor busy all the time.

    A flow sends for `on_seconds` on average and is silent twice as long. Tuples come `faster` than
    at `RATES`, and cost as much less.
    """

    loads: tuple[float, ...] = (0.5, 0.7, 0.9, 1.1)
    phase_seconds: float = 200.0
    on_seconds: float = 40.0
    ranges: Ranges = AS_DRAWN
    faster: float = 1.0

    @property
    def seconds(self) -> float:
        """The length of all phases."""
        return len(self.loads) * self.phase_seconds

    def phase(self, number: int) -> tuple[float, float]:
        """When it begins and ends."""
        number %= len(self.loads)
        return number * self.phase_seconds, (number + 1) * self.phase_seconds


DRAWN = Setting()
DRAWN_NOTE = (
    "Costs and selectivities are not in the paper. Leaves cost 1 to 2 units and pass 10 to 30 %, "
    "the others cost 2 to 8 and pass 70 to 100 %, joins cost 3 to 9 and one in five yields more "
    "than one tuple; loads of 0.5, 0.7, 0.9 and 1.1, flows of 40 s, a time unit of 0.1 s."
)


def arrivals(setting: Setting, seed: int) -> Mapping[str, FloatArray]:
    """Self-similar arrivals on each stream, faster from phase to phase."""
    found = {}
    for number, (rate, flows) in enumerate(zip(RATES, FLOWS, strict=True)):
        parts = []
        for phase, load in enumerate(setting.loads):
            process = SelfSimilar(
                rate * setting.faster * load,
                on_seconds=setting.on_seconds,
                off_seconds=2 * setting.on_seconds,
                flows=flows,
            )
            draw = 10_000 * seed + 100 * number + phase
            parts.append(setting.phase(phase)[0] + process.until(setting.phase_seconds, draw))
        found[f"s{number}"] = np.concatenate(parts)
    return found


def run_phases(strategy: Strategy, setting: Setting, seed: int) -> Record:
    """The experiment under one strategy, every queue on its own (the paper's footnote 1)."""
    plan = sixteen_queries(setting.ranges, full_load_scale(setting.ranges) / setting.faster)
    conditions = Conditions(seed=seed, shared_queues=False)
    return simulate(plan, strategy, arrivals(setting, seed), conditions)


@cache
def record_of(name: str, setting: Setting, seed: int) -> Record:
    """The record of a strategy by name, run once however many figures ask for it."""
    return run_phases(make(name, slice_seconds=UNIT_SECONDS), setting, seed)


def plot_over_time(table: Table, axes: Axes, label: str) -> None:
    """A curve for each strategy, from a table with a column of seconds."""
    for name in STRATEGIES:
        axes.plot(table["seconds"], table[name], label=name, lw=1)
    axes.set(xlabel="time (s)", ylabel=label)
    axes.legend()


def shortened(setting: Setting, phase_seconds: float) -> Setting:
    """The same with phases of that length."""
    return replace(setting, phase_seconds=phase_seconds)
