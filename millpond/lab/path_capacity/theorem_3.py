"""Path Capacity paper, Theorem 3: Segment's memory is at most Chain's. Tested before believed.

Segment needs at most Chain's memory at any instant.

Both strategies are asked once a unit of time. The theorem is true, with equality at every instant,
when the mean slopes of a path's segments fall from leaf to root, for then they are the segments of
the lower envelope.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from millpond.lab.chain.instances import Instance, queue_sizes, random_instance
from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.instances import run_instance, same_random, segments_are_chains
from millpond.lab.tables import picked, table_of
from millpond.lab.words import about
from millpond.scheduling.registry import make

INSTANCES_A_SEED = 150
BURSTS = (5, 10, 20, 40)
CUT_WRONGLY = ((0.0, 1.0), (8.0, 1.0), (9.0, 0.75), (13.0, 0.0))
"""Slopes 0, 1/4, 3/16: Segment cuts behind the second, the lower envelope is one line of 1/13."""
WORDS = '"requires at most the amount of memory required by the Chain scheduling strategy"'
CUT_ELSEWHERE = (
    "the proof takes both to form the same segments; Segment's rule cuts a path also where the "
    "lower envelope does not, and then serves the parts at other times than Chain"
)
RIVAL = ((0.0, 1.0), (20.0, 0.0))
"""Slope 1/20: between those of Segment's first part (1/36) and of the whole (1/13)."""


def run(seeds: Sequence[int]) -> Tables:
    """Segment against Chain on random instances, and an instance that grows."""
    table: dict[str, list[float | bool]] = {"same cut": [], "peak": [], "above": [], "below": []}
    for generator in same_random(seeds, INSTANCES_A_SEED, 20):
        queries = int(generator.integers(1, 4))
        instance = random_instance(generator, queries, operators=5, tuples=10)
        segment, chain = queue_sizes(instance, "segment"), queue_sizes(instance, "chain")
        table["same cut"].append(all(segments_are_chains(chart) for chart in instance.charts))
        table["peak"].append(float(segment.max() - chain.max()))
        table["above"].append(float((segment - chain).max()))
        table["below"].append(float((chain - segment).max()))
    return {"segment minus chain": table, "growing burst": _growing_burst()}


def _growing_burst() -> dict[str, list[float]]:
    rows = []
    for burst in BURSTS:
        often = tuple(range(0, 20 * burst, 13))
        instance = Instance((CUT_WRONGLY, RIVAL), (often, (0,) * burst))
        made = [make(name, slice_seconds=1.0) for name in ("segment", "chain")]
        rows.append((burst, *(run_instance(instance, each).peak_bytes for each in made)))
    return table_of(("burst", "segment", "chain"), rows)


def plot(tables: Tables, figure: Figure) -> None:
    """Differences of the peaks, and the peaks of the growing burst."""
    left, right = figure.subplots(1, 2)
    table = tables["segment minus chain"]
    for same, label in ((True, "mean slopes fall"), (False, "they do not")):
        left.plot(np.sort(_peaks(tables, same)), label=label)
    left.set(xlabel="instances, sorted", ylabel="peak of Segment minus peak of Chain (tuples)")
    left.legend(title=f"{len(table['peak'])} random instances")
    burst = tables["growing burst"]
    for name in ("segment", "chain"):
        right.plot(burst["burst"], burst[name], marker="o", label=name)
    right.set(xlabel="tuples in the burst", ylabel="peak memory (tuples)")
    right.legend(title="the counterexample")


def _peaks(tables: Tables, same: bool) -> list[float]:
    return picked(tables["segment minus chain"], "peak", {"same cut": same})


def check(tables: Tables) -> Sequence[Claim]:
    """Equal where both cut alike, either way where they do not, and without bound."""
    table = tables["segment minus chain"]
    rows = list(zip(table["same cut"], table["above"], table["below"], strict=True))
    same = [max(above, below) for cut, above, below in rows if cut]
    measured = f"{max(same):.1e} at any instant, {len(same)} instances"
    text = "mean slopes of the segments fall: largest difference"
    claims = [Claim(text, f"{WORDS}: 0", measured, max(same, default=1.0) < 1e-9)]
    peaks = _peaks(tables, same=False)
    worse, better = sum(each > 1e-9 for each in peaks), sum(each < -1e-9 for each in peaks)
    measured = (
        f"higher in {worse} (by {max(peaks):.2f} tuples at worst), lower in {better} (by "
        f"{-min(peaks):.2f}), equal in {len(peaks) - worse - better} of {len(peaks)}"
    )
    instead = Instead("higher in some, lower in some", CUT_ELSEWHERE, worse > 0 and better > 0)
    text = "they do not fall: Segment's peak against Chain's"
    claims.append(Claim(text, f"{WORDS}: none higher", measured, worse == 0, instead))
    return [*claims, _growth(tables)]


def _growth(tables: Tables) -> Claim:
    burst = tables["growing burst"]
    gaps = [mine - its for mine, its in zip(burst["segment"], burst["chain"], strict=True)]
    measured = ", ".join(
        f"{gap:.1f} for {size:g}" for gap, size in zip(gaps, burst["burst"], strict=True)
    )
    doubled = [about(more, 2 * less) for less, more in pairwise(gaps)]
    return Claim(
        "counterexample: Segment's peak above Chain's, by the tuples in a burst",
        f"{WORDS}: 0",
        measured,
        max(gaps) <= 0,
        Instead("without bound: it doubles with the burst", CUT_ELSEWHERE, all(doubled)),
    )


EXPERIMENT = experiment(__name__, "Theorem 3: Segment against Chain")
