"""Queues of relations that are not their own: a copy for queries of a later epoch, and the relation
of one row."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from millpond.cql.algebra import ONE_ROW
from millpond.identities import QueueId, RelationId
from millpond.intake.inputs import Inputs, is_one_row
from millpond.intake.intake import END, relation_page_schema
from millpond.intake.transitions import RelationCopied
from millpond.kernels.columns import integers
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.pages import Page
from millpond.storage.queues import Queue


def provide(inputs: Inputs, queues: Iterable[QueueId]) -> None:
    """Has the relation of one row for operators that read it."""
    for name in queues:
        if is_one_row(name) and (name not in inputs.queues or not inputs.queues[name].rows):
            _add_one_row(inputs, name)  # those that have read it before need it no more


def _add_one_row(inputs: Inputs, name: QueueId) -> None:
    schema = relation_page_schema(ONE_ROW.schema)
    queue = inputs.queues[name] = Queue(name, schema, inputs.store, is_stream=False)
    row = {"_ts": [BEGINNING], "_te": [FOREVER], "_w": [1], "c0": [1]}
    queue.append(pa.table(row, schema=schema))
    queue.advance(END)


def copied(inputs: Inputs, name: QueueId) -> RelationCopied:
    """A queue of a relation in which what has happened so far holds from the beginning."""
    intake = inputs.relations[name.input]
    promised, changes = intake.queue.heartbeat, intake.changes()
    past = _from_the_beginning(intake.content(promised))
    coming = changes.filter(pa.array(integers(changes["_ts"]) > promised))
    pages = (Page.of(inputs.store, table) for table in (past, coming) if table.num_rows)
    return RelationCopied(name, tuple(pages), promised)


def forget_epochs(inputs: Inputs, in_use: set[int]) -> list[QueueId]:
    """Closes the relations' queues of past epochs to which no operator belongs any more."""
    over = inputs.epochs.forget(in_use)
    closed: list[QueueId] = []
    for intake in inputs.relations.values() if over else ():
        for queue in [q for q in intake.queues[1:] if q.name.epoch in over]:
            intake.queues.remove(queue)
            inputs.queues.pop(queue.name).close()
            closed.append(queue.name)
    rows = [RelationId(ONE_ROW.name).queue(epoch) for epoch in over]
    for name in rows:
        if name in inputs.queues:
            inputs.queues.pop(name).close()
            closed.append(name)
    return closed


def forget_copy(inputs: Inputs, name: QueueId) -> None:
    """Nobody reads a relation's queue of a past epoch any more."""
    queue = inputs.queues.pop(name)
    inputs.relations[name.input].queues.remove(queue)
    queue.close()


def _from_the_beginning(content: pa.Table) -> pa.Table:
    """The same rows, there from the beginning."""
    times = pa.array(np.full(content.num_rows, BEGINNING))
    return content.set_column(content.schema.get_field_index("_ts"), "_ts", times)
