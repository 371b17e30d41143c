"""ALTER QUERY … SET WINDOW OF: how a query goes on with another length of a window.

It ends at the time to which it has answered and begins there anew: up to then its answer is that of
the old query, from then on that of the new one, which has seen nothing before. What the answer held
is taken out at that time. A query that stood still, or has failed, begins anew in the same way: at
the time to which its inputs have come, and with what comes from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.cql.apply import scanned
from millpond.delivery.results import ResultLog
from millpond.errors import StateError
from millpond.intake.intake import END
from millpond.kernels.columns import integers
from millpond.kernels.results import summed
from millpond.schema import BEGINNING
from millpond.sharing.planned import QueryPlans, planned
from millpond.sharing.policy_changes import has_answered, read_until, uneven

if TYPE_CHECKING:
    from millpond.facade.engine import Engine

UNKNOWN = "what its answer holds is no longer known, since not all results are kept"


class Renewal(NamedTuple):
    """How a query begins anew."""

    plans: QueryPlans
    epoch: int | None
    """Where it has answered nothing yet: when it began. It does so again."""
    since: dict[str, int]
    """The times of its streams, by their queues, after which it sees them."""
    answered: int
    """Up to this time it has answered."""

    def is_now(self, engine: Engine) -> bool:
        """Whether the query begins when one does that is registered now."""
        queues = engine.inputs.queues
        return all(time == queues[name].heartbeat for name, time in self.since.items())


def renewal(engine: Engine, entry: QueryEntry, changed: QueryEntry) -> Renewal | None:
    """How a query goes on with a changed window, if it runs; raises ``StateError`` if it cannot."""
    plans, queries = planned(changed), engine.queries
    epoch = queries.epoch_of(entry.name)
    if epoch is None:
        return None
    if epoch == engine.inputs.next_epoch and not has_answered(engine, entry.name):
        return Renewal(plans, epoch, {}, BEGINNING - 1)
    since, answered = read_until(engine, entry, epoch)
    if since is None:
        raise _refusal(entry, uneven(engine, entry, answered))
    if not is_known(engine, entry):
        raise _refusal(entry, UNKNOWN)
    return Renewal(plans, None, since, answered)


def _refusal(entry: QueryEntry, reason: str) -> StateError:
    return StateError(
        f'query "{entry.name}" cannot go on with another window: {reason}; or DROP and CREATE it'
    )


def is_known(engine: Engine, entry: QueryEntry) -> bool:
    """Whether it is known what the answer of a query holds, or nobody needs to know."""
    is_needed = not (entry.plan.is_stream or engine.journal.is_replaying)
    return not is_needed or engine.deliveries.of(entry.name).is_whole


def refuse_unknown(engine: Engine, entry: QueryEntry) -> None:
    """Refuses to have a query run again whose answer could not be taken out."""
    if not is_known(engine, entry):
        raise StateError(
            f'query "{entry.name}" cannot run again: {UNKNOWN}; DROP and CREATE it, and SET '
            "keep_results = 'all' beforehand if it is to be stopped and run again later"
        )


def holds_answer(engine: Engine, entry: QueryEntry) -> bool:
    """Whether a query that stands still has put out changes that others must follow."""
    return not entry.plan.is_stream and engine.deliveries.of(entry.name).rows > 0


def begins_again(engine: Engine, entry: QueryEntry) -> int:
    """The time at which a query that stands still begins anew if it does so now.

    Where its inputs have ended, it is that of the last tuple or the last change.
    """
    log, inputs = engine.deliveries.of(entry.name), engine.inputs
    names = [name.lower() for name in scanned(entry.plan)]
    intakes = [inputs.streams.get(name) or inputs.relations[name] for name in names]
    come_to = min((intake.queue.heartbeat for intake in intakes), default=BEGINNING)
    at = max(log.complete_until, come_to)
    if at < END:
        return at
    seen = (inputs.streams[name].largest for name in names if name in inputs.streams)
    put_out = (page.last for page in (*log.content, *log.kept))
    return max([BEGINNING, *put_out, *(time for time in seen if time is not None)])


def taken_back(log: ResultLog, at: int) -> pa.Table | None:
    """The changes that take out at a time what the answer of a query holds."""
    whole = log.net([*log.content, *log.kept])
    times, weights = pa.repeat(at, whole.num_rows), pa.array(-integers(whole["_w"]))
    changes = whole.set_column(0, "_ts", times.cast(pa.int64())).set_column(1, "_w", weights)
    table = summed(changes.cast(log.page_schema))
    return table if table.num_rows else None
