"""Chain paper, section 4.2: a randomised strategy of Chain and FIFO, and how often Chain decides.

A randomised strategy combining Chain with FIFO might do well for a metric that takes into account
both memory and latency. In Chain decisions need to be made only when an operator has finished all
tuples in its input queue, or when new tuples arrive.

The queries of two and of four operators, with bursts. The metric is the product of mean queue size
and mean latency; FIFO is chosen with chances of a quarter, a half and three quarters.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from millpond.lab.chain import four_operators, two_operators
from millpond.lab.chain.bursts import CHOSEN, SEEDS, process
from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import on_most_seeds, told_by_seed
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Record, simulate

SECONDS = 20.0
QUERIES = {"two operators": two_operators.SETTING, "four operators": four_operators.SETTING}
SHARES = (0.25, 0.5, 0.75)
QUANTUM_SECONDS = 0.01
COLUMNS = ("memory", "latency")


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """Mean queue size and latency, by query, seed and strategy; and Chain's decisions."""
    rows: list[tuple[object, ...]] = []
    decisions: list[tuple[object, ...]] = []
    for query, setting in QUERIES.items():
        for seed in seeds:
            arrivals = process("bursts", setting.tuples_per_second["s"]).until(seconds, 100 * seed)
            shortened = replace(setting, seconds=seconds)
            for name, strategy in _strategies(seed).items():
                record = simulate(
                    shortened.plan(), strategy, {"s": arrivals}, Conditions(seed=seed)
                )
                rows.append((query, seed, name, record.mean_bytes, record.mean_latency_seconds))
            record = simulate(
                setting.plan(), make("chain"), {"s": arrivals}, Conditions(seed=seed, trace=True)
            )
            decisions.append((query, seed, *_decisions(record, arrivals)))
    names = ("query", "seed", "decisions", "elsewhere", "tuples served")
    return {
        "runs": table_of(("query", "seed", "strategy", *COLUMNS), rows),
        "decisions": table_of(names, decisions),
    }


def _strategies(seed: int) -> dict[str, Strategy]:
    made = {
        f"fifo-chain {share:g}": make(
            "fifo-chain", fifo_share=share, seed=seed, slice_seconds=QUANTUM_SECONDS
        )
        for share in SHARES
    }
    alone = {name: make(name, slice_seconds=QUANTUM_SECONDS) for name in ("chain", "fifo")}
    return {**alone, **made}


def _decisions(record: Record, arrivals: FloatArray) -> tuple[int, int, float]:
    """How many, and how many of them neither at an arrival nor where a queue became empty."""
    elsewhere = 0
    for before, step in pairwise(record.trace):
        came = np.searchsorted(arrivals, [before.start_seconds, step.start_seconds + 1e-9])
        elsewhere += bool(came[0] == came[1] and step.operator == before.operator)
    return len(record.trace), elsewhere, record.tuples_served


def plot(tables: Tables, figure: Figure) -> None:
    """The plane of memory and latency."""
    table = tables["runs"]
    for axes, query in zip(figure.subplots(1, len(QUERIES)), QUERIES, strict=True):
        for name in dict.fromkeys(table["strategy"]):
            of = {"query": query, "strategy": name}
            means = [np.mean(picked(table, column, of)) for column in COLUMNS]
            axes.scatter(*means, label=name)
        axes.set(xlabel="mean queue size", ylabel="mean latency (s)", title=query)
        axes.legend(fontsize=6)
    figure.tight_layout()


def check(tables: Tables) -> Sequence[Claim]:
    """The product against that of both parts; decisions."""
    return [
        *(_well(tables, query, share) for query in QUERIES for share in SHARES),
        *(_seldom(tables, query) for query in QUERIES),
    ]


def _products(tables: Tables, query: str, name: str) -> list[float]:
    of = {"query": query, "strategy": name}
    pairs = zip(*(picked(tables["runs"], column, of) for column in COLUMNS), strict=True)
    return [memory * latency for memory, latency in pairs]


def _well(tables: Tables, query: str, share: float) -> Claim:
    mine, chain, fifo = (
        _products(tables, query, name) for name in (f"fifo-chain {share:g}", "chain", "fifo")
    )
    ratios = [one / min(both) for one, *both in zip(mine, chain, fifo, strict=True)]
    so = [ratio <= 1 for ratio in ratios]
    return Claim(
        f"{query}, FIFO with a chance of {share:g}: memory times latency over the better part's",
        '"a randomized strategy combining chain with fifo might do well for a metric that takes '
        'into account both": at most 1',
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            "above the better part's",
            "what FIFO takes from Chain in memory is more than what it gives in latency; tuples "
            "that Chain has left half-way are the last that FIFO would serve",
            on_most_seeds([ratio > 1 for ratio in ratios]),
        ),
    )


def _seldom(tables: Tables, query: str) -> Claim:
    of = {"query": query}
    decisions, elsewhere, served = (
        sum(picked(tables["decisions"], column, of))
        for column in ("decisions", "elsewhere", "tuples served")
    )
    return Claim(
        f"{query}: decisions of Chain with tuples left in the queue and none that came",
        '"only when an operator finishes processing all tuples in its input queue, or when a new '
        'block of tuples arrives": 0',
        f"{elsewhere:g} of {decisions:g}, for {served:,.0f} tuples served",
        elsewhere == 0,
    )


EXPERIMENT = experiment(__name__, "A randomised strategy, and decisions", note=CHOSEN, seeds=SEEDS)
