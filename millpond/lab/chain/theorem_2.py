"""Chain paper, Theorem 2: at most one unit of memory a query above the optimum, always.

With selectivities of at most one, Chain never needs more than one unit of memory a query above the
optimum, at any instant.

The bound of the proof is the memory of Chain on the lower envelopes, by Theorem 1 below every
schedule's; on small instances the true optimum is searched for.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.chain.instances import Instance, least_sizes, queue_sizes, random_instance
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.words import about

INSTANCES_A_SEED = 700
SEARCHED_A_SEED = 25
TIGHT_QUERIES = 20


def run(seeds: Sequence[int]) -> Tables:
    """The largest excess a query: over the bound of the proof, and over the true optimum."""
    bounded: dict[str, list[float]] = {"queries": [], "chain": [], "fifo": []}
    searched: dict[str, list[float]] = {"queries": [], "chain": []}
    for seed in seeds:
        generator = np.random.default_rng(1000 + seed)
        for _ in range(INSTANCES_A_SEED):
            queries = int(generator.integers(1, 5))
            instance = random_instance(generator, queries, operators=5, tuples=10)
            bound = queue_sizes(instance, "chain", on_envelope=True)
            bounded["queries"].append(queries)
            for strategy in ("chain", "fifo"):
                excess = queue_sizes(instance, strategy) - bound
                bounded[strategy].append(float(excess.max()) / queries)
        for number in range(SEARCHED_A_SEED):
            queries = 1 + number % 2
            instance = random_instance(generator, queries, operators=3, tuples=4, longest=2)
            excess = queue_sizes(instance, "chain") - least_sizes(instance)
            searched["queries"].append(queries)
            searched["chain"].append(float(excess.max()) / queries)
    return {"over the bound": bounded, "over the optimum": searched, "tight": _tight()}


def _tight() -> dict[str, list[float]]:
    """Each query's tuple comes when the last one's is all but done, and is a little steeper."""
    lengths = [2 * TIGHT_QUERIES - number for number in range(TIGHT_QUERIES)]
    times = np.cumsum([0, *(length - 1 for length in lengths[:-1])]).tolist()
    charts = tuple(((0.0, 1.0), (float(length), 0.0)) for length in lengths)
    instance = Instance(charts, tuple((time,) for time in times))
    above = queue_sizes(instance, "chain") - queue_sizes(instance, "fifo")
    return {"queries": [float(TIGHT_QUERIES)], "chain": [float(above.max()) / TIGHT_QUERIES]}


def plot(tables: Tables, figure: Figure) -> None:
    """The excess of every instance, sorted, with the theorem's limit."""
    axes = figure.subplots()
    bounded = tables["over the bound"]
    for strategy in ("chain", "fifo"):
        axes.plot(np.sort(bounded[strategy]), label=strategy)
    axes.axhline(1.0, color="black", ls="--", label="the theorem's limit")
    axes.set(xlabel="instances, sorted", ylabel="largest excess a query (tuples)")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Never more than one unit a query."""
    claims = []
    for name in ("over the bound", "over the optimum"):
        table = tables[name]
        worst, count = max(table["chain"]), len(table["chain"])
        text = f"largest excess of chain a query {name}, at any instant"
        measured = f"{worst:.3f} over {count} instances"
        claims.append(Claim(text, "at most 1", measured, worst <= 1 + 1e-9))
    tight, queries = tables["tight"]["chain"][0], tables["tight"]["queries"][0]
    text = "the bound is tight: excess of chain a query over fifo on an instance made for it"
    expected = (
        '"there exist cases where [it is] worse than the optimal strategy by [...] n": about 1'
    )
    measured = f"{tight:.3f}, {queries:g} queries"
    claims.append(Claim(text, expected, measured, about(tight, 1.0)))
    worst = max(tables["over the bound"]["fifo"])
    text = "fifo knows no such limit: its largest excess a query on the same instances"
    claims.append(Claim(text, "above 1", f"{worst:.2f}", worst > 1))
    return claims


EXPERIMENT = experiment(__name__, "Theorem 2: within one unit a query")
