"""Simulated plans: streams, operators, joins, unions and queries, put together by hand.

>>> plan = SimulatedPlan()
>>> packets = plan.stream("packets")
>>> narrow = plan.operator("narrow", packets, cost_seconds=1.0, selectivity=0.2)
>>> plan.query("q", plan.operator("slow", narrow, cost_seconds=5.0))
>>> [operator.name for operator in plan.operators]
['narrow', 'slow']
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from millpond.errors import StrategyError
from millpond.scheduling.charts.progress_chart import check_chart
from millpond.scheduling.snapshot import Producer
from millpond.simulator.distributions import Distribution, check_mean


@dataclass(frozen=True)
class Window:
    """What a join keeps of each input: the last `seconds`, or the last `rows`.

    A tuple matches each tuple of the other window with `match_probability`. Nested loops cost
    `probe_seconds` for each of them, a hash join `match_seconds` for each that it finds.
    """

    seconds: float | None = None
    rows: int | None = None
    match_probability: float = 0.0
    probe_seconds: float = 0.0
    match_seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.rows is None):
            raise StrategyError("a window needs either seconds or rows")


@dataclass(frozen=True)
class SimulatedInput:
    """One input of an operator, with what its tuples cost and yield there."""

    source: Producer
    cost_seconds: float | Distribution
    selectivity: float | Distribution


@dataclass(frozen=True)
class SimulatedOperator:
    """One operator; with several `ordered` inputs it serves them in strict order of time."""

    id: int
    name: str
    inputs: tuple[SimulatedInput, ...]
    output_bytes: float
    step_cost_seconds: float = 0.0
    ordered: bool = True
    window: Window | None = None


class SimulatedPlan:
    """Streams and operators under construction; later parts read earlier ones."""

    def __init__(self) -> None:
        self.streams: dict[str, float] = {}
        self.operators: list[SimulatedOperator] = []
        self.queries: dict[str, tuple[int, float]] = {}

    def stream(self, name: str, tuple_bytes: float = 1.0) -> str:
        """Declare a stream; its name is what operators read."""
        if name in self.streams:
            raise StrategyError(f'stream "{name}" exists already; choose another name')
        self.streams[name] = tuple_bytes
        return name

    def operator(
        self,
        name: str,
        source: Producer,
        cost_seconds: float | Distribution,
        selectivity: float | Distribution = 1.0,
        output_bytes: float | None = None,
        step_cost_seconds: float = 0.0,
    ) -> int:
        """Add an operator with one input; returns its id, which others can read."""
        inputs = (SimulatedInput(source, cost_seconds, selectivity),)
        return self.add(name, inputs, output_bytes, step_cost_seconds, True, None)

    def join(
        self,
        name: str,
        left: Producer,
        right: Producer,
        cost_seconds: float | tuple[float, float],
        selectivity: float | tuple[float, float] = 1.0,
        output_bytes: float | None = None,
        window: Window | None = None,
    ) -> int:
        """Add a join; costs and selectivities may differ by the side a tuple comes from."""
        costs = cost_seconds if isinstance(cost_seconds, tuple) else (cost_seconds, cost_seconds)
        yields = selectivity if isinstance(selectivity, tuple) else (selectivity, selectivity)
        sides = zip((left, right), costs, yields, strict=True)
        inputs = tuple(SimulatedInput(*side) for side in sides)
        return self.add(name, inputs, output_bytes, 0.0, True, window)

    def union(
        self, name: str, *sources: Producer, cost_seconds: float = 0.0, ordered: bool = True
    ) -> int:
        """Add a union, in order of time unless told otherwise."""
        inputs = tuple(SimulatedInput(source, cost_seconds, 1.0) for source in sources)
        return self.add(name, inputs, None, 0.0, ordered, None)

    def query(self, name: str, output: int, weight: float = 1.0) -> None:
        """Name the operator whose output answers a query."""
        if name in self.queries:
            raise StrategyError(f'query "{name}" exists already; choose another name')
        if not weight > 0:
            raise StrategyError(f'query "{name}" has weight {weight}; give more than 0')
        self._bytes_of(output)
        self.queries[name] = (output, weight)

    def path(
        self,
        query: str,
        source: Producer,
        steps: Sequence[tuple[float, float]],
        weight: float = 1.0,
    ) -> list[int]:
        """Add a whole path of (cost_seconds, selectivity) operators that answers a query."""
        added: list[int] = []
        for place, (cost, selectivity) in enumerate(steps, start=1):
            source = self.operator(f"{query}.{place}", source, cost, selectivity)
            added.append(source)
        self.query(query, added[-1], weight)
        return added

    def chart(
        self,
        query: str,
        source: Producer,
        points: Sequence[tuple[float, float]],
        last_selectivity: float = 1.0,
    ) -> list[int]:
        """Add the path of a progress chart: points (time, size) from (0, 1) to (time, 0)."""
        check_chart(points)
        steps: list[tuple[float, float]] = []
        for (time, size), (later, smaller) in pairwise(points):
            last = later == points[-1][0]
            steps.append(((later - time) / size, last_selectivity if last else smaller / size))
        return self.path(query, source, steps)

    def add(
        self,
        name: str,
        inputs: tuple[SimulatedInput, ...],
        output_bytes: float | None = None,
        step_cost_seconds: float = 0.0,
        ordered: bool = True,
        window: Window | None = None,
    ) -> int:
        """Add an operator with any number of inputs; returns its id."""
        for each in inputs:
            check_mean(f'operator "{name}": cost_seconds', each.cost_seconds)
            check_mean(f'operator "{name}": selectivity', each.selectivity)
        input_bytes = max(self._bytes_of(each.source) for each in inputs)
        size = input_bytes if output_bytes is None else output_bytes
        identity = len(self.operators)
        self.operators.append(
            SimulatedOperator(identity, name, inputs, size, step_cost_seconds, ordered, window)
        )
        return identity

    def _bytes_of(self, source: Producer) -> float:
        if isinstance(source, str):
            if source not in self.streams:
                raise StrategyError(f'no stream "{source}"; known: {", ".join(self.streams)}')
            return self.streams[source]
        if not 0 <= source < len(self.operators):
            raise StrategyError(f"no operator {source}; known: 0 to {len(self.operators) - 1}")
        return self.operators[source].output_bytes
