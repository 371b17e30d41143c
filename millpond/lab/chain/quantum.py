"""Chain paper, section 6: the quantum of Round-robin, and statistics that are measured.

The size of the quantum does affect Round-robin, but it does not change the nature of the results;
progress charts from the statistics of the last window of time give results that are similar.

The queries of a single stream, on the workloads of their figures, for half as long. Quanta of 2 and
50 ms are tried beside the figures' 10 ms, and windows of five seconds. The nature of a result is
whether its sentence is so: on each seed that must be as with the figures' own setting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from millpond.lab.chain import four_operators, stored_join, two_operators
from millpond.lab.chain.bursts import CHOSEN, SEEDS, Setting, run_setting
from millpond.lab.chain.sentences import STRATEGIES, WORKLOADS, Sentence
from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY, MUCH, SAME, on_most_seeds, told_by_seed

SECONDS = 30.0
SHORTEST, LONGEST = QUANTA_SECONDS = (0.002, 0.05)
"""Beside those of the figures."""
WINDOW_SECONDS = 5.0
BY_STATISTICS = ("chain", "greedy")
"""Those that look at selectivities and times at all."""
ROBIN = "round-robin"
AS_DRAWN = "as in the figure"
WINDOWS = f"windows of {WINDOW_SECONDS:g} s"
AFFECTS = '"the size of the time quantum does affect the performance of round-robin"'
UNCHANGED = '"but it does not change the nature of the results presented here"'
SIMILAR = '"the results were similar to our other experiments"'


class Query(NamedTuple):
    """A query of a figure, what the text says of it, and the workloads that it is shown on."""

    setting: Setting
    sentences: Sequence[Sentence]
    workloads: Sequence[str] = WORKLOADS


QUERIES: Mapping[str, Query] = {
    "two operators": Query(two_operators.SETTING, two_operators.SENTENCES),
    "four operators": Query(four_operators.SETTING, four_operators.SENTENCES),
    "stored join": Query(stored_join.SETTING, stored_join.SENTENCES, stored_join.SYNTHETIC),
}
Peaks: TypeAlias = Mapping[tuple[str, str, str, str], Sequence[float]]
"""Peak queue sizes seed by seed, by query, workload, variation and strategy."""


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """The peak of every strategy that a variation changes."""
    rows = []
    for name, (setting, _, workloads) in QUERIES.items():
        for variation, (varied, strategies) in _variations(replace(setting, seconds=seconds)):
            summary = run_setting(varied, seeds, workloads, strategies)["summary"]
            columns = (summary[column] for column in ("workload", "strategy", "seed", "peak"))
            rows += [(name, variation, *row) for row in zip(*columns, strict=True)]
    return {"peaks": table_of(("query", "variation", "workload", "strategy", "seed", "peak"), rows)}


def _variations(setting: Setting) -> Iterator[tuple[str, tuple[Setting, Sequence[str]]]]:
    """The figure's own setting, and each that changes what some strategies do."""
    yield AS_DRAWN, (setting, STRATEGIES)
    yield WINDOWS, (replace(setting, measure_seconds=WINDOW_SECONDS), BY_STATISTICS)
    for seconds in QUANTA_SECONDS:
        yield _quantum(seconds), (replace(setting, quantum_seconds=seconds), (ROBIN,))


def _quantum(seconds: float) -> str:
    return f"quantum of {1000 * seconds:g} ms"


def _peaks(tables: Tables) -> Peaks:
    table = tables["peaks"]
    columns = (table[name] for name in ("query", "workload", "variation", "strategy"))
    names = ("query", "workload", "variation", "strategy")
    return {
        key: picked(table, "peak", dict(zip(names, key, strict=True)))
        for key in dict.fromkeys(zip(*columns, strict=True))
    }


def plot(tables: Tables, figure: Figure) -> None:
    """Peaks with each variation over those of the figure's setting, a spot for each seed."""
    axes = figure.subplots()
    peaks = _peaks(tables)
    for (query, workload, variation, strategy), found in peaks.items():
        if variation != AS_DRAWN:
            usual = peaks[query, workload, AS_DRAWN, strategy]
            name = f"{query}, {workload}: {strategy}, {variation}"
            axes.scatter(_over(found, usual), [name] * len(found), s=8)
    axes.tick_params(axis="y", labelsize=5)
    axes.set(xlabel="peak queue size over that in the figure's setting", xscale="log")


