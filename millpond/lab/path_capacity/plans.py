"""Path Capacity paper, sections 2.2, 3.2 and 4.1: plans, limits of service, and FIFO's backlog.

A lower selectivity of the leaf increases the capacities of a path or segment dramatically; pushing
selections and projections as far down as possible improves latency and memory; a shorter path is no
faster, but its tuples are buffered less often, which can decrease latency and overhead; very large
limits of service worsen latency; FIFO keeps its whole backlog at the beginning of each path.

Three paths of operators that are drawn, in an overload of ten seconds, each compared with the same
paths planned otherwise. "Can" is read as: no more than by chance above, on nine draws of ten.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.path_capacity.physical_plans import (
    PROJECTION,
    SELECTION,
    UNSELECTIVE,
    Paths,
    apart,
    arrivals,
    capacities,
    drawn_paths,
    first,
    last,
    merged,
    segments,
    simulated,
    work_seconds,
)
from millpond.lab.sentences import Otherwise, Sentence, judged, measured
from millpond.lab.words import ABOUT, MUCH, SAME
from millpond.scheduling.registry import make
from millpond.simulator import Record

UNIT_SECONDS = 0.1
LONG_SECONDS = 5.0
"""A very large limit of service."""
STRATEGIES = ("path-capacity", "segment")
Ratios: TypeAlias = Mapping[str, float]
"""What is measured of one draw, by name."""
PUSHED = {
    "selection": (SELECTION,),
    "projection": (PROJECTION,),
    "selection and projection": (SELECTION, PROJECTION),
}
DRAMATICALLY = (
    "the lower selectivity of a leaf operator dramatically increases the processing capacity and "
    "the memory release capacity of an operator path or segment"
)
OPTIMIZED = (
    "the tuple latency and the memory requirements [...] can be optimized through pushing the "
    "selection and the project as far down as possible"
)
NO_FASTER = "it does not increase the processing rate of the path"
BUFFERED_LESS = "the number of times an output tuple is buffered decreases"
DECREASES = "can decrease the tuple latency and the scheduling overhead"
TOO_LARGE = "very large [...] values of these limited parameters have a negative impact"
BACKLOG = "maintains its entire backlog of unprocessed tuples at the beginning of each [...] path"


def run(seeds: Sequence[int]) -> Tables:
    """Ratios, seed by seed."""
    return {"by seed": measured(SENTENCES, map(_ratios, seeds))}


def _ratios(seed: int) -> Ratios:
    paths = drawn_paths(np.random.default_rng((41, seed)))
    found = {**_capacities(paths), "merged over apart": _no_faster(paths)}
    short, long = (sum(map(segments, each)) for each in (merged(paths), apart(paths)))
    found["segments"] = short / long
    for name in STRATEGIES:
        found |= _pushed_down(paths, name, seed)
        found |= _compared(f"{name}, shorter", name, merged(paths), apart(paths), seed)
        found[f"{name}, limit"] = _limits(paths, name, seed)
    return {**found, "fifo inside": _inside(first(paths, SELECTION), seed)}


def _capacities(paths: Paths) -> Ratios:
    """By how much a leaf that passes less increases capacities, of all paths the least."""
    pairs = [
        (capacities(lower), capacities(path))
        for lower, path in zip(first(paths, SELECTION), first(paths, UNSELECTIVE), strict=True)
    ]
    return {
        f"{what}: {kind}": min(
            getattr(low[what], kind) / getattr(usual[what], kind) for low, usual in pairs
        )
        for what in ("path", "segment")
        for kind in ("processing", "memory_release")
    }


def _no_faster(paths: Paths) -> float:
    """The largest ratio of capacities, the shorter path's over the longer one's."""
    pairs = zip(merged(paths), apart(paths), strict=True)
    return max(work_seconds(long) / work_seconds(short) for short, long in pairs)


def _pushed_down(paths: Paths, name: str, seed: int) -> Ratios:
    found: dict[str, float] = {}
    for what, steps in PUSHED.items():
        found |= _compared(f"{name}, {what}", name, first(paths, *steps), last(paths, *steps), seed)
    return found


def _compared(text: str, name: str, paths: Paths, others: Paths, seed: int) -> Ratios:
    """Measures under one plan over those under the other, of tuples too many for the other."""
    mine, theirs = (_served(each, name, others, seed) for each in (paths, others))
    return {
        f"{text}: latency": mine.mean_latency_seconds / theirs.mean_latency_seconds,
        f"{text}: memory": mine.mean_bytes / theirs.mean_bytes,
        f"{text}: switches": mine.context_switches / theirs.context_switches,
    }


def _served(
    paths: Paths, name: str, loaded: Paths, seed: int, unit_seconds: float = UNIT_SECONDS
) -> Record:
    return simulated(paths, make(name, slice_seconds=unit_seconds), arrivals(loaded, seed), seed)


def _limits(paths: Paths, name: str, seed: int) -> float:
    long, short = (
        _served(paths, name, paths, seed, unit).mean_latency_seconds
        for unit in (LONG_SECONDS, UNIT_SECONDS)
    )
    return long / short


def _inside(paths: Paths, seed: int) -> float:
    """The most tuples that are past the first operator under FIFO: streams weigh nothing."""
    fifo = make("fifo", max_tuples=1)
    return simulated(paths, fifo, arrivals(paths, seed), seed, tuple_bytes=0.0).peak_bytes


def plot(tables: Tables, figure: Figure) -> None:
    """Every ratio, a spot for each seed."""
    axes = figure.subplots()
    table = tables["by seed"]
    for place, (name, values) in enumerate(table.items()):
        axes.scatter(values, [place] * len(values), s=8, label=name)
    axes.set_yticks(range(len(table)), list(table), fontsize=6)
    axes.set_xscale("log")
    axes.axvline(1.0, color="grey", lw=0.8)
    figure.tight_layout()


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return judged(SENTENCES, tables["by seed"])


LEAF_ALONE = "a segment that is the leaf alone takes as long, whatever it passes"
FEWER_FIRST = (
    "the projection is work that tuples which are filtered out behind it would not have caused"
)
PROJECTED = {
    ("path-capacity", "projection", "latency"): Otherwise(FEWER_FIRST, 1 + SAME),
    ("path-capacity", "projection", "memory"): Otherwise(FEWER_FIRST, 1 + SAME),
    ("segment", "projection", "latency"): Otherwise(FEWER_FIRST, 1 - ABOUT),
}
SERVED_LATER = (
    "fewer segments are longer ones, which free memory at other rates; that changes which "
    "path is served first, and in an overload that decides"
)


def _capacity_sentences() -> Iterator[Sentence[Ratios]]:
    for what in ("path", "segment"):
        for kind, text in (
            ("processing", "processing capacity"),
            ("memory_release", "memory release capacity"),
        ):
            yield Sentence(
                DRAMATICALLY,
                f"{text} of a {what} whose leaf passes a tenth, over nine tenths",
                itemgetter(f"{what}: {kind}"),
                MUCH,
                otherwise=Otherwise(LEAF_ALONE, 1 - SAME, 1 + SAME)
                if (what, kind) == ("segment", "processing")
                else None,
            )


def _pushed_sentences(name: str) -> Iterator[Sentence[Ratios]]:
    for what in PUSHED:
        for measure in ("latency", "memory"):
            yield Sentence(
                OPTIMIZED,
                f"{name}, {what} first: {measure} over that with it last",
                itemgetter(f"{name}, {what}: {measure}"),
                most=1.0,
                otherwise=PROJECTED.get((name, what, measure)),
            )


def _shorter_sentences(name: str) -> Iterator[Sentence[Ratios]]:
    for measure in ("latency", "switches"):
        yield Sentence(
            DECREASES,
            f"{name}, shorter path: {measure} over that of the longer one",
            itemgetter(f"{name}, shorter: {measure}"),
            most=1 + SAME,
            otherwise=Otherwise(SERVED_LATER, 1 / MUCH, MUCH) if name == "segment" else None,
        )


def _limit_sentence(name: str) -> Sentence[Ratios]:
    return Sentence(
        TOO_LARGE,
        f"{name}: mean latency with a limit of {LONG_SECONDS:g} s over {UNIT_SECONDS:g} s",
        itemgetter(f"{name}, limit"),
        1 + SAME,
    )


def _sentences() -> Iterator[Sentence[Ratios]]:
    yield from _capacity_sentences()
    yield Sentence(
        NO_FASTER,
        "capacity of a path with a projection merged into a selection, over apart",
        itemgetter("merged over apart"),
        1 - SAME,
        1 + SAME,
    )
    for name in STRATEGIES:
        yield from _pushed_sentences(name)
        yield from _shorter_sentences(name)
        yield _limit_sentence(name)
    yield Sentence(
        BUFFERED_LESS,
        "segments of a shorter path over those of the longer one",
        itemgetter("segments"),
        most=1 - SAME,
    )
    yield Sentence(
        BACKLOG,
        "FIFO: tuples past their first operator at any instant, at most",
        itemgetter("fifo inside"),
        most=1.0,
    )


SENTENCES = tuple(_sentences())
EXPERIMENT = experiment(__name__, "Section 4.1, plans", seeds=10)
