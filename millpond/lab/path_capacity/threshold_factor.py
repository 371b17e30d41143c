"""Path Capacity paper, section 3.4: β, the load, and the output rate while memory is saved.

β guarantees a zone between the modes, which prevents frequent oscillation; a smaller one causes a
longer latency. With the load the time in saving mode and the latency increase. In saving mode the
output rate is smooth.

How much memory there is, what loads and how often memory is looked at is not printed and was
searched for (see docs/papers.md), on the plan drawn, over 80 s. A system without β is one with
0.999. Smoothness is the peak-to-mean ratio of outputs in bins of five seconds in which Threshold
saves, against Chain's in the same ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.path_capacity.watched_threshold import course_of, smoothness
from millpond.lab.path_capacity.workload import DRAWN, DRAWN_NOTE, Setting, record_of
from millpond.lab.search import Margins, Point, Search
from millpond.lab.sentences import (
    ABOVE_ONE,
    NOTHING,
    Otherwise,
    Sentence,
    judged,
    margins,
    measured,
)
from millpond.lab.words import ABOUT, CLEARLY, SAME
from millpond.scheduling.strategies.threshold import thresholds

SECONDS = 80.0
PAPERS, SMALL, NONE = 0.9, 0.55, 0.999
"""Values of β: the paper's, a small one, and as good as none."""
LOADS = (0.8, 1.0, 1.2)
COURSES = ((0.5, 0.7, 0.9, 1.1), (0.9,), (1.0,), (1.1,))
"""Phases that rise, or one load."""
SCREEN_TOLERANCE = 0.8
Measures: TypeAlias = Mapping[str, float]


def setting(point: Point) -> Setting:
    """The plan drawn, under the loads of a point."""
    loads = COURSES[int(point["course"])]
    return replace(DRAWN, loads=loads, phase_seconds=SECONDS / len(loads))


def measures(point: Point, seed: int) -> Measures:
    """What is measured of one seed; memory is a share of what Path Capacity needs at most."""
    chosen = setting(point)
    limit = point["memory share"] * record_of("path-capacity", chosen, seed).peak_bytes
    run_with = partial(
        course_of, seed=seed, memory_bytes=limit, interval_seconds=point["interval seconds"]
    )
    by_beta = {beta: run_with(chosen, beta=beta) for beta in (SMALL, PAPERS, NONE)}
    by_load = {1.0: by_beta[PAPERS]}
    for load in (LOADS[0], LOADS[-1]):
        loads = tuple(load * each for each in chosen.loads)
        by_load[load] = run_with(replace(chosen, loads=loads), beta=PAPERS)
    found = {f"changes {beta}": float(each.changes) for beta, each in by_beta.items()}
    found |= {f"latency {beta}": each.latency_seconds for beta, each in by_beta.items()}
    for load, each in by_load.items():
        found[f"saving at {load}"] = each.saving_share
        found[f"latency at {load}"] = each.latency_seconds
    found["smoothness"] = smoothness(by_beta[PAPERS], record_of("chain", chosen, seed))
    return found


def run(seeds: Sequence[int], point: Point | None = None) -> Tables:
    """All sentences in the setting that was found, seed by seed, and the thresholds by formula."""
    chosen = point or SEARCH.found
    by_seed = [measures(chosen, seed) for seed in seeds]
    return {
        "by seed": measured(SENTENCES, by_seed),
        "measures": {name: [each[name] for each in by_seed] for name in by_seed[0]},
        "zones": _zones(),
    }


def _zones() -> dict[str, list[float]]:
    """The room between the thresholds, over the memory, by the mean queue."""
    means = np.linspace(0.01, 1.0, 100)
    found: dict[str, list[float]] = {"mean": means.tolist()}
    for beta in (PAPERS, NONE):
        both = [thresholds(1.0, float(mean), beta) for mean in means]
        found[str(beta)] = [upper - lower for upper, lower in both]
    return found


