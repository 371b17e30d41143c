"""One chart-partitioning procedure with two objectives (Unified paper, sections 3 and 4).

A plan falls into parts, each processed depth first and served in order of slope. Both objectives
normalise bottom-up: what is behind an operator is drawn in order of slope, and the step before it
takes in whatever is steeper than itself. They differ only in the charts before that. Latency: the
output completion chart falls by σ `selectivity` at an output, after τ `cost_seconds`. Memory: the
memory reduction chart falls by M_in - σ M_out, and readers of one shared tuple are one
fork-segment, since the tuple is freed by the last of them only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias, get_args

from millpond.errors import StrategyError
from millpond.scheduling.progress_chart import slope
from millpond.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot

Objective: TypeAlias = Literal["latency", "memory"]
Source: TypeAlias = int | str
Stack: TypeAlias = "tuple[Part, Stack] | None"
"""Parts in order of slope, the steepest first; shared between charts, never changed."""

SMALLEST = 1e-12
"""Stands for a measured rate or selectivity of zero, so that slopes behind it stay known."""


@dataclass(frozen=True, slots=True)
class Part:
    """Operators that are processed together, and how far the chart falls in how many seconds."""

    seconds: float
    fall: float
    pieces: tuple[int | Part, ...]

    @property
    def slope(self) -> float:
        """The fall in a second."""
        return slope((0.0, self.fall), (self.seconds, 0.0))

    @property
    def operators(self) -> tuple[int, ...]:
        """The operators in the order in which one tuple passes them."""
        found: list[int] = []
        pending: list[int | Part] = [self]
        while pending:
            piece = pending.pop()
            if isinstance(piece, Part):
                pending.extend(reversed(piece.pieces))
            else:
                found.append(piece)
        return tuple(dict.fromkeys(found))

    def followed_by(self, other: Part) -> Part:
        """Both as one part."""
        return Part(self.seconds + other.seconds, self.fall + other.fall, (self, other))

    def times(self, factor: float) -> Part:
        """The same part for another number of tuples."""
        return Part(self.seconds * factor, self.fall * factor, (self,))


class Charts:
    """The normalised charts of what is behind operators, worked out from the outputs upwards."""

    def __init__(self, plan: PlanSnapshot, operators: Collection[int]) -> None:
        self.plan = plan
        self.readers = _readers(plan)
        self.flow = _flows(plan)
        self.behind: dict[int, Stack] = {}
        for operator in reversed(plan.upstream_first):
            if operator in operators:
                self.behind[operator] = self.after(operator)

    def after(self, source: Source) -> Stack:
        """What happens to the tuples of a stream or the output of an operator."""
        raise NotImplementedError

    def step(self, operator: OperatorSnapshot) -> Part:
        """The part that one operator is by itself."""
        raise NotImplementedError

    def share(self, source: Source, reader: int) -> float:
        """How much of what a reader takes in comes from this source."""
        inputs = self.plan.by_id[reader].inputs
        if len(inputs) == 1:
            return 1.0
        count = sum(each.source == source for each in inputs)
        return count * self.given(source) / self.flow[reader]

    def given(self, source: Source) -> float:
        """Tuples a second out of a stream or operator."""
        if isinstance(source, str):
            return self.flow[source]
        return self.flow[source] * max(self.plan.by_id[source].selectivity, SMALLEST)

    def taken_in(self, operator: OperatorSnapshot) -> Part:
        """Seconds and fall, for one output of an operator, of what its own step takes in."""
        own = self.step(operator)
        lead, _ = absorb(own, self.behind[operator.id]) or (own, None)
        outputs = self.given(operator.id)
        return Part((lead.seconds - own.seconds) / outputs, (lead.fall - own.fall) / outputs, ())


class OutputCompletionCharts(Charts):
    """Latency: outputs still to come against work. A path is never broken, a fork may be."""

    def after(self, source: Source) -> Stack:
        """Each reader is the head of a branch of its own."""
        return merged(
            scaled(self.branch(reader), self.share(source, reader))
            for reader in self.readers[source]
        )

    def branch(self, reader: int) -> Stack:
        """The normalised chart of the subtree below an operator, itself included."""
        return absorb(self.step(self.plan.by_id[reader]), self.behind[reader])

    def step(self, operator: OperatorSnapshot) -> Part:
        """Falls by the tuples that leave the system, each counting as much as its query."""
        flow = self.flow[operator.id]
        outputs = operator.selectivity * operator.weight if operator.is_output else 0.0
        return Part(flow * operator.cost_seconds, flow * outputs, (operator.id,))


class MemoryReductionCharts(Charts):
    """Memory: bytes still queued against work. A branch may be broken, a fork never is."""

    def after(self, source: Source) -> Stack:
        """All readers together are the fork-segment; what is behind them are the unit-segments."""
        readers = self.readers[source]
        if not readers:
            return None
        units = merged(scaled(self.behind[each], self.share(source, each)) for each in readers)
        return absorb(self.fork_segment(source, readers), units)

    def fork_segment(self, source: Source, readers: Sequence[int]) -> Part:
        """The first operator of every branch: only together they free the shared tuple."""
        reads = self.plan.by_id[readers[0]].inputs
        size = next(each.tuple_bytes for each in reads if each.source == source)
        seconds, fall = 0.0, self.given(source) * size
        for reader in readers:
            operator = self.plan.by_id[reader]
            flow = self.flow[reader] * self.share(source, reader)
            seconds += flow * operator.cost_seconds
            fall -= flow * operator.selectivity * operator.queued_output_bytes
        return Part(seconds, fall, tuple(readers))

    def step(self, operator: OperatorSnapshot) -> Part:
        """Frees its share of the input tuple, and stores its output."""
        flow = self.flow[operator.id]
        left = operator.selectivity * operator.queued_output_bytes
        fall = self.freed_bytes(operator) - left
        return Part(flow * operator.cost_seconds, flow * fall, (operator.id,))

    def freed_bytes(self, operator: OperatorSnapshot) -> float:
        """The mean size of an input tuple, divided among those that read it."""
        shares = [
            each.tuple_bytes / len(self.readers[each.source]) / len(operator.inputs)
            for each in operator.inputs
        ]
        return sum(shares)


def parts(plan: PlanSnapshot, objective: Objective) -> tuple[Part, ...]:
    """The parts of a plan, the steepest first; joins may make an operator belong to several."""
    check_objective(objective)
    found = _latency_parts(plan) if objective == "latency" else _memory_parts(plan)
    return tuple(sorted(found, key=lambda part: -part.slope))


def charts(plan: PlanSnapshot, objective: Objective) -> Charts:
    """The charts behind every operator of a plan."""
    check_objective(objective)
    kind = OutputCompletionCharts if objective == "latency" else MemoryReductionCharts
    return kind(plan, plan.by_id.keys())


def check_objective(objective: str) -> None:
    """Refuse an objective that does not exist."""
    known = get_args(Objective)
    if objective not in known:
        raise StrategyError(f'objective is "{objective}"; choose {" or ".join(known)}')


def absorb(head: Part, rest: Stack) -> Stack:
    """Normalise a chart whose rest is in order of slope: the head takes in what is steeper."""
    while rest is not None and rest[0].slope > head.slope:
        head = head.followed_by(rest[0])
        rest = rest[1]
    return head, rest


def merged(stacks: Iterable[Stack]) -> Stack:
    """Several charts as one, in order of slope."""
    found = [stack for stack in stacks if stack is not None]
    if len(found) < 2:
        return found[0] if found else None
    return _stack(sorted(chain.from_iterable(map(unfold, found)), key=lambda part: -part.slope))


def scaled(stack: Stack, factor: float) -> Stack:
    """The same chart for another number of tuples."""
    return stack if factor == 1.0 else _stack([part.times(factor) for part in unfold(stack)])


def unfold(stack: Stack) -> Iterator[Part]:
    """The parts of a chart, the steepest first."""
    while stack is not None:
        part, stack = stack
        yield part


def _stack(ordered: Sequence[Part]) -> Stack:
    stack: Stack = None
    for part in reversed(ordered):
        stack = part, stack
    return stack


def _latency_parts(plan: PlanSnapshot) -> Iterator[Part]:
    """Joins with all before them are not partitioned; what is behind them is."""
    merging = _before_joins(plan)
    completion = OutputCompletionCharts(plan, plan.by_id.keys() - merging)
    for operator in plan.operators:
        if operator.id not in merging and operator.streams:
            yield from unfold(completion.branch(operator.id))
    for region in _connected(plan, merging):
        yield from unfold(_region(completion, region))


def _region(completion: OutputCompletionCharts, region: Sequence[int]) -> Stack:
    steps = [completion.step(completion.plan.by_id[operator]) for operator in region]
    seconds, fall = sum(each.seconds for each in steps), sum(each.fall for each in steps)
    inside = set(region)
    readers = chain.from_iterable(completion.readers[operator] for operator in region)
    branches = merged(completion.branch(reader) for reader in readers if reader not in inside)
    return absorb(Part(seconds, fall, tuple(region)), branches)


def _memory_parts(plan: PlanSnapshot) -> Iterator[Part]:
    """Each stream begins a tree; a join belongs to the tree of each stream it depends on."""
    reduction = MemoryReductionCharts(plan, plan.by_id.keys())
    for source in reduction.readers:
        if isinstance(source, str):
            yield from unfold(reduction.after(source))


def _before_joins(plan: PlanSnapshot) -> set[int]:
    """The operators with several inputs and all that feed them."""
    found: set[int] = set()
    for identity in reversed(plan.upstream_first):
        operator = plan.by_id[identity]
        if len(operator.inputs) > 1 or not found.isdisjoint(operator.downstream):
            found.add(identity)
    return found


def _connected(plan: PlanSnapshot, operators: Collection[int]) -> Iterator[list[int]]:
    """These operators in groups that are joined by edges, upstream first."""
    group_of: dict[int, list[int]] = {}
    for identity in plan.upstream_first:
        if identity not in operators:
            continue
        group = [identity]
        for above in plan.by_id[identity].upstream:
            if group_of[above] is not group:
                group = sorted({*group_of[above], *group})
                group_of.update(dict.fromkeys(group, group))
        group_of[identity] = group
    place = {identity: rank for rank, identity in enumerate(plan.upstream_first)}
    groups = {id(group): group for group in group_of.values()}
    return (sorted(group, key=place.__getitem__) for group in groups.values())


def _readers(plan: PlanSnapshot) -> dict[Source, list[int]]:
    readers: dict[Source, list[int]] = {}
    for operator in plan.operators:
        readers[operator.id] = list(dict.fromkeys(operator.downstream))
        for stream in dict.fromkeys(operator.streams):
            readers.setdefault(stream, []).append(operator.id)
    return readers


def _flows(plan: PlanSnapshot) -> dict[Source, float]:
    """Tuples a second out of each stream and into each operator, as the averages have it."""
    flow: dict[Source, float] = {}
    for each in chain.from_iterable(operator.inputs for operator in plan.operators):
        if isinstance(each.source, str):
            flow[each.source] = max(each.tuples_per_second, flow.get(each.source, SMALLEST))
    for identity in plan.upstream_first:
        flow[identity] = sum(_given(plan, flow, each) for each in plan.by_id[identity].inputs)
    return flow


def _given(plan: PlanSnapshot, flow: dict[Source, float], each: InputSnapshot) -> float:
    if isinstance(each.source, str):
        return flow[each.source]
    return flow[each.source] * max(plan.by_id[each.source].selectivity, SMALLEST)
