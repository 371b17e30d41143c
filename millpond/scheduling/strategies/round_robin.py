"""Round-robin (Chain paper, "comparison with other strategies"; STREAM's first scheduler).

Cycles over the operators and gives each ready one a fixed quantum, of tuples or of time. A query
of weight w gets w times the quantum.
"""

from dataclasses import replace
from heapq import heappop, heappush

from millpond.scheduling.decisions import Decision, Service
from millpond.scheduling.snapshot import Observation, PlanSnapshot


class RoundRobin:
    """Runs the next ready operator behind the one that ran last, in plan order."""

    def __init__(self, max_tuples: int | None = None, slice_seconds: float | None = None) -> None:
        self.service = Service(max_tuples, slice_seconds)
        self._quantum: dict[int, Service] = {}
        self._position: dict[int, int] = {}
        self._order: tuple[int, ...] = ()
        self._ready: set[int] = set()
        self._listed: set[int] = set()
        self._this_round: list[int] = []
        self._next_round: list[int] = []
        self._cursor = -1

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Cycle over the new plan, in upstream-first order."""
        last = self._order[self._cursor] if self._cursor >= 0 else None
        self._order = plan.upstream_first
        self._position = {operator: place for place, operator in enumerate(self._order)}
        self._quantum = {each.id: self._weighted(each.weight) for each in plan.operators}
        self._cursor = self._position.get(last, -1) if last is not None else -1
        self._ready.clear()
        self._listed.clear()
        self._this_round.clear()
        self._next_round.clear()

    def observe(self, observation: Observation) -> None:
        """Note which operators became ready or ceased to be."""
        for state in observation.changed:
            place = self._position[state.operator]
            if not state.ready:
                self._ready.discard(place)
            else:
                self._ready.add(place)
                self._list(place)

    def decide(self) -> Decision | None:
        """Serve the next ready operator of the cycle."""
        place = self._next_place()
        if place is None:
            return None
        self._cursor = place
        self._list(place)
        operator = self._order[place]
        return self._quantum[operator].run(operator)

    def _list(self, place: int) -> None:
        if place not in self._listed:
            self._listed.add(place)
            heappush(self._this_round if place > self._cursor else self._next_round, place)

    def _next_place(self) -> int | None:
        for _ in range(2):
            while self._this_round:
                place = heappop(self._this_round)
                self._listed.discard(place)
                if place in self._ready:
                    return place
            self._this_round, self._next_round = self._next_round, []
            self._cursor = -1
        return None

    def _weighted(self, weight: float) -> Service:
        tuples, seconds = self.service.max_tuples, self.service.slice_seconds
        return replace(
            self.service,
            max_tuples=None if tuples is None else max(1, round(tuples * weight)),
            slice_seconds=None if seconds is None else seconds * weight,
        )
