"""A virtual operator: operators joined by pipes, run as one step (HMTS paper, section 3).

The first members take tuples from queues; what they yield passes through the others depth first,
with no queue in between, before the step ends.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from millpond.scheduling.snapshot import FloatArray, OperatorState, WaitingTuples
from millpond.simulator.inlets import Inlet, Release
from millpond.simulator.steps import MemberStep, Yield


class VirtualStep:
    """The step of several operators that hand tuples on directly; members come upstream first."""

    def __init__(
        self,
        members: Sequence[MemberStep],
        pipes: Mapping[int, Sequence[Inlet]],
        turn_seconds: float = 0.0,
    ) -> None:
        self.id = min(member.id for member in members)
        self.members = members
        self.pipes = pipes
        self.turn_seconds = turn_seconds
        self._releases: list[Release] = []
        self._yields: list[Yield] = []
        self._entered: list[FloatArray] = []
        self._took: list[tuple[MemberStep, float]] = []

    def state(self) -> OperatorState:
        """What waits before any member; ready when one of them is."""
        states = [member.state() for member in self.members]
        return OperatorState(
            self.id,
            sum(state.queued_tuples for state in states),
            sum(state.queued_bytes for state in states),
            min(state.oldest_arrival_seconds for state in states),
            any(state.ready for state in states),
        )

    def begin(self, max_tuples: int | None, slice_seconds: float | None) -> float:
        """Take tuples from the queues and all that follows from them; returns the seconds."""
        self._releases, self._yields, self._entered, self._took = [], [], [], []
        seconds = 0.0
        for member in self.members:
            if not member.state().ready:
                continue
            limit = None
            if any(not inlet.is_pipe for inlet in member.inlets):
                limit = self._limit(member, max_tuples, slice_seconds)
            seconds += member.begin(limit, None)
            self._pass_on(member)
        # Only now: among themselves the members are done, for all others they are under way.
        for member, arrival_seconds in self._took:
            member.in_flight_since = arrival_seconds
        seconds -= self.turn_seconds * max(0, len(self._took) - 1)
        self._set_ends(seconds)
        return seconds

    def _limit(
        self, member: MemberStep, max_tuples: int | None, slice_seconds: float | None
    ) -> int | None:
        if slice_seconds is None:
            return max_tuples
        each = self._mean_cost(member)
        fits = max(1, int(slice_seconds / each)) if each > 0 else max_tuples
        return fits if max_tuples is None or fits is None else min(fits, max_tuples)

    def _mean_cost(self, entry: MemberStep) -> float:
        """Mean seconds for one tuple at an entry and all that follows from it."""
        reach, seconds = {entry.id: 1.0}, 0.0
        for member in self.members:
            tuples = reach.get(member.id, 0.0)
            seconds += tuples * member.mean_cost
            for inlet, reader in self._pipe_readers(member):
                if inlet.is_pipe:
                    made = tuples * member.mean_selectivity
                    reach[reader] = reach.get(reader, 0.0) + made
        return seconds

    def _pipe_readers(self, member: MemberStep) -> list[tuple[Inlet, int]]:
        return [
            (inlet, other.id)
            for other in self.members
            for inlet in other.inlets
            if inlet.is_pipe and inlet.source == member.id
        ]

    def _pass_on(self, member: MemberStep) -> None:
        entered = [inlet for inlet in member.inlets if not inlet.is_pipe]
        releases, yields = member.finish()
        self._releases.extend(releases)
        self._took.append((member, float(member.last_arrivals[0])))
        if entered:
            self._entered.append(member.last_arrivals)
        for made in yields:
            for inlet in self.pipes[member.id]:
                inlet.buffer.append(made.arrival, made.mass)
            self._yields.append(made)

    def _set_ends(self, seconds: float) -> None:
        """Spread the outputs over the step in the order of the tuples they come from."""
        if not self._entered:
            return
        entered = np.sort(np.concatenate(self._entered))
        share = seconds / max(1, len(entered))
        self._yields = [
            made._replace(ends=share * _ranks(entered, made.arrival)) for made in self._yields
        ]

    def finish(self) -> tuple[list[Release], list[Yield]]:
        """Make the outputs known."""
        for member in self.members:
            member.in_flight_since = math.inf
        return self._releases, self._yields

    def reveal(self) -> WaitingTuples | None:
        """Nothing: the members' draws are not foretold together."""
        return None


def _ranks(entered: FloatArray, arrival: FloatArray) -> FloatArray:
    return np.searchsorted(entered, arrival, side="right").astype(np.float64)
