"""Chain paper, "context switching overhead": how often each strategy changes operators.

Chain, which leaves an operator only when its queue is empty or a steeper chain has work, switches
less often than FIFO (tuple by tuple), Round-robin (by time quantum) and Greedy.

The discipline is the one the paper describes: Chain and Greedy serve a queue until it is empty and,
among equal slopes, stay with the operator that ran last (`stay`). Asked once a quantum of 10 ms,
with ties to the oldest tuple, Chain changed operators 1.6 to 7.6 times as often (one seed). Charts
and loads as in the figures of queue size, chosen by us.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.chain import (
    four_operators,
    stored_join,
    three_queries,
    two_operators,
    window_join,
)
from millpond.lab.chain.bursts import QUANTUM_SECONDS, process
from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.scheduling.registry import make
from millpond.simulator import simulate

QUERIES = {
    "two operators": two_operators.SETTING,
    "four operators": four_operators.SETTING,
    "stored join": stored_join.SETTING,
    "window join": window_join.SETTING,
    "three queries": three_queries.SETTING,
}
DISCIPLINES: dict[str, dict[str, object]] = {
    "chain": {"stay": True},
    "greedy": {"stay": True},
    "round-robin": {"slice_seconds": QUANTUM_SECONDS},
    "fifo": {"max_tuples": 1},
}
SECONDS = 30.0
FEWER = '"chain makes fewer context switches as compared to fifo, greedy, or round-robin"'


def run(seeds: Sequence[int]) -> Tables:
    """Context switches a thousand tuples, by query and strategy, averaged over the seeds."""
    table: dict[str, list[object]] = {"query": list(QUERIES)}
    for strategy, settings in DISCIPLINES.items():
        column: list[object] = []
        for setting in QUERIES.values():
            counts = []
            for seed in seeds:
                arrivals = {
                    name: process("bursts", rate).until(SECONDS, 100 * seed + place)
                    for place, (name, rate) in enumerate(setting.tuples_per_second.items())
                }
                record = simulate(setting.plan(), make(strategy, **settings), arrivals)
                tuples = sum(len(times) for times in arrivals.values())
                counts.append(1000 * record.context_switches / tuples)
            column.append(float(np.mean(counts)))
        table[strategy] = column
    return {"switches": table}


def plot(tables: Tables, figure: Figure) -> None:
    """Bars, a group for each query."""
    axes = figure.subplots()
    table = tables["switches"]
    places = np.arange(len(table["query"]))
    for offset, strategy in enumerate(DISCIPLINES):
        axes.bar(places + 0.2 * offset, table[strategy], width=0.2, label=strategy)
    axes.set_xticks(places + 0.3, table["query"])
    axes.set(ylabel="context switches per 1,000 tuples", yscale="log")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Chain below FIFO, Round-robin and, says the paper, Greedy, for every query."""
    table = tables["switches"]
    claims = []
    for place, query in enumerate(table["query"]):
        chain = table["chain"][place]
        for other in ("fifo", "round-robin", "greedy"):
            theirs = table[other][place]
            text = f"{query}: context switches of chain over those of {other}"
            measured = f"{chain / theirs:.2f} ({chain:.0f} / {theirs:.0f} per 1,000 tuples)"
            instead = _no_more_often(theirs, chain) if other == "greedy" else None
            claims.append(Claim(text, f"{FEWER}: below 1", measured, chain < theirs, instead))
    return claims


def _no_more_often(greedy: float, chain: float) -> Instead:
    return Instead(
        "greedy switches no more often than chain",
        "served alike, until a queue is empty or a steeper operator has work, Greedy lets work "
        "pile up before its unproductive operators and then does it in one go (with two "
        "operators they are the same)",
        greedy <= chain,
    )


EXPERIMENT = experiment(__name__, "Context switches")
