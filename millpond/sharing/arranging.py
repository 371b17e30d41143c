"""Decides how queries run that begin, or begin anew; nothing changes but a draft.

What comes of it are transitions: an epoch and copies of relations for who reads them from now on,
groups, and for each query how it runs. Others may run otherwise from then on too, where nobody can
tell: they began at the same time and have put out nothing.
"""

from dataclasses import replace

from millpond.catalog import QueryEntry
from millpond.identities import GroupId, OperatorId, QueryId, QueryName, QueueId, StreamId
from millpond.intake.epochs import Times
from millpond.intake.inputs import is_one_row
from millpond.intake.relation_copies import copied
from millpond.intake.transitions import EpochBegan
from millpond.planning.draft import Draft
from millpond.planning.graph import Addition
from millpond.planning.nodes import Totals
from millpond.planning.shapes import outline
from millpond.schema import BEGINNING
from millpond.sharing.arrangement import Begun, GroupFounded, Membership
from millpond.sharing.beginning_anew import (
    Renewal,
    Succession,
    begins_again,
    changes_back,
    holds_answer,
)
from millpond.sharing.containments import SELECTIONS
from millpond.sharing.planned import QueryPlans, planned
from millpond.sharing.queries import Queries
from millpond.sharing.shapes import Shapes, shapes_of
from millpond.sharing.sketch import Sketch
from millpond.storage.pages import Page
from millpond.storage.transitions import Transition


