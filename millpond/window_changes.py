"""ALTER QUERY … SET WINDOW OF: how a query goes on with another length of a window.

It ends at the time to which it has answered and begins there anew: up to then its answer is that of
the old query, from then on that of the new one, which has seen nothing before. What the answer held
is taken out at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.errors import StateError
from millpond.kernels.columns import integers
from millpond.kernels.results import summed
from millpond.planned import QueryPlans, planned
from millpond.policy_changes import has_answered, read_until, uneven
from millpond.results import ResultLog
from millpond.schema import BEGINNING

if TYPE_CHECKING:
    from millpond.engine import Engine


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
        """Whether it begins when one does that is registered now."""
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
    is_known = engine.journal.is_replaying or engine.deliveries.of(entry.name).is_whole
    if not (entry.plan.is_stream or is_known):
        raise _refusal(
            entry, "what its answer holds is no longer known, since not all results are kept"
        )
    return Renewal(plans, None, since, answered)


def _refusal(entry: QueryEntry, reason: str) -> StateError:
    return StateError(
        f'query "{entry.name}" cannot go on with another window: {reason}; or DROP and CREATE it'
    )


def taken_back(log: ResultLog, at: int) -> pa.Table | None:
    """The changes that take out at a time what the answer of a query holds."""
    whole = log.net([*log.content, *log.kept])
    times, weights = pa.repeat(at, whole.num_rows), pa.array(-integers(whole["_w"]))
    changes = whole.set_column(0, "_ts", times.cast(pa.int64())).set_column(1, "_w", weights)
    table = summed(changes.cast(log.page_schema))
    return table if table.num_rows else None
