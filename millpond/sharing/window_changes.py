"""ALTER QUERY … SET WINDOW OF: how a query goes on with another length of a window.

It begins anew at the time to which it has answered (``beginning_anew``).
"""

from millpond.catalog import QueryEntry
from millpond.errors import StateError
from millpond.schema import BEGINNING
from millpond.sharing.beginning_anew import Renewal
from millpond.sharing.planned import planned
from millpond.sharing.policy_changes import has_answered, read_until, uneven
from millpond.sharing.queries import Queries

UNKNOWN = "what its answer holds is no longer known, since not all results are kept"


def renewal(queries: Queries, entry: QueryEntry, changed: QueryEntry) -> Renewal | None:
    """How a query goes on with a changed window, if it runs; raises ``StateError`` if it cannot."""
    plans = planned(changed)
    epoch = queries.epoch_of(entry.name)
    if epoch is None:
        return None
    if epoch == queries.ground.inputs.epochs.next and not has_answered(queries, entry.name):
        return Renewal(plans, epoch, {}, BEGINNING - 1)
    since, answered = read_until(queries, entry, epoch)
    if since is None:
        raise _refusal(entry, uneven(queries, entry, answered))
    if not is_known(queries, entry):
        raise _refusal(entry, UNKNOWN)
    return Renewal(plans, None, since, answered)


def _refusal(entry: QueryEntry, reason: str) -> StateError:
    return StateError(
        f'query "{entry.name}" cannot go on with another window: {reason}; or DROP and CREATE it'
    )


def is_known(queries: Queries, entry: QueryEntry) -> bool:
    """Whether it is known what the answer of a query holds, or nobody needs to know."""
    return entry.plan.is_stream or queries.ground.deliveries.of(entry.name).is_whole


def refuse_unknown(queries: Queries, entry: QueryEntry) -> None:
    """Refuses to have a query run again whose answer could not be taken out."""
    if not is_known(queries, entry):
        raise StateError(
            f'query "{entry.name}" cannot run again: {UNKNOWN}; DROP and CREATE it, and SET '
            "keep_results = 'all' beforehand if it is to be stopped and run again later"
        )