def plot(tables: Tables, figure: Figure) -> None:
    """The room between the thresholds, and changes and latency over β and over the load."""
    zone, *axes = figure.subplots(2, 2).flat
    for beta in (PAPERS, NONE):
        zone.plot(tables["zones"]["mean"], tables["zones"][str(beta)], label=f"β = {beta:g}")
    zone.set(xlabel="mean queue over memory", ylabel="room between thresholds")
    zone.legend()
    shown = (
        ("changes {}", (PAPERS, NONE)),
        ("latency {}", (SMALL, PAPERS)),
        ("saving at {}", LOADS),
    )
    for each, (name, values) in zip(axes, shown, strict=True):
        for value in values:
            found = tables["measures"][name.format(value)]
            each.scatter([value] * len(found), found, s=8)
        each.set(title=name.format("by β" if "at" not in name else "by load"))


def check(tables: Tables) -> Sequence[Claim]:
    """The zone by formula, then every sentence, seed by seed."""
    return [_guaranteed(tables), *judged(SENTENCES, tables["by seed"])]


def _guaranteed(tables: Tables) -> Claim:
    least, without = (min(tables["zones"][str(beta)]) for beta in (PAPERS, NONE))
    expected = PAPERS * (1 - PAPERS)
    return Claim(
        "least room between the thresholds, of any mean queue, over the memory",
        f'"guarantees a minimal memory buffer zone": {expected:.2f} and {without:.3f} without β',
        f"{least:.3f}",
        least >= expected * (1 - SAME) and without < SAME,
    )


def _over(name: str, other: str) -> Callable[[Measures], float]:
    """A measure over another; one that is nothing is above nothing by nothing."""
    get, get_other = itemgetter(name), itemgetter(other)
    return lambda found: float((get(found) + NOTHING) / (get_other(found) + NOTHING))


INCREASES = "As the mean load of the system increases"
LITTLE_TO_PREVENT = (
    "never more often; on some draws the mode hardly changes without β either, for the lower "
    "threshold is the mean queue where that is below β of the upper one"
)
SAVES_EARLIER = "a smaller β saves earlier, and there is less to save then"
LEAVES_FIRST = "in saving mode it serves leaves first, as Chain does, and puts out the rest behind"


def _sentences() -> Iterator[Sentence[Measures]]:
    yield Sentence(
        "prevents a system from frequently oscillating between the [...] modes",
        f"changes of mode without β ({NONE:g}) over those with {PAPERS:g}",
        _over(f"changes {NONE}", f"changes {PAPERS}"),
        CLEARLY,
        otherwise=Otherwise(LITTLE_TO_PREVENT, 1.0),
    )
    yield Sentence(
        "A smaller value of β causes a longer tuple latency",
        f"mean latency for β {SMALL:g} over that for {PAPERS:g}",
        _over(f"latency {SMALL}", f"latency {PAPERS}"),
        1 + SAME,
        otherwise=Otherwise(SAVES_EARLIER, 1 - ABOUT, 1 + ABOUT),
    )
    for low, high in pairwise(LOADS):
        for name, text in (
            ("saving", "share of the time in saving mode"),
            ("latency", "mean latency"),
        ):
            yield Sentence(
                f"{INCREASES} [...]",
                f"{text} for the load {high:g} over that for {low:g}",
                _over(f"{name} at {high}", f"{name} at {low}"),
                ABOVE_ONE,
            )
    yield Sentence(
        "it demonstrates the near optimal memory requirement and smooth output rate during its "
        "memory saving mode",
        "peak-to-mean ratio of the output rate in saving mode, over Chain's",
        itemgetter("smoothness"),
        most=1.0,
        otherwise=Otherwise(LEAVES_FIRST, 1 / CLEARLY, CLEARLY),
    )


SENTENCES = tuple(_sentences())


def measure(point: Point, seed: int) -> Margins:
    """Margins of all sentences on one seed."""
    return margins(SENTENCES, measures(point, seed))


def screen(point: Point, seed: int) -> Margins:
    """The same, with some room."""
    return {name: margin / SCREEN_TOLERANCE for name, margin in measure(point, seed).items()}


SEARCH = Search(
    "path-capacity-threshold-factor",
    '"we use β = 0.9", "its value need to be in the range of 0.5 to 1.0"; memory is looked at at '
    "the end of an interval that is long while little is used",
    {
        "memory share": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
        "course": (0.0, 1.0, 2.0, 3.0),
        "interval seconds": (0.1, 1.0, 5.0),
    },
    lambda point: True,
    measure,
    screen,
)
EXPERIMENT = experiment(
    __name__, "Section 3.4, the factors of Threshold", note=DRAWN_NOTE, seeds=10, long=True
)
