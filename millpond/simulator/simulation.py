"""The simulator: a Runtime on a virtual clock.

Fast because nothing is done tuple by tuple: a step moves arrays, all arrivals lie in arrays from
the start, memory is kept as changes that are summed up once at the end, and only operators that
changed are looked at.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from millpond.errors import StateError
from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.snapshot import Observation, OperatorState, PlanSnapshot
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.threads.fused_plan import fused_snapshot
from millpond.simulator.conditions import IDEAL, Conditions
from millpond.simulator.inlets import Release
from millpond.simulator.measuring import Meter
from millpond.simulator.picture import plan_snapshot, stream_rate
from millpond.simulator.plan import SimulatedPlan
from millpond.simulator.record import Execution, Record, Recorder, Waits
from millpond.simulator.steps import MemberStep, Yield
from millpond.simulator.virtual import VirtualStep
from millpond.simulator.wiring import Arrivals, Wiring


@dataclass(slots=True)
class Processor:
    """What a processor ran last."""

    operator: int = -1
    thread: int = -1


class Running(NamedTuple):
    """A step under way."""

    processor: Processor
    start_seconds: float


class Simulation:
    """A simulated plan at work on given arrivals."""

    def __init__(
        self, plan: SimulatedPlan, arrivals: Arrivals, conditions: Conditions = IDEAL
    ) -> None:
        self.conditions = conditions
        self.wiring = Wiring(plan, arrivals, conditions)
        self.recorder = Recorder()
        self.meter = Meter(self.wiring.members, conditions.measure_seconds)
        self.plan_version = 0
        self.now_seconds = 0.0
        self.queue_bytes = 0.0
        self._streams = [name for name in plan.streams if self.wiring.readers[name]]
        self._next_arrival = [self._next_of(name) for name in self._streams]
        self._soonest_arrival = min(self._next_arrival, default=math.inf)
        self._changed: set[int] = set()
        self._running: dict[int, Running] = {}
        self._ends: list[tuple[float, int]] = []
        self._free = [Processor() for _ in range(conditions.processors)]
        self._waiting_since: dict[int, float] = {}
        self._busy_until: dict[int, float] = {}
        self._structure = 0
        self._snapshot: PlanSnapshot | None = None
        for name in self._streams:
            buffer = self.wiring.buffers[name]
            size = self.wiring.bytes[name] * self.wiring.copies[name]
            mass = np.ones(len(buffer.arrival)) if buffer.mass is None else buffer.mass
            self.recorder.arrivals(buffer.arrival, size * mass)

    def plan(self) -> PlanSnapshot:
        """The plan with its true or last measured averages."""
        if self._snapshot is None:
            self._snapshot = self._take_snapshot()
        return self._snapshot

    def observe(self, complete: bool) -> Observation:
        """The operators that changed since the last call, or all of them."""
        states = self._states(self.wiring.units if complete else self._changed)
        self._changed.clear()
        return Observation(self.now_seconds, states, self.queue_bytes)

    def has_free_processor(self) -> bool:
        """Whether a step could start now."""
        return bool(self._free) and self.now_seconds < self.conditions.until_seconds

    def perform(self, decision: Decision) -> None:
        """Begin a step on a free processor; with one processor, end it too."""
        if isinstance(decision, PlaceQueues):
            self._place(decision)
            return
        operator = decision.operator
        step = self.wiring.units.get(operator)
        if step is None or operator in self._running:
            raise StateError(f"operator {operator} cannot run now; choose a ready one")
        processor = self._free.pop()
        start = self.now_seconds + self._switch(processor, decision)
        seconds = step.begin(decision.max_tuples, decision.slice_seconds)
        self._note_start(operator, start, seconds)
        if self.conditions.processors == 1:
            self._advance(start + seconds)
            self._end(operator, processor, start)
        else:
            self._running[operator] = Running(processor, start)
            heappush(self._ends, (start + seconds, operator))
            self._changed.add(operator)

    def wait(self) -> bool:
        """Move the clock to the next end of a step or, with a free processor, the next arrival."""
        if self.now_seconds >= self.conditions.until_seconds:
            return False
        next_end = self._ends[0][0] if self._ends else math.inf
        if self._free and self._soonest_arrival < next_end:
            self._advance(self._soonest_arrival)
            return True
        if not self._ends:
            return False
        _, operator = heappop(self._ends)
        self._advance(next_end)
        self._end(operator, *self._running.pop(operator))
        return True

    def _states(self, operators: Iterable[int]) -> list[OperatorState]:
        units, since, clairvoyant = (
            self.wiring.units,
            self._waiting_since,
            self.conditions.clairvoyant,
        )
        states = []
        for operator in operators:
            state = units[operator].state()
            if operator in self._running:
                states.append(state._replace(ready=False, running=True))
                continue
            if state.ready and operator not in since:
                since[operator] = self._ready_since(operator, state)
            if clairvoyant:
                state = state._replace(waiting=units[operator].reveal())
            states.append(state)
        return states

    def _ready_since(self, operator: int, state: OperatorState) -> float:
        """Now, unless a tuple arrived while nobody looked, on a stream and not behind a step."""
        if operator not in self.wiring.at_streams:
            return self.now_seconds
        idle_since = self._busy_until.get(operator, 0.0)
        return min(self.now_seconds, max(state.oldest_arrival_seconds, idle_since))

    def _switch(self, processor: Processor, decision: RunOperator) -> float:
        record, conditions, seconds = self.recorder.record, self.conditions, 0.0
        if processor.operator != decision.operator:
            record.context_switches += 1
            seconds += conditions.switch_seconds
        if processor.thread != decision.thread:
            record.thread_switches += 1
            seconds += conditions.thread_switch_seconds
        processor.operator, processor.thread = decision.operator, decision.thread
        return seconds

    def _note_start(self, operator: int, start_seconds: float, seconds: float) -> None:
        record = self.recorder.record
        record.executions += 1
        record.busy_seconds += start_seconds - self.now_seconds + seconds
        self._busy_until[operator] = start_seconds + seconds
        wait = start_seconds - self._waiting_since.pop(operator, start_seconds)
        waits = record.waits.get(operator)
        if waits is None:
            waits = record.waits[operator] = Waits()
        waits.steps += 1
        waits.total_seconds += wait
        if wait > waits.longest_seconds:
            waits.longest_seconds = wait

    def _end(self, operator: int, processor: Processor, start_seconds: float) -> None:
        self._free.append(processor)
        step = self.wiring.units[operator]
        if not isinstance(step, VirtualStep) and step.took_one():
            taken, change = 1.0, self._end_one(step)
        else:
            taken, change = self._end_several(step, start_seconds)
        if change:
            self.queue_bytes += change
            self.recorder.change(self.now_seconds, change)
        if self.conditions.trace:
            step_traced = Execution(start_seconds, self.now_seconds, operator, taken)
            self.recorder.record.trace.append(step_traced)
        if self.now_seconds >= self.meter.next_seconds:
            self.meter.close_window(self.now_seconds)
            self._snapshot = None
            self.plan_version += 1

    def _end_one(self, step: MemberStep) -> float:
        """End a step over one whole tuple, the most frequent kind; returns the change in bytes."""
        wiring, operator, inlet = self.wiring, step.id, step.inlet
        cursors = inlet.buffer.cursors
        shared = len(cursors) > 1 and self.conditions.shared_queues
        before = min(cursors) if shared else 0
        arrival, made = step.finish_one()
        self.recorder.record.tuples_served += 1
        change = 0.0 if shared and min(cursors) == before else -inlet.tuple_bytes
        if not made:
            self._changed.update(wiring.affected_by_taking[operator])
            return change
        self._changed.update(wiring.affected[operator])
        if operator in wiring.delivers:
            for _ in range(made):
                self.recorder.output_one(operator, self.now_seconds, arrival)
        copies = wiring.copies[operator]
        if copies:
            buffer = wiring.buffers[operator]
            for _ in range(made):
                buffer.append_one(arrival)
            change += made * copies * wiring.bytes[operator]
        return change

    def _end_several(
        self, step: MemberStep | VirtualStep, start_seconds: float
    ) -> tuple[float, float]:
        """End any step; returns the tuples it took from queues, and the change in bytes."""
        taken = change = 0.0
        releases, yields = step.finish()
        for made in yields:
            change += self._deliver(made, start_seconds)
        for release in releases:
            change -= self._release(release)
            if not release.inlet.is_pipe:
                taken += release.taken
        self._changed.update(self.wiring.affected[step.id])
        return taken, change

    def _release(self, release: Release) -> float:
        """Bytes that leave the queues with the tuples a step took."""
        inlet = release.inlet
        self.recorder.record.tuples_served += release.taken
        own = inlet.is_pipe or not self.conditions.shared_queues
        return (release.taken if own else release.freed) * inlet.tuple_bytes

    def _deliver(self, made: Yield, start_seconds: float) -> float:
        """Hand on what an operator made; returns the bytes that enter queues and pipes."""
        wiring, producer = self.wiring, made.producer
        if producer in wiring.delivers:
            ends = start_seconds + made.ends
            if self.conditions.commits:
                ends = np.full(len(ends), self.now_seconds)
            self.recorder.output(producer, ends, made.arrival, made.mass)
        copies, pipes = wiring.copies[producer], len(wiring.pipes[producer])
        if copies:
            wiring.buffers[producer].append(made.arrival, made.mass)
        return made.amount * wiring.bytes[producer] * (copies + pipes)

    def _advance(self, seconds: float) -> None:
        """Move the clock, taking in the arrivals on the way."""
        if seconds > self.now_seconds:
            self.now_seconds = self.wiring.now_seconds = seconds
        if self._soonest_arrival > self.now_seconds:
            return
        for place, name in enumerate(self._streams):
            if self._next_arrival[place] <= self.now_seconds:
                self._arrive(name)
                self._next_arrival[place] = self._next_of(name)
        self._soonest_arrival = min(self._next_arrival)

    def _arrive(self, name: str) -> None:
        buffer, before = self.wiring.buffers[name], self.wiring.buffers[name].tail
        buffer.tail = int(buffer.arrival.searchsorted(self.now_seconds, side="right"))
        buffer.last_arrival = buffer.arrival.item(buffer.tail - 1)
        amount = buffer.amount(before, buffer.tail)
        self.queue_bytes += amount * self.wiring.bytes[name] * self.wiring.copies[name]
        self._changed.update(self.wiring.affected[name])
        if buffer.tail == len(buffer.arrival):
            self.wiring.close_stream(name)

    def _next_of(self, stream: str) -> float:
        buffer = self.wiring.buffers[stream]
        return buffer.arrival.item(buffer.tail) if buffer.tail < len(buffer.arrival) else math.inf

    def _place(self, decision: PlaceQueues) -> None:
        if self._running:
            raise StateError("queues can be placed only while no operator runs; decide it later")
        self.wiring.place(decision.edges)
        before, self.queue_bytes = self.queue_bytes, self.wiring.queued_bytes()
        self.recorder.change(self.now_seconds, self.queue_bytes - before)
        self._waiting_since.clear()
        self._busy_until.clear()
        self._changed.clear()
        self._structure += 1
        self._snapshot = None
        self.plan_version += 1

    def _take_snapshot(self) -> PlanSnapshot:
        wiring = self.wiring
        rates = {name: stream_rate(wiring.buffers[name].arrival) for name in wiring.plan.streams}
        elementary = plan_snapshot(wiring.plan, rates, wiring.overhead, self.meter.measured)
        return fused_snapshot(elementary, wiring.unit_of, self._structure)


def simulate(
    plan: SimulatedPlan, strategy: Strategy, arrivals: Arrivals, conditions: Conditions = IDEAL
) -> Record:
    """Run a plan under a strategy until all arrivals are served; returns what was measured.

    >>> from millpond.scheduling.strategies.fifo import Fifo
    >>> plan = SimulatedPlan()
    >>> _ = plan.path("q", plan.stream("s"), [(1.0, 0.2), (5.0, 1.0)])
    >>> record = simulate(plan, Fifo(slice_seconds=1.0), {"s": [1, 2]}, Conditions(tuples="fluid"))
    >>> record.memory.at([1, 2, 3, 4, 5]).round(9).tolist()
    [1.0, 1.2, 1.0, 0.2, 0.0]
    """
    simulation = Simulation(plan, arrivals, conditions)
    SchedulingLoop(simulation, strategy).run()
    return simulation.recorder.close(simulation.now_seconds)
