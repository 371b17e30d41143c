"""Chain paper, section 6.1: queue sizes over time, not only their peaks.

With two operators Chain and Greedy have almost identical performance and FIFO performs badly; with
four Greedy performs badly as compared to Chain. The figures show curves over time.

The queries of two and of four operators, with bursts, looked at every 50 ms: means over time, and
the share of the instants at which Chain's queue is not longer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from millpond.lab.chain import four_operators, two_operators
from millpond.lab.chain.bursts import CHOSEN, SEEDS, Setting, process
from millpond.lab.chain.sentences import STRATEGIES
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.sentences import Otherwise, Sentence, judged, measured
from millpond.lab.words import CLEARLY, MOST_SEEDS, MUCH, SAME
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, simulate

SECONDS, STEP_SECONDS = 30.0, 0.05
QUERIES: Mapping[str, Setting] = {
    "two operators": two_operators.SETTING,
    "four operators": four_operators.SETTING,
}
Curves = Mapping[str, FloatArray]
"""Queue sizes over time, by strategy."""


def ratio(name: str, other: str) -> Callable[[Curves], float]:
    """A strategy's mean over another's."""
    return lambda curves: float(curves[name].mean() / curves[other].mean())


def not_longer(name: str) -> Callable[[Curves], float]:
    """The share of the instants at which Chain's queue is not longer, but for 1 % and a tuple."""
    return lambda curves: float((curves["chain"] <= (1 + SAME) * curves[name] + 1).mean())


ORDER = Otherwise("by less on average over time than at the peak", 1.0)
SENTENCES: Mapping[str, Sequence[Sentence[Curves]]] = {
    "two operators": (
        Sentence(
            "we observe that chain and greedy have almost identical performance",
            "mean queue size of Greedy over Chain's",
            ratio("greedy", "chain"),
            1 - SAME,
            1 + SAME,
        ),
        Sentence(
            "round-robin performs almost as well as chain",
            "mean queue size of Round-robin over Chain's",
            ratio("round-robin", "chain"),
            most=CLEARLY,
            otherwise=ORDER,
        ),
        Sentence(
            "fifo performs badly with respect to chain",
            "mean queue size of FIFO over Chain's",
            ratio("fifo", "chain"),
            MUCH,
            otherwise=ORDER,
        ),
        Sentence(
            "fifo performs badly with respect to chain",
            "share of the instants at which Chain's queue is not longer than FIFO's",
            not_longer("fifo"),
            MOST_SEEDS,
            otherwise=Otherwise("between bursts both are short", 0.5),
        ),
    ),
    "four operators": (
        Sentence(
            "greedy is expected to perform badly as compared to chain. indeed, we observe this",
            "mean queue size of Greedy over Chain's",
            ratio("greedy", "chain"),
            MUCH,
            otherwise=ORDER,
        ),
        Sentence(
            "greedy is expected to perform badly as compared to chain. indeed, we observe this",
            "share of the instants at which Chain's queue is not longer than Greedy's",
            not_longer("greedy"),
            MOST_SEEDS,
            otherwise=Otherwise("between bursts both are short", 0.5),
        ),
    ),
}


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """What each sentence measures, by query and seed; and the curves of the first seed."""
    tables: dict[str, Mapping[str, object]] = {}
    for query, setting in QUERIES.items():
        curves = [_curves(replace(setting, seconds=seconds), seed) for seed in seeds]
        tables[query] = measured(SENTENCES[query], curves)
        times = np.arange(0.0, seconds, STEP_SECONDS)
        tables[f"{query}, curves"] = {"seconds": times, **curves[0]}
    return tables


def _curves(setting: Setting, seed: int) -> Curves:
    rate = setting.tuples_per_second["s"]
    arrivals = {"s": process("bursts", rate).until(setting.seconds, 100 * seed)}
    times = np.arange(0.0, setting.seconds, STEP_SECONDS)
    found = {}
    for name in STRATEGIES:
        strategy = make(name, slice_seconds=setting.quantum_seconds)
        record = simulate(setting.plan(), strategy, arrivals, Conditions(seed=seed))
        found[name] = record.memory.at(times)
    return found


def plot(tables: Tables, figure: Figure) -> None:
    """The curves."""
    for axes, query in zip(figure.subplots(len(QUERIES), 1), QUERIES, strict=True):
        table = tables[f"{query}, curves"]
        for name in STRATEGIES:
            axes.plot(table["seconds"], table[name], label=name, lw=1)
        axes.set(ylabel=query, xlabel="seconds")
        axes.legend(fontsize=7)


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return [
        claim
        for query, sentences in SENTENCES.items()
        for claim in judged(sentences, tables[query], f"{query}: ")
    ]


EXPERIMENT = experiment(__name__, "Queue sizes over time", note=CHOSEN, seeds=SEEDS)
