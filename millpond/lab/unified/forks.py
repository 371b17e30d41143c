"""Forks on a shared stream for the Unified paper's Figure 9, of drawn costs and sizes.

What the text says of its example, whose numbers are not printed, is said here in slopes, apart from
the code that partitions.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from millpond.lab.unified.small_instances import SmallInstance, tree
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.strategy import Strategy
from millpond.simulator import SimulatedPlan, Simulation


class Fork(NamedTuple):
    """Operators by what they read, their seconds a tuple, and the bytes of what they make."""

    parents: tuple[int | str, ...]
    costs: tuple[float, ...]
    sizes: tuple[float, ...]

    @property
    def branches(self) -> list[list[int]]:
        """The operators of each branch."""
        found: list[list[int]] = []
        for place, parent in enumerate(self.parents):
            if parent == "s":
                found.append([])
            found[-1].append(place)
        return found

    @property
    def first(self) -> set[int]:
        """The first operators of the branches."""
        return {branch[0] for branch in self.branches}

    def instance(self, count: int) -> SmallInstance:
        """So many tuples before it."""
        return tree(self.parents, self.costs, count, self.sizes)

    def snapshot(self) -> PlanSnapshot:
        """Its plan."""
        plan = SimulatedPlan()
        plan.stream("s")
        for place, parent in enumerate(self.parents):
            plan.operator(
                f"O{place + 1}", parent, self.costs[place], output_bytes=self.sizes[place]
            )
        return Simulation(plan, {"s": [0.0]}).plan()

    def best_rate(self) -> float:
        """The most memory a second that any beginning of it frees, found by trying all."""
        lengths = (range(len(branch) + 1) for branch in self.branches)
        return max(self._rate(taken) for taken in product(*lengths) if any(taken))

    def _rate(self, taken: Sequence[int]) -> float:
        """Of so many operators of each branch; the shared tuple goes when all have one."""
        freed, seconds = float(all(taken)), 0.0
        for branch, count in zip(self.branches, taken, strict=True):
            seconds += sum(self.costs[place] for place in branch[:count])
            if 0 < count < len(branch):
                freed -= self.sizes[branch[count - 1]]
        return freed / seconds


def forks_of_figure_9(seeds: Sequence[int], count: int) -> Iterator[Fork]:
    """Two branches of two operators; as in the text O4 frees its tuple faster than O2."""
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for _ in range(count):
            t1, t2, t3, t4 = np.exp2(generator.uniform(-2, 4, 4)).tolist()
            s1, s3 = generator.random(2).tolist()
            if s3 / t4 > s1 / t2:
                yield Fork(("s", 0, "s", 2), (t1, t2, t3, t4), (s1, 1.0, s3, 1.0))


def said(fork: Fork) -> str:
    """The partitions by the text: first operators, joined by what frees memory faster than they."""
    (t1, t2, t3, t4), (s1, _, s3, _) = fork.costs, fork.sizes
    if s3 / t4 <= (1 - s1 - s3) / (t1 + t3):
        return "O1+O3 | O4 | O2"
    if s1 / t2 <= (1 - s1) / (t1 + t3 + t4):
        return "O1+O3+O4 | O2"
    return "O1+O2+O3+O4"


def random_forks(seeds: Sequence[int], count: int) -> list[Fork]:
    """Two or three branches of one to three operators on a shared stream."""
    found = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for _ in range(count):
            parents: list[int | str] = []
            for _ in range(int(generator.integers(2, 4))):
                length = int(generator.integers(1, 4 if len(parents) < 3 else 2))
                parents += ["s", *range(len(parents), len(parents) + length - 1)]
            costs = generator.integers(1, 13, len(parents)).astype(float).tolist()
            sizes = generator.random(len(parents)).tolist()
            found.append(Fork(tuple(parents), tuple(costs), tuple(sizes)))
    return found


def freed_by_first_operators(fork: Fork, strategy: Strategy) -> list[float]:
    """What the queues lose at the end of each first operator's step, for one tuple, in order."""
    record = fork.instance(1).simulate(strategy)
    ends = [step for step in record.trace if step.operator in fork.first]
    before = [record.memory.at(step.start_seconds + 1e-6) for step in ends]
    after = [record.memory.at(step.end_seconds + 1e-6) for step in ends]
    return [float(one - other) for one, other in zip(before, after, strict=True)]
