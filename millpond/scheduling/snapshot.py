"""What strategies see: a read-only picture of the running plan.

`PlanSnapshot` holds what changes seldom (structure, measured statistics); `Observation` holds what
changes with every step (queues, readiness), and only for the operators that changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.errors import StrategyError

FloatArray: TypeAlias = npt.NDArray[np.float64]

Producer: TypeAlias = int | str
"""What an input reads: an operator, by its id, or a stream, by its name."""


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """A query that an operator works for, with the weight its owner gave it."""

    name: str
    weight: float = 1.0


@dataclass(frozen=True)
class PartitionSnapshot:
    """A partition that a user has made: operators that some threads execute by one strategy."""

    name: str
    strategy: str = "fifo"
    settings: Mapping[str, object] = field(default_factory=dict)
    threads: int = 1
    priority: float = 1.0


@dataclass(frozen=True, slots=True)
class InputSnapshot:
    """One input of an operator: where it comes from and what its tuples cost and yield there."""

    source: Producer
    cost_seconds: float
    selectivity: float
    tuple_bytes: float = 1.0
    tuples_per_second: float = 1.0

    @property
    def stream(self) -> str | None:
        """The stream read here, or None behind an operator."""
        return self.source if isinstance(self.source, str) else None

    @property
    def upstream(self) -> int | None:
        """The operator read here, or None behind a stream."""
        return self.source if isinstance(self.source, int) else None


@dataclass(frozen=True)
class OperatorSnapshot:
    """One schedulable operator: its place in the plan and its measured averages.

    A step over n tuples takes `step_cost_seconds + n * cost_seconds` and yields n * `selectivity`
    tuples. With several inputs the averages weigh each input by its rate (Chain paper, multi-stream
    queries).

        >>> left = InputSnapshot("R", cost_seconds=1.0, selectivity=0.5, tuples_per_second=3.0)
        >>> right = InputSnapshot("S", cost_seconds=2.0, selectivity=1.5, tuples_per_second=1.0)
        >>> join = OperatorSnapshot(0, "join", (left, right))
        >>> join.cost_seconds, join.selectivity
        (1.25, 0.75)
    """

    id: int
    name: str
    inputs: tuple[InputSnapshot, ...]
    downstream: tuple[int, ...] = ()
    queries: tuple[WeightedQuery, ...] = ()
    output_bytes: float = 1.0
    step_cost_seconds: float = 0.0
    delivers: bool = False
    members: tuple[str, ...] = ()
    partition: str = ""
    """The partition that a user has put it in; empty if none."""

    def __post_init__(self) -> None:
        if not self.inputs:
            raise StrategyError(
                f'operator "{self.name}" has no input; give it a stream or operator'
            )

    @cached_property
    def tuples_per_second(self) -> float:
        """Tuples a second over all inputs."""
        return sum(each.tuples_per_second for each in self.inputs)

    @cached_property
    def cost_seconds(self) -> float:
        """Mean time for one more tuple."""
        return self._mean([each.cost_seconds for each in self.inputs])

    @cached_property
    def selectivity(self) -> float:
        """Mean number of output tuples for one input tuple."""
        return self._mean([each.selectivity for each in self.inputs])

    @cached_property
    def input_bytes(self) -> float:
        """Mean size of an input tuple."""
        return self._mean([each.tuple_bytes for each in self.inputs])

    @cached_property
    def upstream(self) -> tuple[int, ...]:
        """The operators this one reads."""
        found = (each.source for each in self.inputs if isinstance(each.source, int))
        return tuple(dict.fromkeys(found))

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams this one reads."""
        found = (each.source for each in self.inputs if isinstance(each.source, str))
        return tuple(dict.fromkeys(found))

    def bytes_from(self, source: Producer) -> float:
        """Size of a tuple that comes from a stream or operator."""
        return next(each.tuple_bytes for each in self.inputs if each.source == source)

    @property
    def is_output(self) -> bool:
        """Whether its output tuples leave the system."""
        return self.delivers or not self.downstream

    @property
    def queued_output_bytes(self) -> float:
        """Size of an output tuple in a queue: zero when nobody but the application reads it."""
        return self.output_bytes if self.downstream else 0.0

    @cached_property
    def weight(self) -> float:
        """Mean weight of the queries served, so that equal weights change nothing."""
        if not self.queries:
            return 1.0
        return sum(query.weight for query in self.queries) / len(self.queries)

    def _mean(self, values: Sequence[float]) -> float:
        rate = self.tuples_per_second
        if len(values) == 1 or rate <= 0:
            return sum(values) / len(values)
        pairs = zip(self.inputs, values, strict=True)
        return sum(each.tuples_per_second * value for each, value in pairs) / rate


@dataclass(frozen=True, slots=True)
class OperatorPath:
    """The operators a tuple passes on one way from its stream to an output."""

    stream: str
    operators: tuple[int, ...]


@dataclass(frozen=True)
class PlanSnapshot:
    """The structure and statistics of the running plan.

    `structure` changes when operators come, go or are joined differently; new statistics alone keep
    it. After queues were placed the operators are virtual ones, and `unfused` is the plan of the
    elementary operators.
    """

    operators: tuple[OperatorSnapshot, ...]
    structure: int = 0
    unfused: PlanSnapshot | None = None
    partitions: tuple[PartitionSnapshot, ...] = ()
    """Those that users have made."""

    @cached_property
    def by_id(self) -> Mapping[int, OperatorSnapshot]:
        """Operators by their id."""
        return {operator.id: operator for operator in self.operators}

    @cached_property
    def upstream_first(self) -> tuple[int, ...]:
        """All ids, each operator behind those it reads."""
        pending = {each.id: len(each.upstream) for each in self.operators}
        order = [identity for identity, count in pending.items() if count == 0]
        for identity in order:
            for reader in self.by_id[identity].downstream:
                pending[reader] -= 1
                if pending[reader] == 0:
                    order.append(reader)
        if len(order) < len(self.operators):
            raise StrategyError("the plan has a cycle or an operator that reads an unknown one")
        return tuple(order)

    @cached_property
    def depth(self) -> Mapping[int, int]:
        """Operators passed before reaching each, on the longest way."""
        depth: dict[int, int] = {}
        for identity in self.upstream_first:
            above = self.by_id[identity].upstream
            depth[identity] = 1 + max((depth[each] for each in above), default=-1)
        return depth


class WaitingTuples(NamedTuple):
    """What a clairvoyant runtime knows of each waiting tuple, in queue order."""

    cost_seconds: FloatArray
    outputs: FloatArray


class OperatorState(NamedTuple):
    """An operator's queues now (a NamedTuple because millions are made).

    `ready` says that a step would make progress: something waits, and, with several inputs, none
    that must come first can still arrive. A running operator is not ready.
    """

    operator: int
    queued_tuples: float = 0.0
    queued_bytes: float = 0.0
    oldest_arrival_seconds: float = math.inf
    ready: bool = False
    running: bool = False
    waiting: WaitingTuples | None = None


class Observation(NamedTuple):
    """The operators that changed since the last one, and the queue memory of the whole plan."""

    now_seconds: float
    changed: Sequence[OperatorState]
    queue_bytes: float = 0.0
