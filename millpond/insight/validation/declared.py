"""Catalog, declarations and inputs: each name is the same thing everywhere."""

from collections.abc import Iterable, Iterator, Mapping

from millpond.catalog import (
    Catalog,
    Declaration,
    Entry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    kind_of,
)
from millpond.identities import StreamId
from millpond.insight.validation.complaints import different, strangers
from millpond.intake.inputs import Inputs
from millpond.intake.intake import RelationIntake, StreamIntake
from millpond.planning.graph import Graph


def declarations(
    catalog: Catalog, declared: Iterable[Declaration], are_all_texts: bool
) -> Iterator[str]:
    """The catalog has what was declared; a store has the text of everything."""
    kinds = {key: kind_of(entry) for key, entry in catalog.entries.items()}
    said = {each.name.lower(): each.kind for each in declared}
    for name, kind in said.items():
        if kinds.get(name) != kind:
            yield f"{kind} {name} is declared, and the catalog has {kinds.get(name, 'nothing')}"
    if are_all_texts:
        yield from strangers("declarations of what is in the catalog", kinds, said)


def entries_of_inputs(catalog: Catalog, inputs: Inputs) -> Iterator[str]:
    """Each stream and relation of the catalog has an intake with its entry, and no other has."""
    streams = {each.identity: each for each in catalog.of_kind(StreamEntry)}
    relations = {each.identity: each for each in catalog.of_kind(RelationEntry)}
    tolerated = (each.tolerates for each in catalog.of_kind(QueryEntry) if each.tolerates)
    kept = (name for each in tolerated for name in each.all_kept)
    streams |= {StreamId(name): catalog.get(name) for name in kept}
    yield from different("streams of the catalog and of the inputs", streams, inputs.streams)
    yield from different("relations of the catalog and of the inputs", relations, inputs.relations)
    entries: dict[str, Entry] = streams | relations
    found: dict[str, Entry] = {name: intake.entry for name, intake in inputs.streams.items()}
    found |= {name: intake.entry for name, intake in inputs.relations.items()}
    for name in found.keys() & entries.keys():
        if found[name] != entries[name]:
            yield f"the input {name} has another entry than the catalog"


def names_of_inputs(inputs: Inputs) -> Iterator[str]:
    """What is remembered of sources and pushes is about inputs that are there."""
    known = {*inputs.streams, *inputs.relations}
    yield from strangers("inputs of sources", inputs.sources, known)
    yield from strangers("inputs that are held back", inputs.held, known)
    yield from strangers("inputs of which rows were read", inputs.read_rows, known)
    yield from strangers("inputs of which rows were put aside", inputs.bad_rows, known)
    yield from strangers("inputs of positions", inputs.source_positions, known)
    yield from strangers("inputs of keys", {name for name, _ in inputs.keys}, {*known, ""})


def queues_of_inputs(inputs: Inputs) -> Iterator[str]:
    """The queues that inputs fill are those that operators read, by their names."""
    for key, stream in inputs.streams.items():
        if inputs.queues.get(StreamId(key).queue) is not stream.queue:
            yield f"the queue of stream {key} is not the one that is read"
    for key, relation in inputs.relations.items():
        for place, queue in enumerate(relation.queues):
            name = queue.name
            is_named = name.relation == key and name.is_copy == (place > 0)
            if not is_named or inputs.queues.get(queue.name) is not queue:
                yield f"the queue {queue.name} of relation {key} is not the one that is read"


def copies_of_relations(relations: Mapping[str, RelationIntake], graph: Graph) -> Iterator[str]:
    """A copy of a relation is as far as the relation, and somebody reads it."""
    for relation in relations.values():
        for copy in relation.queues[1:]:
            if copy.heartbeat != relation.queue.heartbeat:
                yield (
                    f"{copy.name} is promised up to {copy.heartbeat}, and {relation.queue.name} "
                    f"up to {relation.queue.heartbeat}"
                )
            if not graph.readers(copy.name):
                yield f"nobody reads {copy.name}"


def late_tuples(streams: Mapping[str, StreamIntake]) -> Iterator[str]:
    """The tuples that are kept aside are among those that were counted."""
    for name, intake in streams.items():
        late = "late", intake.late_count, intake.late_log.kept
        violating = "violating", intake.violating_count, intake.violating_log.kept
        for which, count, kept in (late, violating):
            rows = sum(page.rows for page in kept)
            if rows > count or any(page.last >= count for page in kept):
                yield f"stream {name} keeps {rows} {which} tuples and has counted {count}"
            if any(page.is_free for page in kept):
                yield f"stream {name} keeps {which} tuples whose page is free"


def epochs(inputs: Inputs, graph: Graph) -> Iterator[str]:
    """Of every operator it is known when it began: after which times it reads the streams."""
    known = {0, *inputs.epochs.since}
    for identity, epoch in graph.epochs.items():
        if epoch not in known:
            yield f"operator {identity} began in epoch {epoch}, of which nothing is known"
    for epoch in known:
        if epoch > inputs.epochs.next:
            yield f"epoch {epoch} is known, and {inputs.epochs.next} is still to come"
