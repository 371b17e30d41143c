"""Window joins with too little memory: policies of eviction against the best that could be.

How much of the output of an offline optimum do policies put out that do not see the future, by
memory: by age, by frequency (PROB and LIFE of Das, Gehrke and Riedewald 2003), by the curve of
matches by age (Srivastava and Widom 2004), by chance.

The texts of the two papers were not at hand: policies are built as they are known, and the claims
are ours. A tuple of each stream comes at each instant, 600 in all, windows are of 60 instants, and
each stream has the same memory, in rows, as a part of its window. 50 keys are Zipf (1/k) or
even; or each tuple has its own, and is met at ages of 24 to 36. Policies know how often keys and
ages are met, not when. Rows that were evicted are counted by key (`EvictedRows`), with so many
counters for each stream: with the pairs put out that bounds the number of all pairs for certain.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import fmean
from typing import TypeAlias

import numpy as np

from millpond.approximation.intervals.interval import Interval
from millpond.approximation.synopses.evicted_rows import BYTES_OF_A_COUNTER, EvictedRows
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.joins.optimum import most_pairs
from millpond.lab.joins.policies import POLICIES, joined
from millpond.lab.joins.streams import STREAMS, WINDOW, Side, matches
from millpond.lab.sentences import NOTHING, limits
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY, MUCH, SAME, on_most_seeds, told_by_seed

PARTS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
"""Of the window, that are kept."""
SHORT = tuple(part for part in PARTS if part < 1)
COUNTED_PART = 0.2
COUNTERS = (60, 40, 30, 20, 10)
"""For evicted rows of a stream; as many as the window has are enough for all."""
AT_MOST = "at most 1"


def run(seeds: Sequence[int]) -> Tables:
    """The output of each policy over the optimum's, and the bounds of what is missing."""
    output, bounds = [], []
    for (name, make), seed in product(STREAMS.items(), seeds):
        output += [(name, *row, seed) for row in _outputs(make(seed), seed)]
    for name, seed in product(("zipf", "uniform"), seeds):
        bounds += [(name, *row, seed) for row in _bounds(STREAMS[name](seed), seed)]
    return {
        "output": table_of(("streams", "policy", "part", "of optimum", "of exact", "seed"), output),
        "bounds": table_of(("streams", "policy", "counters", "low", "high", "seed"), bounds),
    }


def _outputs(sides: Sequence[Side], seed: int) -> Iterator[tuple[str, float, float, float]]:
    """Of the optimum and each policy with each memory: pairs over the optimum's, and over all."""
    met = [matches(side) for side in sides]
    exact = sum(map(len, (instants for each in met for instants in each)))
    best = np.sum([most_pairs(each, WINDOW) for each in met], axis=0).tolist()
    for part in PARTS:
        rows = round(part * WINDOW)
        yield "optimum", part, 1.0, best[rows - 1] / exact
        for policy, worth in POLICIES.items():
            pairs = sum(each.met for side in sides for each in joined(side, worth, rows, seed))
            yield policy, part, pairs / best[rows - 1], pairs / exact


def _bounds(sides: Sequence[Side], seed: int) -> Iterator[tuple[str, int, float, float]]:
    """Of each policy and number of counters: both bounds of the exact number of pairs, over it."""
    exact = sum(len(instants) for side in sides for instants in matches(side))
    for policy, counters in product(("prob", "random"), COUNTERS):
        found = [bounded(side, policy, counters, seed) for side in sides]
        low, high = (sum(ends) for ends in zip(*((b.low, b.high) for b in found), strict=True))
        yield policy, counters, low / exact, high / exact


def bounded(side: Side, policy: str, counters: int, seed: int) -> Interval:
    """How many pairs there are, by those put out and those that evicted rows would have made."""
    gone, low, high = EvictedRows(side.window, counters * BYTES_OF_A_COUNTER), 0.0, 0.0
    instants = joined(side, POLICIES[policy], round(COUNTED_PART * WINDOW), seed)
    for now, (probe, each) in enumerate(zip(side.probes.tolist(), instants, strict=True)):
        missed = gone.missed(probe, now)
        low, high = low + each.met + missed.low, high + each.met + missed.high
        if each.evicted is not None:
            gone.add([(int(side.keys[each.evicted]), each.evicted)])
        gone.forget(now)
    return Interval(low, high)


def plot(tables: Tables, figure: Figure) -> None:
    """A curve of each policy, by memory; and the bounds by counters."""
    *panels, last = figure.subplots(1, len(STREAMS) + 1)
    output, bounds = tables["output"], tables["bounds"]
    for axes, streams in zip(panels, STREAMS, strict=True):
        for policy in POLICIES:
            of = {"streams": streams, "policy": policy}
            means = [np.mean(picked(output, "of optimum", of | {"part": part})) for part in PARTS]
            axes.plot(PARTS, means, label=policy, marker=".")
        axes.set(title=streams, xlabel="memory, as a part of the window", ylim=(0, 1.05))
    panels[0].set_ylabel("output, as a part of the optimum's")
    panels[0].legend(fontsize="x-small")
    for end in ("low", "high"):
        of = {"streams": "zipf", "policy": "prob"}
        means = [np.mean(picked(bounds, end, of | {"counters": each})) for each in COUNTERS]
        last.plot(COUNTERS, means, label=end, marker=".")
    last.set(title="zipf, prob: bounds of all pairs", xlabel="counters", ylim=(0, None))


def check(tables: Tables) -> Sequence[Claim]:
    """Who is near the optimum, where, and whether bounds hold."""
    return [*_of_optimum(tables), *_of_zipf(tables), *_of_others(tables), *_of_bounds(tables)]


