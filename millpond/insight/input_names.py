"""Queues as people know them: by the stream or relation they are of, as its statement wrote it."""

from millpond.catalog import Catalog
from millpond.cql.algebra import ONE_ROW
from millpond.identities import QueueId


def input_label(catalog: Catalog, queue: str) -> str:
    """What a queue is of: a stream, a relation, or the operator it is behind."""
    identity = QueueId(queue)
    if identity.relation == ONE_ROW.name:
        return "one row"
    entry = catalog.get(identity.input) if identity.input else None
    if entry is None:
        return queue
    return f"{identity.input.kind} {entry.name}"
