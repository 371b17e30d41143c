"""An engine as it is, in transitions: a log that begins with them needs nothing from before.

What is recovered from them is what would be recovered from the whole log, down to the numbers of
operators: names in the log keep their meaning.
"""

from collections.abc import Iterator
from dataclasses import asdict

from millpond.catalog import Declaration, QueryEntry
from millpond.cql.functions_in_use import functions_in_use
from millpond.delivery.transitions import results_kept, sink_fed
from millpond.durability.transitions import CutMade, OperatorKept, QueuesPlaced
from millpond.identities import OperatorId, QueryId
from millpond.intake.inputs import is_one_row
from millpond.intake.transitions import (
    ConstraintLeft,
    Contradicted,
    EpochsKept,
    KeysPushed,
    LateKept,
    PunctuationsKept,
    QueueKept,
    RelationChanged,
    SourceRead,
    StreamCame,
)
from millpond.sharing.arrangement import Begun, Failed, GraphKept, GroupFounded, Membership, needs
from millpond.sharing.groups import Group
from millpond.sharing.queries import Queries
from millpond.sharing.statement import EntryKept, ExecutedKept, Said
from millpond.storage.transitions import Transition


def checkpoint(queries: Queries) -> Iterator[Transition]:
    """What makes an empty engine this one."""
    ground, graph = queries.ground, queries.graph
    yield ground.opened
    for text, position in ground.memory.settings.values():
        yield Said(text, position.line, position.column)
    yield from needs(functions_in_use(ground.catalog))
    yield from _entries(queries)
    yield _epochs(queries)
    yield from _groups(queries)
    known = dict(graph.settled), dict(graph.counting), dict(graph.copied)
    yield GraphKept(graph.whole(), graph.next_number, *known)
    yield from (begun for group in queries.groups for begun in _members(group))
    yield from _alone(queries)
    yield from _inputs(queries)
    yield from (CutMade(**asdict(cut)) for cut in queries.runtime.cutting.history)
    yield from _queues(queries)
    yield from _operators(queries)
    yield QueuesPlaced(_by_hand(queries))
    yield from _results(queries)
    yield from (Failed((asdict(failure),)) for failure in list(queries.failures))
    yield ExecutedKept(dict(ground.memory.executed))


# -- what is declared, and runs --------------------------------------------------------------


def _entries(queries: Queries) -> Iterator[EntryKept]:
    texts = {each.name.lower(): each for each in queries.ground.memory.living()}
    for key, entry in queries.ground.catalog.entries.items():
        said: Declaration = texts[key]
        yield EntryKept(entry, said.text, said.position.line, said.position.column)


def _epochs(queries: Queries) -> EpochsKept:
    epochs = queries.ground.inputs.epochs
    relations = queries.ground.inputs.relations.values()
    copies = tuple(queue.name for relation in relations for queue in relation.queues[1:])
    return EpochsKept(epochs.last, epochs.has_moved, tuple(epochs.since.items()), copies)


def _groups(queries: Queries) -> Iterator[GroupFounded]:
    for group in queries.groups:
        facts = group.log.entry.plan, group.members.like, group.streams, group.outline
        number = group.next_number
        yield GroupFounded(group.name, group.epoch, group.output, *facts, next_number=number)


def _members(group: Group) -> Iterator[Begun]:
    constants = group.members.constants()
    for number, name in group.queries.items():
        member = Membership(group.name, number, constants[number], group.since.get(number, {}))
        yield Begun(QueryId(name), group.epoch, group.output, member=member)


def _alone(queries: Queries) -> Iterator[Begun]:
    for entry in queries.ground.catalog.of_kind(QueryEntry):
        key = entry.identity
        output = queries.outputs.get(key)
        if output is None or queries.groups.of(key) is not None:
            continue
        yield Begun(
            key,
            queries.graph.epochs[output],
            output,
            aside=queries.outputs.get(key.aside),
            begins=queries.begins.get(key),
            chosen=queries.chosen(key),
            is_late=queries.groups.is_late_alone(key),
        )


# -- what has come in ------------------------------------------------------------------------


def _inputs(queries: Queries) -> Iterator[Transition]:
    inputs = queries.ground.inputs
    has_moved = inputs.epochs.has_moved
    for key, stream in inputs.streams.items():
        reached = stream.largest, stream.arrived, stream.late_count, stream.queue.heartbeat
        seen = {name: each.facts for name, each in stream.orderings.items()}
        yield StreamCame(
            key,
            *reached,
            moves=has_moved,
            violating_count=stream.violating_count,
            seen=seen,
            dropped_count=stream.dropped_count,
            dropped_until=stream.dropped_until,
            disorder=() if stream.disorder is None else stream.disorder.data(),
        )
        for remnant, _ in stream.remnants.values():
            yield ConstraintLeft(key, remnant)
        for policy, kept in stream.punctuations.items():
            told = tuple(each.data() for each in kept.patterns)
            yield PunctuationsKept(key, policy, told, kept.forgotten)
        if stream.contradicted:
            yield Contradicted(key, dict(stream.contradicted))
        yield LateKept(key, tuple(stream.late_log.kept), tuple(stream.violating_log.kept))
    for key, relation in inputs.relations.items():
        yield RelationChanged(key, relation.last_change, relation.changed_rows, has_moved)
    for key, rows in inputs.read_rows.items():
        yield SourceRead(key, rows, inputs.bad_rows.get(key, 0), inputs.source_positions.get(key))
    yield KeysPushed(tuple(inputs.keys))


def _queues(queries: Queries) -> Iterator[QueueKept]:
    for name, queue in sorted(queries.ground.inputs.queues.items()):
        if not is_one_row(name):
            reached = queue.heartbeat, queue.freed_until
            placed = tuple(queue.placed_pages)
            yield QueueKept(name, *reached, placed, queue.base, queue.base_time)


# -- what was done ---------------------------------------------------------------------------


def _operators(queries: Queries) -> Iterator[OperatorKept]:
    for identity, running in sorted(queries.runtime.running.items()):
        state = None if running.state is None else running.state.present()
        yield OperatorKept(identity, running.cursor, state, dict(running.reads_since))


def _by_hand(queries: Queries) -> dict[OperatorId, bool]:
    """Where a user has put queues in, or taken them out, of what is still there."""
    said = queries.runtime.placement.by_hand
    is_part = queries.runtime.cutting.cuts.is_part
    kept = [name for name in sorted(said) if name in queries.graph.operators or is_part(name)]
    return {name: said[name] for name in kept}


def _results(queries: Queries) -> Iterator[Transition]:
    for log in sorted(queries.ground.deliveries, key=lambda each: each.entry.identity):
        yield results_kept(log)
        if log.sink is not None or log.sink_mark is not None:
            yield sink_fed(log)
