"""Section 3.2 of the STREAM paper: when a common subexpression is worth sharing.

For common subexpressions without joins sharing always is preferable; with a join that puts out
nearly the cross product, and two readers of which one consumes much less than the other, it may be
suboptimal.

Two queries over one subexpression, drawn: two selections, or a join of which each tuple makes
eight; one reader is light, the other ten times as heavy. Shared it is done once, and its output
waits in one queue for the slower reader; apart it is done twice. Memory is the mean until all is
done.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.words import SAME
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate
from millpond.workloads import Poisson

STRATEGIES = ("chain", "greedy", "fifo", "round-robin")
DRAWS = 5
SECONDS = 10.0
LOAD = 1.2
"""Of what is done where nothing is shared: a burst."""
CROSS = 8.0
KINDS = ("selections", "join")


def run(seeds: Sequence[int]) -> Tables:
    """Memory and end, shared over apart, by kind of subexpression, strategy and draw."""
    rows = []
    for seed in seeds:
        generator = np.random.default_rng((32, seed))
        for draw in range(DRAWS):
            for kind in KINDS:
                rows += [(kind, *row) for row in _draw(generator, kind, 100 * seed + draw)]
    return {"shared over apart": table_of(("subexpression", "strategy", "memory", "end"), rows)}


def _draw(generator: np.random.Generator, kind: str, seed: int) -> list[tuple[str, float, float]]:
    first, second = generator.uniform(1e-3, 4e-3, 2).tolist()
    light = float(generator.uniform(1e-3, 3e-3))
    passes = float(generator.uniform(0.3, 1.0))
    made = [(first, passes), (second, CROSS if kind == "join" else 1.0)]
    readers = [light, 10 * light]
    work = _work(made, readers)
    arrivals = Poisson(LOAD / work).until(SECONDS, seed)
    found = []
    for name in STRATEGIES:
        together, apart = (
            _simulated(made, readers, name, arrivals, seed, shared) for shared in (True, False)
        )
        found.append(
            (
                name,
                together.memory.mean(apart.finished_seconds) / apart.mean_bytes,
                together.finished_seconds / apart.finished_seconds,
            )
        )
    return found


def _work(made: Sequence[tuple[float, float]], readers: Sequence[float]) -> float:
    (first, passes), (second, yields) = made
    common = first + passes * second
    return 2 * common + passes * yields * sum(readers)


def _simulated(
    made: Sequence[tuple[float, float]],
    readers: Sequence[float],
    name: str,
    arrivals: FloatArray,
    seed: int,
    shared: bool,
) -> Record:
    plan = SimulatedPlan()
    stream = plan.stream("s")
    below: list[int] = []
    for copy in range(1 if shared else len(readers)):
        at: int | str = stream
        for number, (cost, yields) in enumerate(made):
            at = plan.operator(f"{copy}.{number}", at, cost, yields)
        assert isinstance(at, int)  # noqa: S101
        below.append(at)
    for place, cost in enumerate(readers):
        source = below[0 if shared else place]
        plan.query(f"q{place}", plan.operator(f"reader{place}", source, cost))
    strategy = make(name, slice_seconds=0.01)
    return simulate(plan, strategy, {"s": arrivals}, Conditions(seed=seed))


def plot(tables: Tables, figure: Figure) -> None:
    """Memory shared over apart, a spot for each draw."""
    axes = figure.subplots()
    table = tables["shared over apart"]
    for kind in KINDS:
        chosen = [place for place, each in enumerate(table["subexpression"]) if each == kind]
        names = [table["strategy"][place] for place in chosen]
        axes.scatter(names, [table["memory"][place] for place in chosen], s=10, label=kind)
    axes.axhline(1.0, color="grey", lw=0.8)
    axes.set(ylabel="mean memory, shared over apart", yscale="log")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Never worse without a join; sometimes worse with one."""
    memory, ends = (
        {
            kind: [
                value
                for value, each in zip(
                    tables["shared over apart"][column],
                    tables["shared over apart"]["subexpression"],
                    strict=True,
                )
                if each == kind
            ]
            for kind in KINDS
        }
        for column in ("memory", "end")
    )
    plain = '"for common subexpressions without joins sharing always is preferable"'
    joined = '"subplan sharing may be suboptimal in the case of common subexpressions with joins"'
    worse = sum(each > 1 for each in memory["join"])
    return [
        Claim(
            "without a join: mean memory shared over apart, every draw and strategy",
            f"{plain}: below 1",
            f"{min(memory['selections']):.2f} to {max(memory['selections']):.2f}",
            max(memory["selections"]) < 1,
        ),
        Claim(
            "without a join: the end shared over apart, every draw and strategy",
            f"{plain}: at most {1 + SAME:g}",
            f"{min(ends['selections']):.2f} to {max(ends['selections']):.2f}",
            max(ends["selections"]) <= 1 + SAME,
        ),
        Claim(
            "with a join of many outputs: mean memory shared over apart",
            f"{joined}: above 1 on some",
            f"{min(memory['join']):.2f} to {max(memory['join']):.2f}, above 1 on {worse} of "
            f"{len(memory['join'])}",
            worse > 0,
        ),
    ]


EXPERIMENT = experiment(__name__, "Section 3.2, sharing a subexpression", seeds=4)
