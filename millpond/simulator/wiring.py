"""A simulated plan wired up: buffers, the steps that read them, and where queues are.

An edge without a queue is a pipe: what the producer yields passes on within the same step.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import numpy as np

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import FloatArray, Producer
from millpond.simulator.buffers import TupleBuffer
from millpond.simulator.conditions import Conditions
from millpond.simulator.distributions import mean_of
from millpond.simulator.inlets import Inlet
from millpond.simulator.merging import MergingStep
from millpond.simulator.one_input import OneInputStep
from millpond.simulator.picture import readers_of
from millpond.simulator.plan import SimulatedOperator, SimulatedPlan
from millpond.simulator.steps import MemberStep
from millpond.simulator.virtual import VirtualStep
from millpond.workloads import SizedArrivals

StreamArrivals: TypeAlias = Sequence[float] | FloatArray | SizedArrivals
Arrivals: TypeAlias = Mapping[str, StreamArrivals]
"""When tuples come on each stream; fluid ones may have sizes, by which their cost grows too."""
PARKED = 2**62
"""The cursor of a reader that is fed by a pipe instead."""


class Wiring:
    """Everything tuples flow through."""

    def __init__(self, plan: SimulatedPlan, arrivals: Arrivals, conditions: Conditions) -> None:
        _refuse_misfits(plan, arrivals)
        self.plan, self.conditions = plan, conditions
        self.now_seconds = 0.0
        self.readers = readers_of(plan)
        self.bytes: dict[Producer, float] = dict(plan.streams.items())
        self.bytes |= {each.id: each.output_bytes for each in plan.operators}
        self.delivers = {output for output, _ in plan.queries.values()}
        self.delivers |= {each.id for each in plan.operators if not self.readers[each.id]}
        fluid = conditions.tuples == "fluid"
        self.buffers: dict[Producer, TupleBuffer] = {
            name: _stream_buffer(name, arrivals.get(name), len(self.readers[name]), fluid)
            for name in plan.streams
        }
        for operator in plan.operators:
            readers = len(self.readers[operator.id])
            self.buffers[operator.id] = TupleBuffer(readers, fluid)
        self.pipes: dict[int, list[Inlet]] = {each.id: [] for each in plan.operators}
        self.overhead: dict[int, float] = {}
        self.members = self._make_members()
        self._far = conditions.on_demand_timestamps
        self.open_streams_above = self._streams_above()
        self.units: dict[int, MemberStep | VirtualStep] = {}
        self.unit_of: dict[int, int] = {}
        self.at_streams: frozenset[int] = frozenset()
        self.copies: dict[Producer, int] = {}
        self.affected: dict[Producer, tuple[int, ...]] = {}
        self.affected_by_taking: dict[Producer, tuple[int, ...]] = {}
        self.place(self.all_edges())
        for name in plan.streams:
            if not len(self.buffers[name].arrival):
                self.close_stream(name)

    def all_edges(self) -> frozenset[tuple[Producer, int]]:
        """Every edge of the plan."""
        return frozenset(
            (each.source, operator.id)
            for operator in self.plan.operators
            for each in operator.inputs
        )

    def place(self, queued: Iterable[tuple[Producer, int]]) -> None:
        """Keep queues on these edges (streams always have one), and pipes on all others."""
        edges = self.all_edges()
        kept = frozenset(queued)
        if kept - edges:
            raise StrategyError(f"no edge {next(iter(kept - edges))} in the plan to put a queue on")
        direct = {edge for edge in edges - kept if isinstance(edge[0], int)}
        operators = [each.id for each in self.plan.operators]
        unit_of = _connected(operators, direct)
        _refuse_loops(edges - direct, unit_of)
        self.unit_of = unit_of
        for member in self.members.values():
            for inlet in member.inlets:
                self._connect(inlet, (inlet.source, member.id) in direct)
        self._set_overheads()
        self._make_units()
        self.at_streams = self._units_at_streams()
        self._set_affected()
        self.copies = {source: self._copies(source) for source in self.buffers}

    def look_far(self) -> None:
        """From now on what waits far upstream may decide whether a merging operator is ready."""
        self._far = True
        self._set_affected()

    def _copies(self, source: Producer) -> int:
        """How often a tuple of a stream or operator is stored in queues."""
        pipes = len(self.pipes[source]) if isinstance(source, int) else 0
        queues = len(self.readers[source]) - pipes
        return min(1, queues) if self.conditions.shared_queues else queues

    def close_stream(self, name: str) -> None:
        """Note that no more tuples will come on a stream."""
        for streams in self.open_streams_above.values():
            streams.discard(name)
        if not self._far:
            self.look_far()

    def _streams_above(self) -> dict[Producer, set[str]]:
        """The streams each operator depends on."""
        above: dict[Producer, set[str]] = {name: {name} for name in self.plan.streams}
        for operator in self.plan.operators:
            above[operator.id] = set().union(*(above[each.source] for each in operator.inputs))
        return {operator.id: above[operator.id] for operator in self.plan.operators}

    def queued_bytes(self) -> float:
        """The memory of all queues and of what is left in pipes, counted afresh."""
        total = 0.0
        for source, buffer in self.buffers.items():
            cursors = [cursor for cursor in buffer.cursors if cursor != PARKED]
            shared = [min(cursors)] if cursors and self.conditions.shared_queues else cursors
            waits = sum(buffer.amount(cursor, buffer.tail) for cursor in shared)
            total += waits * self.bytes[source]
        for inlet in (inlet for pipes in self.pipes.values() for inlet in pipes):
            pipe = inlet.buffer
            total += pipe.amount(pipe.cursors[0], pipe.tail) * inlet.tuple_bytes
        return total

    def bound(self, operator: SimulatedOperator) -> float:
        """The time up to which all inputs of an operator are complete."""
        if not operator.ordered:
            return math.inf
        return min(self.complete_until(inlet) for inlet in self.members[operator.id].inlets)

    def complete_until(self, inlet: Inlet) -> float:
        """The time up to which no more tuples can come in: a promise, so it never goes back."""
        source, buffer = inlet.source, inlet.buffer
        on_demand = self.conditions.on_demand_timestamps
        if isinstance(source, str):
            if buffer.tail == len(buffer.arrival):
                return math.inf
            return self.now_seconds if on_demand else buffer.last_arrival
        if not on_demand and self.open_streams_above[source]:
            return buffer.last_arrival
        producer = self.members[source]
        done = min(self._passed(each, producer) for each in producer.inlets)
        return done if on_demand or done == math.inf else buffer.last_arrival

    def _passed(self, inlet: Inlet, member: MemberStep) -> float:
        """The time up to which an operator can have nothing more to take from one input."""
        oldest = min(inlet.oldest(), member.in_flight_since)
        if oldest < math.inf:
            return math.nextafter(oldest, -math.inf)
        return self.complete_until(inlet)

    def _make_members(self) -> dict[int, MemberStep]:
        seed, preemptive = self.conditions.seed, self.conditions.preemptive
        members: dict[int, MemberStep] = {}
        for operator in self.plan.operators:
            inlets = self._inlets(operator)
            if len(inlets) == 1:
                members[operator.id] = OneInputStep(operator, inlets[0], preemptive, seed)
            else:
                bound = partial(self.bound, operator)
                members[operator.id] = MergingStep(operator, inlets, preemptive, seed, bound)
        return members

    def _inlets(self, operator: SimulatedOperator) -> list[Inlet]:
        inlets: list[Inlet] = []
        for each in operator.inputs:
            places = [n for n, one in enumerate(self.readers[each.source]) if one == operator.id]
            place = places[sum(inlet.source == each.source for inlet in inlets)]
            buffer, size = self.buffers[each.source], self.bytes[each.source]
            inlets.append(Inlet(each.source, buffer, place, size))
        return inlets

    def _connect(self, inlet: Inlet, direct: bool) -> None:
        if direct == inlet.is_pipe:
            return
        if isinstance(inlet.source, str):
            return
        shared = self.buffers[inlet.source]
        if direct:
            inlet.open_pipe(PARKED)
            self.pipes[inlet.source].append(inlet)
        else:
            inlet.close_pipe(shared)
            self.pipes[inlet.source].remove(inlet)

    def _set_overheads(self) -> None:
        conditions = self.conditions
        for operator in self.plan.operators:
            member = self.members[operator.id]
            queued = [inlet for inlet in member.inlets if not inlet.is_pipe]
            seconds = conditions.dequeue_seconds * len(queued) / len(member.inlets)
            if len(self.readers[operator.id]) > len(self.pipes[operator.id]):
                made = sum(mean_of(each.selectivity) for each in operator.inputs)
                seconds += conditions.enqueue_seconds * made / len(operator.inputs)
            self.overhead[operator.id] = seconds
            member.set_overhead(seconds)

    def _make_units(self) -> None:
        groups: dict[int, list[MemberStep]] = {}
        for operator, unit in self.unit_of.items():
            groups.setdefault(unit, []).append(self.members[operator])
        self.units = {
            unit: group[0]
            if len(group) == 1
            else VirtualStep(group, self.pipes, self.conditions.turn_seconds)
            for unit, group in groups.items()
        }

    def _units_at_streams(self) -> frozenset[int]:
        """The units with one queue, and that before a stream: ready once a tuple arrives."""
        sources: dict[int, list[Producer]] = {}
        for operator, member in self.members.items():
            queued = [inlet.source for inlet in member.inlets if not inlet.is_pipe]
            sources.setdefault(self.unit_of[operator], []).extend(queued)
        return frozenset(
            unit
            for unit, before in sources.items()
            if len(before) == 1 and isinstance(before[0], str)
        )

    def _set_affected(self) -> None:
        """For each stream and unit the units whose state may change when it yields or moves on.

        A unit that took tuples and yielded none changes others only if they look far.
        """
        found: dict[Producer, set[int]] = {}
        for source in self.buffers:
            key = self.unit_of[source] if isinstance(source, int) else source
            found.setdefault(key, set()).update(self._affected(source))
        self.affected = {source: tuple(sorted(units)) for source, units in found.items()}
        alone: dict[Producer, tuple[int, ...]] = {unit: (unit,) for unit in self.units}
        self.affected_by_taking = self.affected if self._far else alone

    def _affected(self, source: Producer) -> set[int]:
        found: set[int] = {self.unit_of[source]} if isinstance(source, int) else set()
        pending = list(self.readers[source])
        found |= {self.unit_of[reader] for reader in pending}
        seen = set(pending)
        while pending and self._far:
            operator = pending.pop()
            if len(self.members[operator].inlets) > 1:
                found.add(self.unit_of[operator])
            fresh = [each for each in self.readers[operator] if each not in seen]
            seen.update(fresh)
            pending.extend(fresh)
        return found


def _refuse_misfits(plan: SimulatedPlan, arrivals: Arrivals) -> None:
    """Refuse a plan with nothing to run, and arrivals that nobody reads."""
    if not plan.operators:
        raise StrategyError("the plan has no operators; add at least one before simulating it")
    for name in arrivals:
        if name not in plan.streams:
            known = ", ".join(plan.streams)
            raise StrategyError(
                f'arrivals for stream "{name}", which the plan has not; it has {known}'
            )


def _stream_buffer(
    name: str, arrivals: StreamArrivals | None, readers: int, fluid: bool
) -> TupleBuffer:
    sizes = arrivals.sizes if isinstance(arrivals, SizedArrivals) else None
    if sizes is not None and not fluid:
        raise StrategyError(
            f'arrivals of stream "{name}" have sizes, which whole tuples cannot have; give their '
            'times alone, or simulate with Conditions(tuples="fluid")'
        )
    given = arrivals.times if isinstance(arrivals, SizedArrivals) else arrivals
    times = np.asarray(() if given is None else given, dtype=np.float64)
    if len(times) > 1 and (np.diff(times) < 0).any():
        raise StrategyError(f'arrivals of stream "{name}" are not in order of time; sort them')
    mass = (np.ones(len(times)) if sizes is None else sizes) if fluid else None
    return TupleBuffer.of_arrivals(times, mass, readers)


def _connected(operators: list[int], edges: set[tuple[Producer, int]]) -> dict[int, int]:
    """The smallest operator each one is connected with."""
    unit = {operator: operator for operator in operators}

    def root(operator: int) -> int:
        while unit[operator] != operator:
            operator = unit[operator]
        return operator

    for source, reader in edges:
        if isinstance(source, int):
            low, high = sorted((root(source), root(reader)))
            unit[high] = low
    return {operator: root(operator) for operator in operators}


def _refuse_loops(queued: Iterable[tuple[Producer, int]], unit_of: Mapping[int, int]) -> None:
    """Refuse units that would have to wait for themselves by way of another."""
    readers: dict[int, set[int]] = {unit: set() for unit in unit_of.values()}
    for source, reader in queued:
        if isinstance(source, int):
            readers[unit_of[source]].add(unit_of[reader])
    try:
        tuple(TopologicalSorter(readers).static_order())
    except CycleError as loop:
        raise StrategyError(
            f"these queues make virtual operators {loop.args[1]} read each other in a loop; "
            "keep queues on all ways between two operators or on none"
        ) from None
