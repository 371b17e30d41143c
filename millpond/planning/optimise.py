"""The rewrites, in order. Each is a function plan → plan in the file of its name."""

from collections.abc import Callable

from millpond.cql.node import Node
from millpond.errors import MillpondError
from millpond.planning.drop_unread_minus import drop_unread_minus
from millpond.planning.fold_constants import fold_constants
from millpond.planning.fragment_size import refuse_large_fragments
from millpond.planning.group_by_sessions import group_by_sessions
from millpond.planning.guard import guard
from millpond.planning.limit_ranks import limit_ranks
from millpond.planning.merge_projections import merge_projections
from millpond.planning.name_movers import name_movers
from millpond.planning.push_down_projections import push_down_projections
from millpond.planning.push_down_selections import push_down_selections
from millpond.planning.reduce_joins import reduce_joins
from millpond.planning.reduce_set_operations import reduce_set_operations
from millpond.planning.reduce_time_filters import reduce_time_filters
from millpond.planning.reduce_window_differences import reduce_window_differences
from millpond.planning.rstream_of_moments import rstream_of_moments
from millpond.planning.unbounded_to_now import unbounded_to_now
from millpond.planning.unnest_subqueries import unnest_subqueries
from millpond.planning.wait_for_sessions import wait_for_sessions

REWRITES: tuple[Callable[[Node], Node], ...] = (
    name_movers,
    unnest_subqueries,
    reduce_time_filters,
    wait_for_sessions,
    reduce_window_differences,
    fold_constants,
    push_down_selections,
    group_by_sessions,
    limit_ranks,
    reduce_set_operations,
    reduce_joins,
    rstream_of_moments,
    unbounded_to_now,
    drop_unread_minus,
    push_down_projections,
    merge_projections,
)


def optimise(plan: Node, on_error: str = "stop") -> Node:
    """The checked query, rewritten for execution; with ``skip``, guarded against failures first."""
    try:
        if on_error == "skip":
            plan = guard(plan).plan
        for rewrite in REWRITES:
            plan = rewrite(plan)
        refuse_large_fragments(plan)
    except RecursionError:  # plans may be as high as they like, expressions may not
        raise MillpondError("an expression is nested too deeply, its views included") from None
    return plan