def _over(mine: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(mine, theirs, strict=True)]


def check(tables: Tables) -> Sequence[Claim]:
    """What a quantum does, and that sentences are as true with every quantum and with windows."""
    peaks = _peaks(tables)
    return [
        claim
        for name, query in QUERIES.items()
        for workload in query.workloads
        for claim in _claims(peaks, name, query, workload)
    ]


def _claims(peaks: Peaks, name: str, query: Query, workload: str) -> Iterator[Claim]:
    yield _affects(peaks, name, workload)
    yield from (_similar(peaks, name, workload, strategy) for strategy in BY_STATISTICS)
    for sentence in query.sentences:
        if workload in sentence.workloads:
            if ROBIN in sentence.ratio[:2]:
                for seconds in QUANTA_SECONDS:
                    yield _same(peaks, name, workload, sentence, _quantum(seconds))
            yield _same(peaks, name, workload, sentence, WINDOWS)


def _affects(peaks: Peaks, name: str, workload: str) -> Claim:
    short, long = (peaks[name, workload, _quantum(each), ROBIN] for each in (SHORTEST, LONGEST))
    ratios = _over(long, short)
    so = [abs(ratio - 1) > SAME for ratio in ratios]
    return Claim(
        f"{name}, {workload}: round-robin's peak with the longest quantum over that with the "
        "shortest",
        f"{AFFECTS}: not within {SAME:.0%} of 1",
        told_by_seed(ratios, so),
        on_most_seeds(so),
        _within(ratios, 1 - SAME, CLEARLY, FEW_QUANTA),
    )


def _similar(peaks: Peaks, name: str, workload: str, strategy: str) -> Claim:
    ratios = _over(
        peaks[name, workload, WINDOWS, strategy], peaks[name, workload, AS_DRAWN, strategy]
    )
    so = [1 / CLEARLY < ratio < CLEARLY for ratio in ratios]
    return Claim(
        f"{name}, {workload}, {WINDOWS}: {strategy}'s peak over that with static estimates",
        f"{SIMILAR}: {1 / CLEARLY:.2g} to {CLEARLY:g}",
        told_by_seed(ratios, so),
        on_most_seeds(so),
    )


def _same(peaks: Peaks, name: str, workload: str, sentence: Sentence, variation: str) -> Claim:
    """The sentence is so, or is not, on the seeds on which it is so, or not, in the figure."""
    usual, varied = (
        _ratios(peaks, name, workload, sentence, each) for each in (AS_DRAWN, variation)
    )
    before, now = ([sentence.ratio.allows(each) for each in found] for found in (usual, varied))
    so = [one == other for one, other in zip(before, now, strict=True)]
    words = SIMILAR if variation == WINDOWS else UNCHANGED
    return Claim(
        f"{name}, {variation}: {sentence.text(workload)}",
        f"{words}: {sentence.ratio.bounds} on those seeds on which it is so in the figure's "
        f"setting, {sum(before)} of {len(before)}",
        told_by_seed(varied, so),
        on_most_seeds(so),
        _longer(_over(varied, usual)) if variation == _quantum(LONGEST) else None,
    )


def _longer(ratios: Sequence[float]) -> Instead:
    return _within(ratios, 1 - SAME, MUCH, CARRIES_MORE)


def _within(ratios: Sequence[float], least: float, most: float, why: str) -> Instead:
    so = [least <= ratio <= most for ratio in ratios]
    found = f"{least:.3g} to {most:.3g} times as much as with the shorter quantum"
    return Instead(f"{found}, {told_by_seed(ratios, so)}", why, on_most_seeds(so))


CARRIES_MORE = (
    "a quantum of as many milliseconds as a burst brings tuples lets the slow operator work while "
    "tuples wait for the fast one"
)
FEW_QUANTA = "where operators take milliseconds a tuple, a short quantum is a tuple as well"


def _ratios(
    peaks: Peaks, name: str, workload: str, sentence: Sentence, variation: str
) -> list[float]:
    """The ratio of a sentence; who does not depend on what is varied is as in the figure."""
    usual = {each: peaks[name, workload, AS_DRAWN, each] for each in sentence.ratio[:2]}
    mine, theirs = (
        peaks.get((name, workload, variation, strategy), found) for strategy, found in usual.items()
    )
    return _over(mine, theirs)


EXPERIMENT = experiment(
    __name__, "Quanta and statistics windows", note=CHOSEN, seeds=SEEDS, long=True
)
