"""Sections 5.1.1 and 5.2.2 of the STREAM paper: smaller windows, samples, and load shedding.

By decreasing the size of a window both memory and computation requirements can be reduced, and in
general the remainder of the plan has fewer tuples to process; sampling and dropping chunks of
tuples both are effective techniques for reducing queue sizes.

Drawn window joins, with nested loops, followed by a selection, under Chain, in an overload of ten
seconds: with half of the rows in each window, and with half of the tuples that come, drawn one by
one or as every other chunk of 100.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.sentences import Sentence, judged, measured
from millpond.lab.words import MUCH, SAME
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, Record, SimulatedPlan, Window, simulate
from millpond.workloads import Poisson

SECONDS = 10.0
OVERLOAD = 1.2
CHUNK = 100
Arrivals: TypeAlias = Mapping[str, FloatArray]
Ratios: TypeAlias = Mapping[str, float]


class Join(NamedTuple):
    """A join of two streams with a selection behind it."""

    rows: int
    matches: float
    """How many rows of a window of that size a tuple joins with."""
    probe_seconds: float
    selection_seconds: float

    @property
    def tuple_seconds(self) -> float:
        """The work of one tuple."""
        return self.rows * self.probe_seconds + self.matches * self.selection_seconds

    def plan(self, share: float = 1.0) -> SimulatedPlan:
        """With windows of that share of their rows."""
        plan = SimulatedPlan()
        window = Window(
            rows=int(self.rows * share),
            match_probability=self.matches / self.rows,
            probe_seconds=self.probe_seconds,
        )
        joined = plan.join("join", plan.stream("r"), plan.stream("s"), 0.0, window=window)
        plan.query("q", plan.operator("selection", joined, self.selection_seconds, 0.5))
        return plan


def drawn(seed: int) -> Join:
    """Windows of 50 to 200 rows, of which a tuple joins with one to four."""
    generator = np.random.default_rng((51, seed))
    probe, selection = generator.uniform(5e-6, 2e-5), generator.uniform(2e-4, 2e-3)
    rows, matches = int(generator.integers(50, 201)), generator.uniform(1, 4)
    return Join(rows, float(matches), float(probe), float(selection))


def arrivals_of(join: Join, seed: int) -> Arrivals:
    """More than can be done."""
    rate = OVERLOAD / (2 * join.tuple_seconds)
    return {
        name: Poisson(rate).until(SECONDS, 10 * seed + place) for place, name in enumerate("rs")
    }


def sampled(arrivals: Arrivals, seed: int) -> Arrivals:
    """Half of the tuples, drawn one by one."""
    generator = np.random.default_rng((52, seed))
    return {name: times[generator.random(len(times)) < 0.5] for name, times in arrivals.items()}


def shed(arrivals: Arrivals) -> Arrivals:
    """Every other chunk."""
    return {
        name: times[np.arange(len(times)) // CHUNK % 2 == 0] for name, times in arrivals.items()
    }


def run(seeds: Sequence[int]) -> Tables:
    """Ratios of what is reduced over what is not, seed by seed."""
    return {"by seed": measured(SENTENCES, map(_ratios, seeds))}


def _ratios(seed: int) -> Ratios:
    join = drawn(seed)
    arrivals = arrivals_of(join, seed)
    full, half = (_served(join.plan(share), arrivals, seed) for share in (1.0, 0.5))
    fewer = {"sampled": sampled(arrivals, seed), "shed": shed(arrivals)}
    return {
        "memory": half.mean_bytes / full.mean_bytes,
        "computation": half.busy_seconds / full.busy_seconds,
        "tuples": half.outputs / full.outputs,
    } | {
        how: _served(join.plan(), less, seed).peak_bytes / full.peak_bytes
        for how, less in fewer.items()
    }


def _served(plan: SimulatedPlan, arrivals: Arrivals, seed: int) -> Record:
    return simulate(plan, make("chain"), dict(arrivals), Conditions(seed=seed))


REDUCED = "both memory and computation requirements can be reduced"
FEWER = "in general a smaller window results in fewer tuples to be processed by the remainder"
EFFECTIVE = "Both are effective techniques for reducing queue sizes"
TOLD = {
    "memory": ("half of the window: mean queue memory", REDUCED, 1 - SAME),
    "computation": ("half of the window: processor time", REDUCED, 1 - SAME),
    "tuples": ("half of the window: tuples behind the join that pass", FEWER, 1 - SAME),
    "sampled": ("half of the tuples, sampled: peak queue memory", EFFECTIVE, 1 / MUCH),
    "shed": ("half of the tuples, dropped in chunks: peak queue memory", EFFECTIVE, 1 / MUCH),
}
SENTENCES: tuple[Sentence[Ratios], ...] = tuple(
    Sentence(words, f"{text} over that of all", itemgetter(what), most=most)
    for what, (text, words, most) in TOLD.items()
)


def plot(tables: Tables, figure: Figure) -> None:
    """Every ratio, a spot for each seed."""
    axes = figure.subplots()
    for text, values in tables["by seed"].items():
        axes.scatter(values, [text] * len(values), s=8)
    axes.tick_params(axis="y", labelsize=6)
    axes.set(xlabel="reduced over not", xlim=(0, 1.1))


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return judged(SENTENCES, tables["by seed"])


EXPERIMENT = experiment(__name__, "Section 5, smaller windows and fewer tuples", seeds=10)
