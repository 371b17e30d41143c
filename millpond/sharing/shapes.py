"""The shapes of queries: by these it is known which groups they may belong to."""

from dataclasses import dataclass
from functools import cached_property

from millpond.cql.algebra import ONE_ROW, RangeWindow, RelationScan, RowsWindow, StreamScan
from millpond.cql.node import Node
from millpond.errors import StateError
from millpond.identities import GroupId, QueueId, RelationId, StreamId
from millpond.intake.inputs import Inputs
from millpond.kernels.expressions import can_lower
from millpond.planning.shapes import Lifted, lift, outline
from millpond.schema import BEGINNING
from millpond.sharing.planned import QueryPlans


@dataclass(eq=False)
class Shapes:
    """The shapes of a query that begins at a time, if it has any; found when they are asked for."""

    plans: QueryPlans | None
    """What may be shared of it: nothing if there is none."""
    epoch: int
    is_late: bool = False
    """Whether it may belong to a group whose queries began at different times."""

    @cached_property
    def outline(self) -> int:
        """The outline of the query's plan, which few other plans have."""
        if self.plans is None:
            return 0
        known = self.plans.shaped
        return outline(self.plans.optimised) if known is None else known.outline

    @cached_property
    def usual(self) -> Lifted | None:
        """The query's shape among queries that begin when it does."""
        if self.plans is None:
            return None
        known = self.plans.shaped
        return lift(self.plans.optimised, can_lower) if known is None else known.usual

    @cached_property
    def late(self) -> Lifted | None:
        """The query's shape among late-comers, which begin at any time."""
        if self.plans is None or not self.is_late:
            return None
        known = self.plans.shaped
        if known is None:
            return lift(self.plans.optimised, can_lower, is_late=True)
        return known.late

    @cached_property
    def whole(self) -> tuple[Node | None, int]:
        """What runs once however many queries have it, where queries stand alone.

        Those that begin later have operators of their own until they hold the same.
        """
        plan = None if self.plans is None else self.plans.optimised
        return plan, 0 if plan is None or _passes(plan) else self.epoch

    @property
    def is_of_windows(self) -> bool:
        """Whether the query differs from others of its shape in windows and samples only."""
        return self.usual is not None and self.usual.is_of_windows

    @property
    def usual_name(self) -> GroupId | None:
        """The name of the query's group among queries that begin when it does."""
        return None if self.usual is None else GroupId.of(self.usual.shape, self.epoch)

    @property
    def late_name(self) -> GroupId | None:
        """The name of the query's group among late-comers."""
        return None if self.late is None else GroupId.of(self.late.shape, None)

    @property
    def names(self) -> list[GroupId]:
        """The groups the query may belong to, that of late-comers first."""
        return [name for name in (self.late_name, self.usual_name) if name is not None]

    def in_own_words(self, name: GroupId) -> Lifted:
        """The same, made of the query's own plan and not of one like it."""
        plan = None if self.plans is None else self.plans.optimised
        lifted = None if plan is None else lift(plan, can_lower, is_late=name.is_late)
        if lifted is None:
            raise StateError(f"internal: a query does not belong to {name}")
        return lifted

    def lifted(self, name: GroupId) -> Lifted:
        """The shape by which the query belongs to a group."""
        found = self.late if name == self.late_name else self.usual
        if found is None or name not in self.names:
            raise StateError(f"internal: a query does not belong to {name}")
        return found


def _passes(plan: Node) -> bool:
    """Whether what was in a plan's windows leaves them sometime, whatever comes."""
    for node in plan.walk():
        if isinstance(node, RowsWindow) and (node.partition or node.slide_rows is not None):
            return False
        if isinstance(node, RangeWindow) and node.length_ticks is None:
            return False
    return True


def shapes_of(plans: QueryPlans, epoch: int, inputs: Inputs) -> Shapes:
    """The shapes of a query that begins in an epoch, with others like it.

    It has none with ON ERROR SKIP, as what it leaves out is its own.
    """
    if plans.aside is not None:
        return Shapes(None, epoch)
    plan = plans.optimised if plans.shaped is None else plans.shaped.plan
    since = inputs.epochs.since_of(epoch)
    return Shapes(plans, epoch, epoch > 0 and _has_relations_behind(plan, since, inputs))


def _has_relations_behind(plan: Node, since: dict[QueueId, int], inputs: Inputs) -> bool:
    """Whether a plan begins to read its streams behind all that has happened to its relations.

    Then rows that were there before are the same to it as rows that were there from the beginning.
    """
    nodes = list(plan.walk())
    streams = [
        since.get(StreamId(node.name).queue, BEGINNING - 1)
        for node in nodes
        if isinstance(node, StreamScan)
    ]
    relations = [
        inputs.relations[RelationId(node.name)].queue.heartbeat
        for node in nodes
        if isinstance(node, RelationScan) and node.name != ONE_ROW.name
    ]
    return bool(streams) and max(relations, default=BEGINNING - 1) <= min(streams)
