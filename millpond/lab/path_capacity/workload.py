"""The Path Capacity paper's experiment (section 5): bursts on five streams, in rising phases.

The paper names the self-similar arrivals; loads, lengths and the draws of the plan are chosen here,
in seven settings, for which of them is chosen decides some of what the figures show.
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
AS_KEPT = Ranges()
UNIT_SECONDS = 0.1
"""The time unit of all strategies."""


@dataclass(frozen=True)
class Setting:
    """Loads of the phases, each so long; load one keeps the processor busy all the time.

    A flow sends for `on_seconds` on average and is silent twice as long.
    """

    loads: tuple[float, ...] = (0.5, 0.7, 0.9, 1.1)
    phase_seconds: float = 200.0
    on_seconds: float = 40.0
    ranges: Ranges = AS_KEPT

    @property
    def seconds(self) -> float:
        """The length of all phases."""
        return len(self.loads) * self.phase_seconds


KEPT = Setting()
SETTINGS: Mapping[str, Setting] = {
    "leaves selective": KEPT,
    "second operators selective too": replace(KEPT, ranges=Ranges(second_selectivity=(0.1, 0.5))),
    "leaves less selective": replace(KEPT, ranges=Ranges(leaf_selectivity=(0.3, 0.7))),
    "selectivities from 0 to 1": replace(
        KEPT,
        ranges=Ranges(
            leaf_selectivity=(0.0, 1.0),
            second_selectivity=(0.0, 1.0),
            selectivity=(0.0, 1.0),
            join_selectivity=(0.0, 1.0),
        ),
    ),
    "leaves no faster": replace(KEPT, ranges=Ranges(leaf_cost=(2.0, 8.0))),
    "below full load": replace(KEPT, loads=(0.4, 0.55, 0.7, 0.85)),
    "longer bursts": replace(KEPT, on_seconds=100.0),
}
"""The first is the one whose curves are drawn."""


def arrivals(setting: Setting, seed: int) -> Mapping[str, FloatArray]:
    """Self-similar arrivals on each stream, faster from phase to phase."""
    found = {}
    for number, (rate, flows) in enumerate(zip(RATES, FLOWS, strict=True)):
        parts = []
        for phase, load in enumerate(setting.loads):
            process = SelfSimilar(
                rate * load,
                on_seconds=setting.on_seconds,
                off_seconds=2 * setting.on_seconds,
                flows=flows,
            )
            start = phase * setting.phase_seconds
            draw = 10_000 * seed + 100 * number + phase
            parts.append(start + process.until(setting.phase_seconds, draw))
        found[f"s{number}"] = np.concatenate(parts)
    return found


def run_phases(strategy: Strategy, setting: Setting, seed: int) -> Record:
    """The experiment under one strategy, every queue on its own (the paper's footnote 1)."""
    plan = sixteen_queries(setting.ranges, full_load_scale(setting.ranges))
    conditions = Conditions(seed=seed, shared_queues=False)
    return simulate(plan, strategy, arrivals(setting, seed), conditions)


@cache
def record_of(name: str, setting: Setting, seed: int) -> Record:
    """The record of a strategy by name, run once however many figures ask for it."""
    return run_phases(make(name, slice_seconds=UNIT_SECONDS), setting, seed)


def in_phase(record: Record, setting: Setting, phase: int) -> FloatArray:
    """The latencies of the outputs that left during a phase."""
    first = phase * setting.phase_seconds
    inside = (record.output_seconds >= first) & (
        record.output_seconds < first + setting.phase_seconds
    )
    found: FloatArray = record.output_latency_seconds[inside]
    return found


def plot_over_time(table: Table, axes: Axes, label: str) -> None:
    """A curve for each strategy, from a table with a column of seconds."""
    for name in STRATEGIES:
        axes.plot(table["seconds"], table[name], label=name)
    axes.set(xlabel="time (s)", ylabel=label)
    axes.legend()


NOTE = (
    "Costs and selectivities are not in the paper. In the setting drawn leaves cost 1 to 2 units "
    "and pass 10 to 30 %, the others cost 2 to 8 and pass 70 to 100 %, joins cost 3 to 9 and one "
    "in five yields more than one tuple; loads of 0.5, 0.7, 0.9 and 1.1 for 200 s each, flows of "
    "40 s, a time unit of 0.1 s; the paper's day has the same shape on a longer scale. Six more "
    "settings change one thing each: second operators pass 10 to 50 %, leaves pass 30 to 70 %, all "
    "selectivities lie between 0 and 1, leaves cost as much as the others, loads of 0.4 to 0.85, "
    "flows of 100 s."
)
