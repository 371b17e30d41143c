"""What is pushed: tuples of streams, and rows and changes of relations."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import RelationEntry
from millpond.connectors import Source, arrow_schema, to_arrow
from millpond.connectors.changes import WEIGHTS, listed_changes
from millpond.connectors.sources import as_page
from millpond.identities import InputId
from millpond.intake.inputs import Coming, Inputs, give_up, promised
from millpond.intake.intake import RelationIntake, refuse_ended
from millpond.intake.reading import refuse_endless_content
from millpond.intake.transitions import PageCame, RelationChanged
from millpond.kernels.groups import Ints
from millpond.schema import BEGINNING


def content_of(inputs: Inputs, entry: RelationEntry, source: Source) -> Coming:
    """What the source of a relation without timestamps holds: there from the beginning, or
    from now on. The relation need not be there yet."""
    refuse_endless_content(entry, source)
    trial, coming = inputs.new_relation(entry), Coming()
    pages: Iterable[pa.Table] = (as_page(each).rows for each in source.pages())
    if entry.checks_key:  # all of it is one instant
        pages = [pa.concat_tables([arrow_schema(entry.schema).empty_table(), *pages])]
    try:
        for rows in pages:
            done = change_relation(trial, [(rows, 1)], change_time(inputs, trial), coming)
            trial.has_changed(done.last_change, done.changed_rows, done.counts)
    except BaseException:
        give_up(coming)
        raise
    return coming


def push(inputs: Inputs, name: str, rows: Any, coming: Coming) -> None:
    """Adds tuples to a stream, or rows to a relation at the current time."""
    key = InputId(name)
    if key in inputs.streams:
        intake = inputs.streams[key]
        refuse_ended(intake.entry.name, intake.queue)
        table = to_arrow(rows, intake.entry.schema, intake.entry.name)
        inputs.accept(key, intake, table, coming)
        return
    relation = inputs.relation(name)
    refuse_ended(relation.entry.name, relation.queue)
    table = to_arrow(rows, relation.entry.schema, relation.entry.name)
    change_relation(relation, [(table, 1)], change_time(inputs, relation), coming)


def push_changes(
    inputs: Inputs, name: str, changes: Iterable[tuple[Any, str, Any]], coming: Coming
) -> None:
    """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
    intake = inputs.relation(name)
    listed = listed_changes(changes, intake.entry.name)
    times = [
        BEGINNING if ts is None else inputs.ticks(ts, f"{name}, row {number}")
        for number, (ts, _, _) in enumerate(listed, start=1)
    ]
    table = to_arrow([row for _, _, row in listed], intake.entry.schema, intake.entry.name)
    weights = np.array([WEIGHTS[op] for _, op, _ in listed], dtype=np.int64)
    apply_changes(intake, table, np.array(times, dtype=np.int64), weights, coming)


def apply_changes(
    intake: RelationIntake, rows: pa.Table, times: Ints, weights: Ints, coming: Coming
) -> None:
    """Changes of a relation at times are about to come."""
    if rows.num_rows:
        _change(intake, rows, times, weights, True, coming)
        coming += promised(intake.queues, int(times.max()) - 1)


def change_relation(
    intake: RelationIntake, parts: list[tuple[pa.Table, int]], at: int, coming: Coming
) -> RelationChanged:
    """Adds (weight 1) or removes (-1) rows of a relation at a time."""
    schema = arrow_schema(intake.entry.schema)
    tables = [pa.Table.from_arrays(rows.columns, schema=schema) for rows, _ in parts]
    weights = [np.full(rows.num_rows, weight, dtype=np.int64) for rows, weight in parts]
    rows = pa.concat_tables(tables)
    times = np.full(rows.num_rows, at, dtype=np.int64)
    moves = at > BEGINNING  # what is there from the start, all see
    return _change(intake, rows, times, np.concatenate(weights), moves, coming)


def _change(
    intake: RelationIntake,
    rows: pa.Table,
    times: Ints,
    weights: Ints,
    moves: bool,
    coming: Coming,
) -> RelationChanged:
    found = intake.changing(rows, times, weights)
    coming += [PageCame(queue.name, page) for queue, page in found.pages]
    name = intake.entry.identity
    counted = found.last_change, found.changed_rows, moves, found.counts, found.bags
    changed = RelationChanged(name, *counted)
    coming.append(changed)
    return changed


def change_time(inputs: Inputs, intake: RelationIntake) -> int:
    """The current time: the largest any input has reached, and after every promise."""
    reached = [i.largest for i in inputs.streams.values() if i.largest is not None]
    promised = [i.queue.heartbeat for i in inputs.streams.values()]
    promised += [queue.heartbeat for queue in intake.queues]
    after = max(promised, default=BEGINNING - 1) + 1
    now = max([*reached, after, intake.last_change])
    return max(now, 0) if now > BEGINNING else BEGINNING