def _of_optimum(tables: Tables) -> Iterator[Claim]:
    shares = tables["output"]["of optimum"]
    yield Claim(
        "no policy puts out more than the optimum",
        AT_MOST,
        f"{max(shares):.3f} at most",
        max(shares) <= 1,
    )
    whole = picked(tables["output"], "of exact", {"part": 1.0})
    yield Claim(
        "with memory for the whole window every policy is exact",
        "all pairs",
        f"{min(whole):.3f} of them at least",
        min(whole) == max(whole) == 1,
    )


def _of_zipf(tables: Tables) -> Iterator[Claim]:
    least = _by_seed(tables, "zipf", lambda at: at("prob"), min)
    yield _claim("Zipf keys: prob is nearly as good as the optimum", 1 / CLEARLY, least)
    ratios = _by_seed(tables, "zipf", lambda at: at("prob") / at("random"), min)
    yield _claim("Zipf keys: prob is clearly better than random eviction", CLEARLY, ratios)
    ratios = _by_seed(tables, "zipf", lambda at: at("prob") / at("random"), min, (0.05, 0.1, 0.2))
    text = "Zipf keys: prob is much better than random eviction up to a fifth of the window"
    yield _claim(text, MUCH, ratios)
    ratios = _by_seed(tables, "zipf", lambda at: at("prob") / at("life"), min)
    yield _claim("Zipf keys: life is nowhere better than prob", 1 - SAME, ratios)
    ratios = _by_seed(tables, "zipf", lambda at: at("life") / at("random"), min)
    yield _claim("Zipf keys: life is clearly better than random eviction", CLEARLY, ratios)


def _of_others(tables: Tables) -> Iterator[Claim]:
    ratios = _by_seed(tables, "uniform", lambda at: at("oldest") / at("random"), fmean)
    text = "even keys: to let the oldest go is as good as any, in the mean over memories"
    yield _claim(text, 1 / CLEARLY, ratios, CLEARLY)
    by_frequency = ("prob", "life")
    apart = _by_seed(
        tables, "uniform", lambda at: max(abs(at(by) - at("oldest")) for by in by_frequency), max
    )
    yield _claim("even keys: prob and life let the oldest go", 0, apart, NOTHING)
    best = _by_seed(tables, "uniform", lambda at: max(map(at, POLICIES)), max)
    text = "even keys: nobody who does not see the future comes near the optimum"
    yield _claim(text, 0, best, 1 / CLEARLY)
    others = ("random", "oldest", "prob", "life")
    ratios = _by_seed(
        tables, "aged", lambda at: at("age curve") / max(*map(at, others), NOTHING), min, SHORT[:-1]
    )
    text = "matches at an age: its curve is clearly better than age, frequency and chance"
    yield _claim(f"{text}, up to half of the window", CLEARLY, ratios)
    ratios = _by_seed(tables, "aged", lambda at: at("prob") - at("random"), max, SHORT[:4])
    text = "matches at an age: to go by frequency is no better than by chance"
    yield _claim(f"{text}, where rows do not live until then", -1, ratios, 0)


def _of_bounds(tables: Tables) -> Iterator[Claim]:
    bounds = tables["bounds"]
    pairs = list(zip(bounds["low"], bounds["high"], strict=True))
    yield Claim(
        "what is put out and evicted rows by key bound the number of all pairs",
        "low ≤ 1 ≤ high, always",
        f"low {max(bounds['low']):.3f} at most, high {min(bounds['high']):.3f} at least",
        all(low <= 1 <= high for low, high in pairs),
    )
    known = [picked(bounds, end, {"counters": COUNTERS[0]}) for end in ("low", "high")]
    yield Claim(
        "with a counter for each row of the window it is known how many pairs are missing",
        "low = 1 = high",
        f"{min(known[0]):.3f} to {max(known[1]):.3f}",
        min(known[0]) == max(known[1]) == 1,
    )
    of = {"streams": "zipf", "policy": "prob", "counters": WINDOW // 2}
    text = "Zipf keys, prob, half as many counters: the upper bound is below twice the number"
    yield _claim(text, 0, picked(bounds, "high", of), MUCH)


_Shares: TypeAlias = Callable[[str], float]
"""What a policy puts out over what the optimum does, on some seed and with some memory."""


def _by_seed(
    tables: Tables,
    streams: str,
    measure: Callable[[_Shares], float],
    over: Callable[[Sequence[float]], float],
    parts: Sequence[float] = SHORT,
) -> list[float]:
    """Of each seed a measure of the policies' shares, summed up over memories."""
    seeds = sorted(set(tables["output"]["seed"]))
    found = {(seed, part): shares(tables, streams, seed, part) for seed in seeds for part in parts}
    return [over([measure(found[seed, part].__getitem__) for part in parts]) for seed in seeds]


def shares(tables: Tables, streams: str, seed: int, part: float) -> dict[str, float]:
    """The output of each policy over the optimum's."""
    of = {"streams": streams, "seed": seed, "part": part}
    policies, found = (picked(tables["output"], column, of) for column in ("policy", "of optimum"))
    return dict(zip(policies, found, strict=True))


def _claim(text: str, least: float, values: Sequence[float], most: float = float("inf")) -> Claim:
    so = [least <= value <= most for value in values]
    return Claim(text, limits(least, most), told_by_seed(values, so), on_most_seeds(so))


EXPERIMENT = experiment(__name__, "Window joins with less memory than windows", seeds=10, long=True)
