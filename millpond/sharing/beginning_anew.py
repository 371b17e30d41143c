"""How a query goes on, or begins anew, that was answered before.

It ends at the time to which it has answered and begins there anew: up to then its answer is that of
the old query, from then on that of the new one, which has seen nothing before. What the answer held
is taken out at that time. A query that stood still, or has failed, begins anew in the same way: at
the time to which its inputs have come, and with what comes from then on.
"""

from contextlib import nullcontext
from typing import NamedTuple

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.cql.apply import scanned
from millpond.delivery.results import ResultLog
from millpond.identities import InputId, QueueId
from millpond.intake.intake import END
from millpond.kernels.columns import integers
from millpond.kernels.results import summed
from millpond.schema import BEGINNING
from millpond.sharing.ground import Ground
from millpond.sharing.planned import QueryPlans


class Succession(NamedTuple):
    """How a query goes on with another policy."""

    plans: QueryPlans
    has_others: bool = False
    """Whether other operators work for it from now on."""
    since: dict[QueueId, int] | None = None
    """The times of its streams, by their queues, after which they do; None: from where it began."""


class Renewal(NamedTuple):
    """How a query begins anew."""

    plans: QueryPlans
    epoch: int | None
    """Where it has answered nothing yet: when it began. It does so again."""
    since: dict[QueueId, int]
    """The times of its streams, by their queues, after which it sees them."""
    answered: int
    """Up to this time it has answered."""

    def is_now(self, ground: Ground) -> bool:
        """Whether the query begins when one does that is registered now."""
        queues = ground.inputs.queues
        return all(time == queues[name].heartbeat for name, time in self.since.items())


def holds_answer(ground: Ground, entry: QueryEntry) -> bool:
    """Whether a query that stands still has put out changes that others must follow."""
    return not entry.plan.is_stream and ground.deliveries.of(entry.name).rows > 0


def begins_again(ground: Ground, entry: QueryEntry) -> int:
    """The time at which a query that stands still begins anew if it does so now.

    Where its inputs have ended, it is that of the last tuple or the last change.
    """
    log, inputs = ground.deliveries.of(entry.name), ground.inputs
    names = [InputId(name) for name in scanned(entry.plan)]
    intakes = [inputs.streams.get(name) or inputs.relations[name] for name in names]
    come_to = min((intake.queue.heartbeat for intake in intakes), default=BEGINNING)
    at = max(log.complete_until, come_to)
    if at < END:
        return at
    seen = (inputs.streams[name].largest for name in names if name in inputs.streams)
    put_out = (page.last for page in (*log.content, *log.kept))
    return max([BEGINNING, *put_out, *(time for time in seen if time is not None)])


def changes_back(log: ResultLog, at: int) -> pa.Table | None:
    """The changes that take out at a time what the answer of a query holds."""
    with log.reading(nullcontext(), of_content=True) as read:
        whole = log.net(read.pages)
    times, weights = pa.repeat(at, whole.num_rows), pa.array(-integers(whole["_w"]))
    changes = whole.set_column(0, "_ts", times.cast(pa.int64())).set_column(1, "_w", weights)
    table = summed(changes.cast(log.page_schema))
    return table if table.num_rows else None
