"""Chain paper, Theorem 1: on lower envelopes Chain is optimal at every instant.

When tuples move along lower envelopes, no schedule, not even one that knows the future, needs less
memory than Chain at any instant (checked against exhaustive search).
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.chain.instances import least_sizes, queue_sizes, random_instance
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of

INSTANCES_A_SEED = 60
STRATEGIES = ("chain", "greedy", "fifo", "round-robin")


def run(seeds: Sequence[int]) -> Tables:
    """For each instance the largest excess over the optimum at any instant, by strategy."""
    rows = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for number in range(INSTANCES_A_SEED):
            queries = 1 + number % 2
            instance = random_instance(generator, queries, operators=3, tuples=4, longest=2)
            least = least_sizes(instance, on_envelope=True)
            sizes = [queue_sizes(instance, each, on_envelope=True) for each in STRATEGIES]
            excess = [float((size - least).max()) for size in sizes]
            rows.append((seed * INSTANCES_A_SEED + number, len(least), *excess))
    return {"excess": table_of(("instance", "instants", *STRATEGIES), rows)}


def plot(tables: Tables, figure: Figure) -> None:
    """The excess of every instance, sorted."""
    axes = figure.subplots()
    for strategy in STRATEGIES:
        axes.plot(np.sort(tables["excess"][strategy]), label=strategy)
    axes.set(xlabel="instances, sorted", ylabel="largest excess over the optimum (tuples)")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Chain is never above the exhaustive optimum; FIFO and Round-robin are."""
    table = tables["excess"]
    count, instants = len(table["instance"]), int(sum(table["instants"]))
    worst = max(table["chain"])
    measured = f"{worst:.1e} over {count} instances, {instants} instants"
    claims = [Claim("largest excess of chain over the optimum", "0", measured, worst < 1e-9)]
    greedy = max(table["greedy"])
    text = "greedy, for which every unit of an envelope is its own operator, does the same"
    claims.append(Claim(text, "0", f"{greedy:.1e}", greedy < 1e-9))
    for strategy in ("fifo", "round-robin"):
        other = max(table[strategy])
        above = sum(excess > 1e-9 for excess in table[strategy])
        measured = f"{other:.2f} at worst, above the optimum in {above} of {count}"
        text = f"{strategy} on the same instances is not optimal"
        claims.append(Claim(text, "above 0", measured, other > 1e-9))
    return claims


EXPERIMENT = experiment(__name__, "Theorem 1: optimal on lower envelopes")
