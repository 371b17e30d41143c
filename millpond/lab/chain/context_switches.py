"""Chain paper, "context switching overhead": how often each strategy changes operators.

Chain, which leaves an operator only when its queue is empty or a steeper chain has work, switches
less often than FIFO (tuple by tuple), Round-robin (by time quantum) and Greedy.

How often it switches depends on what is served at a time, so the sentence is looked at with FIFO
tuple by tuple and Round-robin by quanta of 10 ms, and with both serving all that waits. Chain and
Greedy serve a queue until it is empty and, among equal slopes, stay with the operator that ran last
(`stay`).
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TypeAlias

import numpy as np

from millpond.lab.chain import (
    four_operators,
    stored_join,
    three_queries,
    two_operators,
    window_join,
)
from millpond.lab.chain.bursts import QUANTUM_SECONDS, SEEDS, Setting, process
from millpond.lab.experiment import Claim, Figure, Instead, Table, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import nearly, on_most_seeds, told_by_seed
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import simulate

QUERIES = {
    "two operators": two_operators.SETTING,
    "four operators": four_operators.SETTING,
    "stored join": stored_join.PLAIN_SETTING,
    "window join": window_join.PLAIN_SETTING,
    "three queries": three_queries.PLAIN_SETTING,
}
CHAIN = "chain"
STAYING: dict[str, object] = {"stay": True}
ONE_BY_ONE, ALL_THAT_WAITS = "tuple by tuple or quantum", "all that waits"
Services: TypeAlias = Mapping[str, Mapping[str, Mapping[str, object]]]
SERVICES: Services = {
    ONE_BY_ONE: {
        "fifo": {"max_tuples": 1},
        "round-robin": {"slice_seconds": QUANTUM_SECONDS},
    },
    ALL_THAT_WAITS: {"fifo": {}, "round-robin": {}, "greedy": STAYING},
}
"""What the others serve at a time; Chain, as Greedy, serves until a queue is empty."""
SECONDS = 15.0
FEWER = '"chain makes fewer context switches as compared to fifo, greedy, or round-robin"'


def run(seeds: Sequence[int]) -> Tables:
    """Context switches a thousand tuples, by query, service, strategy and seed."""
    rows = []
    for query, setting in QUERIES.items():
        for seed in seeds:
            arrivals = {
                name: process("bursts", rate).until(SECONDS, 100 * seed + place)
                for place, (name, rate) in enumerate(setting.tuples_per_second.items())
            }
            chain = _switches(setting, CHAIN, STAYING, arrivals)
            for service, rivals in SERVICES.items():
                for name, settings in rivals.items():
                    theirs = _switches(setting, name, settings, arrivals)
                    rows.append((query, service, name, seed, chain, theirs))
    return {"switches": table_of(("query", "service", "strategy", "seed", CHAIN, "theirs"), rows)}


def _switches(
    setting: Setting, name: str, settings: Mapping[str, object], arrivals: Mapping[str, FloatArray]
) -> float:
    record = simulate(setting.plan(), make(name, **settings), arrivals)
    return 1000 * record.context_switches / sum(len(times) for times in arrivals.values())


def plot(tables: Tables, figure: Figure) -> None:
    """Bars, a group for each query."""
    axes = figure.subplots()
    table, queries = tables["switches"], list(dict.fromkeys(tables["switches"]["query"]))
    places = np.arange(len(queries))
    rivals = [(service, name) for service, rivals in SERVICES.items() for name in rivals]
    width = 0.8 / (1 + len(rivals))
    for offset, (service, name) in enumerate([(ALL_THAT_WAITS, CHAIN), *rivals]):
        heights = [_mean(table, query, service, name) for query in queries]
        label = name if name == CHAIN else f"{name}, {service}"
        axes.bar(places + width * offset, heights, width=width, label=label)
    axes.set_xticks(places + 0.3, queries)
    axes.set(ylabel="context switches per 1,000 tuples", yscale="log")
    axes.legend(fontsize=7)


def _mean(table: Table, query: str, service: str, name: str) -> float:
    of = {"query": query, "service": service}
    if name == CHAIN:
        return float(np.mean(picked(table, CHAIN, of)))
    return float(np.mean(picked(table, "theirs", {**of, "strategy": name})))


def check(tables: Tables, services: Services = SERVICES) -> Sequence[Claim]:
    """Chain below each of the others, for every query and service."""
    queries = dict.fromkeys(tables["switches"]["query"])
    return [
        _fewer(tables["switches"], query, service, name)
        for query in queries
        for service, rivals in services.items()
        for name in rivals
    ]


def _fewer(table: Table, query: str, service: str, name: str) -> Claim:
    of = {"query": query, "service": service, "strategy": name}
    pairs = zip(picked(table, CHAIN, of), picked(table, "theirs", of), strict=True)
    ratios = [mine / theirs for mine, theirs in pairs]
    so = [ratio < 1 for ratio in ratios]
    never = not any(so)
    return Claim(
        f"{query}, {service}: context switches of chain over those of {name}",
        f"{FEWER}: below 1",
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            "chain switches no less often on any seed" if never else "now fewer, now more",
            PILES_UP if name == "greedy" else SERVED_ALIKE,
            never or nearly(median(ratios), 1.0),
        ),
    )


PILES_UP = (
    "served alike, until a queue is empty or a steeper operator has work, Greedy lets work pile up "
    "before its unproductive operators and then does it in one go (with two operators they are the "
    "same)"
)
SERVED_ALIKE = (
    "whoever serves all that waits carries whole bursts from operator to operator; Chain goes back "
    "to its steepest chain with each tuple that comes"
)


EXPERIMENT = experiment(__name__, "Context switches", seeds=SEEDS, long=True)
