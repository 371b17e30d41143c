"""What the shell answers to a statement that shows nothing by itself."""

import pyarrow.compute as pc

from millpond.catalog import (
    Constraint,
    PartitionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    ViewEntry,
)
from millpond.connectors.python_values import moment
from millpond.cql.apply import scanned
from millpond.cql.statements import (
    Action,
    AlterPartition,
    AlterPlan,
    AlterQuery,
    AlterStream,
    Create,
    Delete,
    Drop,
    Insert,
    Leave,
    Punctuate,
    SetOption,
    Update,
)
from millpond.facade.engine import Engine
from millpond.identities import InputId, StreamId
from millpond.intake.intake import END
from millpond.schema import BEGINNING, Type

CHANGED_K = "SHOW CONSTRAINTS says from when on all that adheres to it is taken"


def words_for(action: Action, engine: Engine) -> str:
    """One line that says what was done and what can be done next; empty where results say it."""
    match action:
        case Create():
            return _created(action, engine)
        case Drop():
            return f"{action.kind.lower()} {action.name} dropped"
        case Leave():
            state = "is there already" if action.is_there else "is not there"
            return f"{action.kind} {action.name} {state}"
        case Insert():
            count = len(action.rows)
            return fed(engine, action.relation, count)
        case Punctuate():
            return f"nothing follows in {action.stream} that is like that"
        case Delete() | Update():
            return f"relation {action.relation} changed"
        case AlterQuery(partition=str() as partition):
            return f"query {action.name} is in {f'partition {partition}' if partition else 'none'}"
        case AlterQuery():
            entry = engine.query_entry(action.name)
            state = "active" if entry.active else "inactive"
            policy = f", on error {entry.on_error}" if action.on_error else ""
            tolerates = f", {entry.tolerates}" if action.tolerates else ""
            return f"query {entry.name} is {state}, weight {entry.weight:g}{policy}{tolerates}"
        case AlterStream(kept_percent=float() as kept):
            return f"stream {action.name} keeps {kept:g} percent for queries that tolerate it"
        case AlterStream(adds=Constraint(name)):
            return f"stream {action.name} has constraint {name}"
        case AlterStream(alters=Constraint(name)):
            return f"stream {action.name} has constraint {name} within another k; " + CHANGED_K
        case AlterStream(drops=str() as name):
            return f"stream {action.name} has constraint {name} no more"
        case AlterStream(idle_microseconds=int()):
            idle = engine.entities().get("stream", action.name).get("idle_after")
            return f"stream {action.name} is idle after {idle}"
        case AlterStream(ahead_microseconds=int()):
            ahead = engine.entities().get("stream", action.name).get("ahead")
            return f"stream {action.name} has tuples at most {ahead} ahead of the clock"
        case AlterStream():
            delay = engine.entities().get("stream", action.name).get("delay")
            return f"stream {action.name} has delay {delay}"
        case AlterPartition():
            return f"partition {action.name} has {engine.catalog.get(action.name)}"
        case AlterPlan():
            return f"{'a queue' if action.has_queue else 'no queue'} after {action.operator}"
        case SetOption():
            return f"{action.key} is set"
    return ""


def fed(engine: Engine, name: str, count: int) -> str:
    """How many rows went where, and up to when a stream is complete."""
    noun = "row" if count == 1 else "rows"
    intake = engine.inputs.streams.get(StreamId(name))
    if intake is None:
        return f"{count} {noun} into {name}"
    position, promised = intake.entry.timestamp_column, intake.queue.heartbeat
    if position is None or not BEGINNING <= promised < END:
        return f"{count} {noun} into {name}"
    is_moment = intake.entry.schema[position].type is Type.TIMESTAMP
    until = moment(promised, intake.tick_microseconds) if is_moment else promised
    return (
        f"{count} {noun} into {name}; it is complete up to {until}, and results come up to "
        f"there: \\advance {intake.entry.name} TIME moves it on"
    )


def _created(action: Create, engine: Engine) -> str:
    entry = action.entry
    match entry:
        case StreamEntry() if entry.source.name == "push":
            feed = f"INSERT feeds it, and \\push {entry.name} FILE"
            return f"stream {entry.name} declared; {feed}"
        case StreamEntry():
            return f"stream {entry.name} declared; {entry.source} is read when a query asks for it"
        case RelationEntry() if entry.has_changes and entry.source.name != "push":
            return f"relation {entry.name} declared; \\run reads its changes"
        case RelationEntry():
            rows = int(pc.sum(engine.inputs.relation(entry.name).changes()["_w"]).as_py() or 0)
            count = f"{rows} row{'' if rows == 1 else 's'}" if rows else "no rows yet"
            return f"relation {entry.name} declared, {count}"
        case PartitionEntry():
            how = "ALTER QUERY … SET PARTITION puts queries in it"
            return f"partition {entry.name} declared, {entry}; {how}"
        case ViewEntry():
            return f"view {entry.name} declared"
        case QueryEntry():
            waits = any(InputId(name) in engine.inputs.sources for name in scanned(entry.plan))
            how = "\\run reads its sources" if waits else "results show as its inputs change"
            return f"query {entry.name} registered; {how if entry.active else 'it is inactive'}"
    return ""