class Arranging:
    """Decides for the queries of one statement."""

    def __init__(self, queries: Queries) -> None:
        self._queries, self._ground = queries, queries.ground
        self._draft = Draft(queries.graph)
        self._numbers: dict[GroupId, int] = {}
        """The next numbers in groups that queries come to."""
        self._outputs: dict[GroupId, OperatorId] = {}
        """The operators that put out groups that are founded."""
        self._copies: dict[QueueId, None] = {}
        """The copies of relations that are to be made."""
        self._epochs: list[EpochBegan] = []
        self.begun: dict[QueryId, Begun | GroupFounded] = {}
        """How queries run, and which groups are founded, in order."""
        self.told: dict[QueryId, tuple[str, ...]] = {}
        """What was decided about queries, in words."""

    def decided(self) -> list[Transition]:
        """What is to happen, in order."""
        copies = [copied(self._ground.inputs, queue) for queue in self._copies]
        return [*self._epochs, *copies, *self.begun.values()]

    def since(self, epoch: int) -> Times:
        """After which times the queries of an epoch read the streams, also of one that begins."""
        begins = {each.number: each.since for each in self._epochs}
        return begins.get(epoch, self._ground.inputs.epochs.since_of(epoch))

    # -- when a query begins ---------------------------------------------------------------

    def create(self, entry: QueryEntry, plans: QueryPlans) -> None:
        """A query is new: it runs from now on, unless it is not active."""
        if entry.active and entry.begins is not None:
            streams = self._ground.inputs.streams
            since: dict[QueueId, int] = {StreamId(name).queue: entry.begins - 1 for name in streams}
            self._alone(self._sketch(plans, Shapes(None, self._epoch_after(since)), is_anew=True))
        elif entry.active:
            self._begin(plans, self._epoch_now())

    def activate(self, entry: QueryEntry) -> None:
        """A query stood still, or has failed: what its answer held is taken out, and it begins."""
        plans = planned(entry, self._queries.templates)
        if not holds_answer(self._ground, entry):
            self._begin(plans, self._epoch_now())
            return
        at = begins_again(self._ground, entry)
        self._begin_at(Renewal(plans, None, {}, at), at)

    def succeed(self, changed: QueryEntry, way: Succession) -> None:
        """A query has another policy: it goes on in this way."""
        with self._queries.without(changed.identity):
            self._succeed(changed, way)

    def _succeed(self, changed: QueryEntry, way: Succession) -> None:
        epoch = self._queries.epoch_of(changed.name)
        begun = self._queries.begins.get(changed.identity)
        if way.since is not None:
            epoch = self._epoch_after(way.since)
            self._alone(self._sketch(way.plans, Shapes(None, epoch), is_anew=True), begun)
        elif way.has_others and epoch is not None and begun is not None:
            self._alone(self._sketch(way.plans, Shapes(None, epoch), is_anew=True), begun)
        elif way.has_others and epoch is not None:
            self._begin(way.plans, epoch)

    def begin_anew(self, changed: QueryEntry, anew: Renewal) -> None:
        """A query has a window of another length: it ends, and begins anew."""
        begun = self._queries.begins.get(changed.identity, BEGINNING - 1)
        with self._queries.without(changed.identity):
            if anew.epoch is not None and begun < BEGINNING:
                self._begin(anew.plans, anew.epoch)
            else:
                self._begin_at(anew, max(begun, anew.answered))

    def _begin(self, plans: QueryPlans, epoch: int) -> None:
        """A query runs with others of its shape or by itself."""
        self._arrange(self._sketch(plans, shapes_of(plans, epoch, self._ground.inputs)))

    def _begin_at(self, anew: Renewal, at: int) -> None:
        """A query begins anew whose answer up to a time is known."""
        is_now, is_stream = anew.is_now(self._ground), anew.plans.entry.plan.is_stream
        taken_back = None if is_stream else self._taken_back(anew.plans.entry.identity, at)
        epoch = self._epoch_now() if is_now else self._epoch_after(anew.since)
        sketch = self._sketch(anew.plans, shapes_of(anew.plans, epoch, self._ground.inputs))
        group = self._queries.groups.arrange(sketch).group if is_now else None
        if group is not None and group.is_late:  # nothing is there before it begins
            self._join(sketch, group)
        else:
            alone = self._sketch(anew.plans, Shapes(None, epoch), is_anew=True)
            self._alone(alone, None if is_stream else at)
        if taken_back is not None:
            self._take_back(anew.plans.entry.identity, taken_back, at)

    def _taken_back(self, key: QueryId, at: int) -> Page | None:
        """The changes that take out what the answer of a query holds."""
        table = changes_back(self._ground.deliveries.of(key), at)
        return None if table is None else Page.of(self._ground.store, table)

    def _take_back(self, key: QueryId, page: Page, at: int) -> None:
        """What the answer of a query holds is taken out as it begins anew."""
        begun = self.begun[key]
        if isinstance(begun, Begun):
            self.begun[key] = replace(begun, taken_back=page, taken_at=at)

    def _epoch_now(self) -> int:
        """The epoch of who sees what comes from now on."""
        epochs = self._ground.inputs.epochs
        if epochs.has_moved:
            self._epochs.append(EpochBegan(epochs.next, epochs.since_of(epochs.next), True))
        return epochs.next

    def _epoch_after(self, since: dict[QueueId, int]) -> int:
        """An epoch of its own for a query that reads streams, by their queues, after times."""
        number = self._ground.inputs.epochs.last + 1
        self._epochs.append(EpochBegan(number, since, False))
        return number

    # -- how it runs -----------------------------------------------------------------------

    def _sketch(self, plans: QueryPlans, shapes: Shapes, is_anew: bool = False) -> Sketch:
        return Sketch(plans, shapes, self._ground.settings.sharing, is_anew)

    def _arrange(self, sketch: Sketch) -> None:
        sketch = self._queries.groups.arrange(sketch)
        if sketch.group is None:
            self._alone(sketch)
        else:
            self._join(sketch, sketch.group)

    def _alone(self, sketch: Sketch, begins: int | None = None) -> None:
        """A query runs by itself."""
        key, epoch, plans = sketch.entry.identity, sketch.shapes.epoch, sketch.plans
        for each in self._queries.passes:
            sketch = each.arrange(sketch)
        self.told[key] = sketch.told
        output = self._draft.add_query(
            QueryName(sketch.entry.name),
            sketch.plan,
            epoch,
            apart=sketch.apart,
            numbers=sketch.numbers,
            begins=begins,
        )
        aside = None
        if plans.aside is not None and plans.optimised_aside is not None:
            aside = self._draft.add_query(
                QueryName(plans.aside.name), plans.optimised_aside, epoch, numbers=sketch.numbers
            )
        is_late = None if sketch.shapes.plans is None else sketch.shapes.is_late
        self.begun[key] = Begun(
            key,
            epoch,
            output,
            self._added(),
            aside,
            begins,
            chosen=dict(sketch.chosen),
            is_late=is_late,
            plans=plans,
        )
        self._bring_to(sketch.sums - sketch.totals, epoch)

    def _bring_to(self, totals: frozenset[Totals], epoch: int) -> None:
        """Has others that began with a query read the totals that it reads."""
        queries = self._queries
        for key in queries.shared_totals.could_read(totals, epoch):
            shapes = queries.groups.how_alone(key)
            is_of_then = shapes is not None and shapes.epoch == epoch
            if shapes is None or not is_of_then or key in self.begun or queries.has_moved(key):
                continue
            plans = planned(self._ground.query_entry(key), queries.templates)
            sketch = self._sketch(plans, shapes, is_anew=True)
            read = queries.containments.chosen(key)
            self._alone(replace(sketch.with_choice(SELECTIONS, read), totals=totals))

    def _join(self, sketch: Sketch, name: GroupId) -> None:
        """A query belongs to a group, there already or to be founded."""
        if self._queries.groups.get(name) is None and name not in self._outputs:
            self._bring_along(name, sketch.shapes.epoch)
        self._member(name, sketch.plans, sketch.shapes)

    def _bring_along(self, name: GroupId, epoch: int) -> None:
        """Has queries that stood alone belong to a group that is about to be founded."""
        queries = self._queries
        for key, shapes in queries.groups.alone(name, epoch).items():
            if not queries.has_moved(key):
                entry = self._ground.query_entry(key)
                self._member(name, planned(entry, queries.templates), shapes)

    def _member(self, name: GroupId, plans: QueryPlans, shapes: Shapes) -> None:
        lifted, group = shapes.lifted(name), self._queries.groups.get(name)
        if group is not None:
            output, number = group.output, self._numbers.get(name, group.next_number)
        else:
            if name not in self._outputs:
                self._outputs[name] = self._found(name, plans, shapes)
            output, number = self._outputs[name], self._numbers.get(name, 0)
        self._numbers[name] = number + 1
        since = self._ground.inputs.epochs.since_of(shapes.epoch)
        queues = (StreamId(each).queue for each in lifted.streams if name.is_late)
        seen: dict[QueueId, int] = {queue: since.get(queue, BEGINNING - 1) for queue in queues}
        member = Membership(name, number, lifted.constants, seen)
        key = plans.entry.identity
        self.begun[key] = Begun(key, shapes.epoch, output, member=member, plans=plans)

    def _found(self, name: GroupId, plans: QueryPlans, shapes: Shapes) -> OperatorId:
        """A group is founded by its first query; the operator that puts it out."""
        lifted = shapes.in_own_words(name)
        output = self._draft.add_query(name, lifted.plan, shapes.epoch)
        streams = lifted.streams if name.is_late else ()
        facts = lifted.plan, lifted.constants, streams, outline(plans.optimised)
        self.begun[name] = GroupFounded(name, shapes.epoch, output, *facts, self._added())
        return output

    def _added(self) -> Addition:
        """What was drafted; the copies of relations that it reads are to be made."""
        added, there = self._draft.take(), self._ground.inputs.queues
        for queue in (queue for each in added.operators for queue in each.operator.queues()):
            if queue.is_copy and queue not in there and not is_one_row(queue):
                self._copies[queue] = None
        return added
