"""The running operators are those of the graph, and as far as their queues and readers say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from millpond.catalog import Catalog, QueryEntry
from millpond.delivery.deliveries import Deliveries
from millpond.identities import OperatorId, QueueId
from millpond.insight.validation.complaints import different, recounted, strangers
from millpond.insight.validation.graphs import Reads
from millpond.intake.inputs import Inputs, is_one_row
from millpond.planning.graph import Graph, operators_in
from millpond.planning.physical import OutputOperator
from millpond.sharing.groups import Groups
from millpond.storage.pages import Page
from millpond.storage.queues import Queue

if TYPE_CHECKING:
    from millpond.execution.operators.running import RunningOperator
    from millpond.execution.runtime import EngineRuntime
    from millpond.execution.units import Unit

Running = Mapping[OperatorId, "RunningOperator"]


def who_runs(runtime: EngineRuntime, graph: Graph) -> Iterator[str]:
    """The operators of the graph run, each in one unit, and no others do."""
    there = graph.operators
    yield from different("operators of the graph, and that run", there, runtime.running)
    yield from different("operators, and those measured", there, runtime.statistics)
    yield from different("operators, and those in units", there, runtime.units.of)
    yield from strangers("operators seen to be quick", runtime.regrouping.quick, there)
    yield from strangers("operators that have changed", runtime.telling.changed, there)


def definitions(running: Running, graph: Graph, reads: Reads) -> Iterator[str]:
    """An operator does what the graph says, with the queues that it says."""
    for identity in running.keys() & graph.operators.keys():
        each = running[identity]
        if identity.owner == identity and each.operator != graph.operators[identity]:
            yield f"{identity} does something else than the graph says"
        read, wanted = set(each.inputs), set(reads[identity])
        if read != wanted:
            yield from recounted(f"queues that {identity} reads", read, wanted)


def subscriptions(running: Running, queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """An operator reads the queues there are, and these know it."""
    for identity, each in running.items():
        names = {queue.name for queue, _ in each.subscriptions}
        yield from recounted("subscriptions", names, set(each.inputs), identity)
        for queue, reader in (*each.subscriptions, *each.past):
            if queues.get(queue.name) is not queue:
                yield f"{identity} reads a queue {queue.name} that is gone"
            elif reader not in queue.readers:
                yield f"{identity} reads {queue.name}, which does not know it"


def workers(running: Running, queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """Who is said to work on a queue is an operator; others may look on."""
    known = {id(reader) for each in running.values() for _, reader in each.subscriptions}
    for name, queue in queues.items():
        for reader in queue.readers:
            if reader.works and id(reader) not in known:
                yield f"{name} has a reader at {reader.cursor} that is no operator"


def cursors(running: Running, queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """Readers are where their operator is, which has promised so much and no more."""
    for identity, each in running.items():
        for queue, reader in (*each.subscriptions, *each.past):
            if reader.cursor != each.cursor:
                where = f"cursor of {identity} in {queue.name}"
                yield from recounted(where, reader.cursor, each.cursor)
        if identity in queues:
            yield from recounted("heartbeat", queues[identity].heartbeat, each.cursor, identity)


def heartbeats(running: Running) -> Iterator[str]:
    """Nobody is further than what is promised of his inputs."""
    for identity, each in running.items():
        for queue, _ in each.subscriptions:
            if each.cursor > queue.heartbeat:
                yield (
                    f"{identity} is at {each.cursor}, and {queue.name} is promised up to "
                    f"{queue.heartbeat}"
                )


def freed(running: Running) -> Iterator[str]:
    """Nothing is freed before an operator that begins to read then has come so far."""
    for identity, each in running.items():
        for queue, reader in each.subscriptions:
            if queue.freed_until > max(reader.cursor, reader.since):
                yield (
                    f"{identity} is at {each.cursor} in {queue.name}, which is freed up to "
                    f"{queue.freed_until}"
                )


def claims(runtime: EngineRuntime) -> Iterator[str]:
    """Who is not at work has claimed nothing that is not done."""
    for identity, each in runtime.running.items():
        unit = runtime.units.of.get(identity)
        is_at_work = unit is not None and unit.identity in runtime.under_way.steps
        if each.claimed < each.cursor or (each.claimed > each.cursor and not is_at_work):
            yield f"{identity} is at {each.cursor}, and has claimed up to {each.claimed}"


def steps(runtime: EngineRuntime) -> Iterator[str]:
    """Steps under way are those of units that are there, and are not over."""
    for identity, some in runtime.under_way.steps.items():
        unit = runtime.units.of.get(identity)
        if not some or any(step.unit is not unit or step.is_over for step in some):
            yield f"steps of {identity} are under way that are nobody's, or over"


def units(runtime: EngineRuntime) -> Iterator[str]:
    """A unit has its members, which run, and reads what they read of others."""
    for unit in runtime.units:
        for member in unit.members:
            if runtime.units.of.get(member.identity) is not unit:
                yield f"{member.identity} is in the unit {unit.identity}, and in another one"
            if runtime.running.get(member.identity) is not member:
                yield f"{member.identity} is in the unit {unit.identity}, and does not run"
        read = {queue.name for member in unit.members for queue, _ in member.subscriptions}
        entries = {queue.name for queue in unit.entries}
        yield from recounted("entries", entries, read - unit.identities, unit.identity)


def circles(runtime: EngineRuntime) -> Iterator[str]:
    """No unit reads, by way of others, what it has put out."""
    read = {unit: set(_units_read(runtime, unit)) for unit in runtime.units}
    while free := [unit for unit, before in read.items() if not before & read.keys()]:
        for unit in free:
            del read[unit]
    if read:
        names = ", ".join(sorted(unit.identity for unit in read))
        yield f"units read one another in a circle: {names}"


def _units_read(runtime: EngineRuntime, unit: Unit) -> Iterator[Unit]:
    for identity in operators_in(queue.name for queue in unit.entries):
        yield runtime.units.of[identity]


def queues_of_operators(runtime: EngineRuntime, inputs: Inputs) -> Iterator[str]:
    """Every queue is that of an input, of an operator, or of a part that was fused again."""
    own: set[QueueId] = {*runtime.running, *runtime.cutting._left}
    own |= {
        queue.name
        for name in (*inputs.streams, *inputs.relations)
        for queue in inputs.queues_of(name)
    }
    own |= {name for name in inputs.queues if is_one_row(name)}
    yield from different("queues, and who writes them", inputs.queues, own)
    for name in runtime.cutting._left & runtime.running.keys():
        yield f"{name} was fused again, and runs"


def parts(runtime: EngineRuntime, graph: Graph) -> Iterator[str]:
    """Parts that are cut off are those of operators that are there."""
    apart = {each for each in graph.operators if each.owner != each}
    known = (name for nodes in runtime.cutting.cuts._nodes.values() for name in nodes)
    yield from different("parts that are cut off", known, apart)
    yield from strangers("operators with parts", (each.owner for each in apart), graph.operators)


def answered(runtime: EngineRuntime, deliveries: Deliveries) -> Iterator[str]:
    """The results of a query are complete up to where its output operator is."""
    logs = {log.entry.identity: log for log in deliveries}
    for identity, each in runtime.running.items():
        if isinstance(each.operator, OutputOperator):
            log = logs.get(each.operator.query.key)
            if log is None or log.own_until < each.cursor:
                until = None if log is None else log.own_until
                yield f"{identity} is at {each.cursor}, and its results are known up to {until}"


def weights(
    runtime: EngineRuntime, catalog: Catalog, groups: Groups, outputs: Mapping[str, str]
) -> Iterator[str]:
    """Strategies know how much queries and groups matter."""
    wanted = {group.name: group.weight for group in groups}
    wanted |= {
        entry.name: entry.weight
        for entry in catalog.of_kind(QueryEntry)
        if entry.identity in outputs and groups.of(entry.name) is None
    }
    for name, weight in wanted.items():
        yield from recounted("weight", runtime.picture.weights.get(name), weight, name)


def pins(runtime: EngineRuntime, queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """A page of a queue is pinned as often as steps under way read it."""
    pinned: Counter[Page] = Counter(
        page
        for step in runtime.under_way
        for each in step.steps
        if not each.is_over
        for reading in each.readings
        for page in reading.pages
    )
    for name, queue in queues.items():
        for page in queue.all_pages:
            yield from recounted("pins of a page", page._pins, pinned[page], name)


def is_idle(runtime: EngineRuntime) -> bool:
    """Whether nothing is executed whose pages nobody knows yet."""
    return not (*runtime.under_way, *runtime.under_way.finished)
