"""What is behind each operator of a plan, as normalised charts (Unified paper, section 4).

Output completion charts fall by σ `selectivity` at an output after τ `cost_seconds`; each reader
of a shared tuple heads a branch of its own. Memory reduction charts fall by M_in - σ M_out bytes;
the readers of a shared tuple are one fork-segment, since the last of them frees it, and what is
behind them are the unit-segments. All amounts are per second of the plan's input.
"""

from collections.abc import Collection, Sequence
from itertools import chain

from millpond.scheduling.charts.chart_parts import ChartPart, Stack, absorb, merged, scaled
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot, Producer

SMALLEST = 1e-12
"""Stands for a measured rate or selectivity of zero, so that slopes behind it stay known."""


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

    def after(self, source: Producer) -> Stack:
        """What happens to the tuples of a stream or the output of an operator."""
        raise NotImplementedError

    def step(self, operator: OperatorSnapshot) -> ChartPart:
        """The part that one operator is by itself."""
        raise NotImplementedError

    def share(self, source: Producer, reader: int) -> float:
        """How much of what a reader takes in comes from this source."""
        inputs = self.plan.by_id[reader].inputs
        if len(inputs) == 1:
            return 1.0
        count = sum(each.source == source for each in inputs)
        return count * self.given(source) / self.flow[reader]

    def given(self, source: Producer) -> float:
        """Tuples a second out of a stream or operator."""
        if isinstance(source, str):
            return self.flow[source]
        return self.flow[source] * max(self.plan.by_id[source].selectivity, SMALLEST)

    def taken_in(self, operator: OperatorSnapshot) -> ChartPart:
        """Seconds and fall, for one output of an operator, of what its own step takes in."""
        own = self.step(operator)
        lead, _ = absorb(own, self.behind[operator.id])
        outputs = self.given(operator.id)
        return ChartPart(
            (lead.seconds - own.seconds) / outputs, (lead.fall - own.fall) / outputs, ()
        )


class OutputCompletionCharts(Charts):
    """Latency: outputs still to come against work. A path is never broken, a fork may be."""

    def after(self, source: Producer) -> Stack:
        """Each reader is the head of a branch of its own."""
        return merged(
            scaled(self.branch(reader), self.share(source, reader))
            for reader in self.readers[source]
        )

    def branch(self, reader: int) -> Stack:
        """The normalised chart of the subtree below an operator, itself included."""
        return absorb(self.step(self.plan.by_id[reader]), self.behind[reader])

    def step(self, operator: OperatorSnapshot) -> ChartPart:
        """Falls by the tuples that leave the system, each counting as much as its query."""
        flow = self.flow[operator.id]
        outputs = operator.selectivity * operator.weight if operator.is_output else 0.0
        return ChartPart(flow * operator.cost_seconds, flow * outputs, (operator.id,))


class MemoryReductionCharts(Charts):
    """Memory: bytes still queued against work. A branch may be broken, a fork never is."""

    def after(self, source: Producer) -> Stack:
        """All readers together are the fork-segment; what is behind them are the unit-segments."""
        readers = self.readers[source]
        if not readers:
            return None
        units = merged(scaled(self.behind[each], self.share(source, each)) for each in readers)
        return absorb(self.fork_segment(source, readers), units)

    def fork_segment(self, source: Producer, readers: Sequence[int]) -> ChartPart:
        """The first operator of every branch: only together they free the shared tuple."""
        reads = self.plan.by_id[readers[0]].inputs
        size = next(each.tuple_bytes for each in reads if each.source == source)
        seconds, fall = 0.0, self.given(source) * size
        for reader in readers:
            operator = self.plan.by_id[reader]
            flow = self.flow[reader] * self.share(source, reader)
            seconds += flow * operator.cost_seconds
            fall -= flow * operator.selectivity * operator.queued_output_bytes
        return ChartPart(seconds, fall, tuple(readers))

    def step(self, operator: OperatorSnapshot) -> ChartPart:
        """Frees its share of the input tuple, and stores its output."""
        flow = self.flow[operator.id]
        left = operator.selectivity * operator.queued_output_bytes
        fall = self.freed_bytes(operator) - left
        return ChartPart(flow * operator.cost_seconds, flow * fall, (operator.id,))

    def freed_bytes(self, operator: OperatorSnapshot) -> float:
        """The mean size of an input tuple, divided among those that read it."""
        shares = [
            each.tuple_bytes / len(self.readers[each.source]) / len(operator.inputs)
            for each in operator.inputs
        ]
        return sum(shares)


def _readers(plan: PlanSnapshot) -> dict[Producer, list[int]]:
    readers: dict[Producer, list[int]] = {}
    for operator in plan.operators:
        readers[operator.id] = list(dict.fromkeys(operator.downstream))
        for stream in dict.fromkeys(operator.streams):
            readers.setdefault(stream, []).append(operator.id)
    return readers


def _flows(plan: PlanSnapshot) -> dict[Producer, float]:
    """Tuples a second out of each stream and into each operator, as the averages have it."""
    flow: dict[Producer, float] = {}
    for each in chain.from_iterable(operator.inputs for operator in plan.operators):
        if isinstance(each.source, str):
            flow[each.source] = max(each.tuples_per_second, flow.get(each.source, SMALLEST))
    for identity in plan.upstream_first:
        flow[identity] = sum(_given(plan, flow, each) for each in plan.by_id[identity].inputs)
    return flow


def _given(plan: PlanSnapshot, flow: dict[Producer, float], each: InputSnapshot) -> float:
    if isinstance(each.source, str):
        return flow[each.source]
    return flow[each.source] * max(plan.by_id[each.source].selectivity, SMALLEST)
