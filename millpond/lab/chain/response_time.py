"""Chain paper, "comparison with other strategies": response times and throughput.

FIFO is a good strategy to minimise the overall response time of tuples; all strategies have the
same throughput over time, but during bursts FIFO momentarily produces more result tuples.

Queries and loads are those of the figures of queue size, with bursts for 15 s and then none. A
burst is over when the input is. FIFO serves tuple by tuple, as in the paper's definition of it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.chain.bursts import SEEDS, Setting, process
from millpond.lab.chain.context_switches import QUERIES
from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY, SAME, on_most_seeds, told_by_seed
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, simulate

SECONDS = 15.0
FIFO = "fifo"
RIVALS = ("chain", "greedy", "round-robin")
SERVICE: Mapping[str, Mapping[str, object]] = {
    FIFO: {"max_tuples": 1},
    **{name: {"slice_seconds": 0.01} for name in RIVALS},
}
COLUMNS = ("mean latency", "outputs", "results by the end of the bursts")


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """Mean latency, outputs in the end and when the input ends, by query, strategy and seed."""
    rows: list[tuple[object, ...]] = []
    for query, setting in QUERIES.items():
        for seed in seeds:
            arrivals = {
                name: process("bursts", rate).until(seconds, 100 * seed + place)
                for place, (name, rate) in enumerate(setting.tuples_per_second.items())
            }
            rows += [
                (query, seed, name, *_measured(setting, name, arrivals, seed)) for name in SERVICE
            ]
    return {"runs": table_of(("query", "seed", "strategy", *COLUMNS), rows)}


def _measured(
    setting: Setting, name: str, arrivals: Mapping[str, FloatArray], seed: int
) -> tuple[float, float, float]:
    strategy = make(name, **SERVICE[name])
    record = simulate(setting.plan(), strategy, arrivals, Conditions(seed=seed))
    last = max(float(times[-1]) for times in arrivals.values())
    inside = int((record.output_seconds <= last).sum())
    return record.mean_latency_seconds, record.outputs, inside


def plot(tables: Tables, figure: Figure) -> None:
    """Mean latency over FIFO's, a group of bars for each query."""
    axes = figure.subplots()
    for offset, rival in enumerate(RIVALS):
        ratios = [np.mean(_ratios(tables, query, rival, COLUMNS[0])) for query in QUERIES]
        axes.bar(np.arange(len(ratios)) + 0.25 * offset, ratios, width=0.25, label=rival)
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set_xticks(np.arange(len(QUERIES)) + 0.25, list(QUERIES))
    axes.set_ylabel("mean latency over FIFO's")
    axes.legend()


def _ratios(tables: Tables, query: str, rival: str, column: str) -> list[float]:
    theirs, ours = (
        picked(tables["runs"], column, {"query": query, "strategy": name}) for name in (rival, FIFO)
    )
    return [
        other / max(one, 1) if column != COLUMNS[0] else other / one
        for one, other in zip(ours, theirs, strict=True)
    ]


def check(tables: Tables) -> Sequence[Claim]:
    """FIFO's latency is the least, outputs are equal in the end, and FIFO's come first."""
    queries = dict.fromkeys(tables["runs"]["query"])
    return [
        *(_latency(tables, query, rival) for query in queries for rival in RIVALS),
        *(_equal(tables, query) for query in queries),
        *(_ahead(tables, query, rival) for query in queries for rival in RIVALS),
    ]


def _latency(tables: Tables, query: str, rival: str) -> Claim:
    ratios = _ratios(tables, query, rival, COLUMNS[0])
    so = [ratio >= 1 - SAME for ratio in ratios]
    return Claim(
        f"{query}: mean latency of {rival} over FIFO's",
        f'"fifo is a good strategy to minimize the overall response time": at least {1 - SAME:g}',
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            "not clearly below FIFO's",
            "FIFO answers in order; who serves short queries first is ahead on average",
            on_most_seeds([ratio >= 1 / CLEARLY for ratio in ratios]),
        ),
    )


def _equal(tables: Tables, query: str) -> Claim:
    columns = [
        picked(tables["runs"], "outputs", {"query": query, "strategy": name}) for name in SERVICE
    ]
    so = [len(set(each)) == 1 for each in zip(*columns, strict=True)]
    return Claim(
        f"{query}: outputs in the end of {', '.join(SERVICE)}",
        '"we would expect throughput to be the same over time": equal on every seed',
        f"on {sum(so)} of {len(so)} seeds",
        all(so),
    )


def _ahead(tables: Tables, query: str, rival: str) -> Claim:
    ratios = _ratios(tables, query, rival, COLUMNS[2])
    so = [ratio <= 1 for ratio in ratios]
    return Claim(
        f"{query}: results by the end of the bursts, {rival}'s over FIFO's",
        '"during bursts  fifo would momentarily produce more result tuples": at most 1',
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            "within 1 % on all seeds", "both have worked off what came", max(ratios) <= 1 + SAME
        ),
    )


EXPERIMENT = experiment(__name__, "Response times and throughput", seeds=SEEDS, long=True)
