"""Where queues stand, and so which operators are units; both change while data flows."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from millpond.execution.picture import Picture
from millpond.execution.running_operators import RunningOperators
from millpond.execution.steps import EXECUTORS, Outcome
from millpond.execution.telling import Telling
from millpond.execution.under_way import UnderWay
from millpond.identities import OperatorId
from millpond.planning.graph import operators_in
from millpond.planning.placement import OpenUnits, QueuePlacement
from millpond.scheduling.threads.virtual_operators import virtual_operators, without_cycles

QUICK_SECONDS = 0.25
"""What takes the executors less is done in one job with others that read the same pages: most of it
is the job itself. What takes longer holds nobody up."""


class Regrouping:
    """Has the units be as the placement of queues says."""

    def __init__(
        self,
        operators: RunningOperators,
        picture: Picture,
        under_way: UnderWay,
        telling: Telling,
    ) -> None:
        self.quick: set[OperatorId] = set()
        """The operators that the executors were seen to do quickly: a job does several."""
        self._operators = operators
        self._picture = picture
        self._under_way = under_way
        self._telling = telling
        self._placement = QueuePlacement()
        self._open_units = OpenUnits()
        self._is_done = True
        """Whether the units that are wanted are those of the present graph and placement."""

    @property
    def is_due(self) -> bool:
        """Whether other units may be wanted."""
        return not self._is_done

    @property
    def placement(self) -> QueuePlacement:
        """Where queues are to be."""
        return self._placement

    @placement.setter
    def placement(self, placement: QueuePlacement) -> None:
        there = self._operators.running.keys()
        concerned = self._placement.differing(placement) & there
        if bool(placement.chosen) != bool(self._placement.chosen):
            concerned |= there  # shapes are one or apart, new ones too
        self._operators.units.to_change |= concerned
        self._placement = placement
        self._is_done = False
        self._under_way.wake()

    def partitions_changed(self) -> None:
        """Users have said something else of partitions."""
        self._telling.version += 1
        self._is_done = False
        self._under_way.wake()

    def graph_changed(self) -> None:
        """There are other operators, or they read others."""
        self._telling.version += 1
        self._is_done = False

    def notice_if_quick(self, identity: OperatorId, outcome: Outcome) -> None:
        """An operator that the executors do quickly, but for the first time, may join others."""
        steps = self._operators.statistics[identity].tally.executor_steps
        is_far = outcome.place == EXECUTORS and steps > 1
        if is_far and outcome.seconds < QUICK_SECONDS and identity not in self.quick:
            self.quick.add(identity)
            self._operators.units.to_change.add(identity)
            self._is_done = False

    def regroup(self) -> None:
        """Has the units be as the placement says, once those concerned are not at work."""
        operators = self._operators
        if not self._is_done:
            self._is_done = True
            self._divide()
            groups = self.groups(self._near(operators.units.to_change))
            operators.units.want(
                tuple(operators.running[each] for each in group) for group in groups
            )
        if operators.units.change(self._under_way.is_at_work):
            self._telling.version += 1
            self._telling.changed |= operators.running.keys()

    def _divide(self) -> None:
        """Has queues between the partitions of now."""
        partitions = self._operators.partitions
        partitions.assign()
        if partitions.of != self._placement.partitions:
            divided = replace(self._placement, partitions=partitions.of)
            there = self._operators.running.keys()
            self._operators.units.to_change |= self._placement.differing(divided) & there
            self._placement = divided
            self._telling.version += 1

    def groups(self, among: Collection[OperatorId] | None = None) -> list[tuple[OperatorId, ...]]:
        """The operators that are to be virtual operators, upstream first in each.

        Or those ``among`` some that no other reads or is read by, with the shapes beside them.
        """
        graph = self._operators.graph
        plan = self._picture.shape(self._operators.running if among is None else among)
        edges = self._placement.queues(graph, among)
        queues = frozenset((one.number, other.number) for one, other in edges)
        found = virtual_operators(plan, without_cycles(plan, queues)).values()
        named = [tuple(map(OperatorId.numbered, sorted(group))) for group in found]
        open_units = self._open_units_beside(among)
        return self._placement.beside(graph, named, open_units, self.quick.__contains__)

    def _open_units_beside(self, among: Collection[OperatorId] | None) -> OpenUnits:
        """The units of shapes that those ``among`` some may be put to."""
        if among is None:
            return OpenUnits()
        wants, regrouped = self._operators.units.wants, set(among)
        self._open_units.is_there = lambda unit: wants(unit) and regrouped.isdisjoint(unit)
        return self._open_units

    def _near(self, identities: Iterable[OperatorId]) -> set[OperatorId]:
        """Operators with all that they read, that reads them and that is or is to be a unit with
        them, however far from them."""
        operators, found = self._operators, set(identities)
        waiting = list(found)
        while waiting:
            each = waiting.pop()
            inputs = operators_in(operators.running[each].inputs)
            read = (name for name in inputs if name in operators.running)
            readers = operators.graph.readers(each)
            near = {*readers, *read, *operators.units.near(each)} - found
            found |= near
            waiting += near
        return found
