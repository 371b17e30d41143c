"""Measures how far bounds are from answers, for queries that say how far they may be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millpond.approximation.needed import Least
from millpond.catalog import QueryEntry, Tolerance
from millpond.identities import QueryId, StreamId
from millpond.insight.quality import clear_of, error_of
from millpond.sharing.queries import Queries

MEASURE_SECONDS = 1.0
"""So often the answer of a query is looked through, at most."""


@dataclass(frozen=True)
class _Known:
    """What is known of a query: what it needs, and since when so much is kept as is now."""

    said: Tolerance
    least: Least
    percent: float
    since: int | None
    """The largest time of its stream when that began."""
    measured_at: float = float("-inf")


class ToleratedErrors:
    """Knows how many percent of a stream its queries need; the engine's lock is held."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._known: dict[QueryId, _Known] = {}

    def least_percent(self, entry: QueryEntry, present: float, now: float) -> float:
        """How many percent have to be kept for a query, of which ``present`` are now."""
        said = entry.tolerates
        if said is None:
            return 100.0
        if not said.error:
            return said.needed_percent
        known = self._looked_at(entry, said, present, now)
        self._known[entry.identity] = known
        return max(said.least_percent, known.least.percent)

    def _looked_at(self, entry: QueryEntry, said: Tolerance, present: float, now: float) -> _Known:
        known = self._known.get(entry.identity)
        if known is None or known.said != said or known.percent != present:
            largest = self._queries.ground.inputs.streams[StreamId(said.stream)].largest
            is_known = known is not None and known.said == said
            return _Known(said, known.least if known and is_known else Least(), present, largest)
        is_time = now >= known.measured_at + MEASURE_SECONDS
        if not is_time or not self._is_of_one_rate(entry, said, known.since):
            return known
        error = error_of(self._queries, entry, said.is_relative)
        allowed = said.error / 100 if said.is_relative else said.error
        least = known.least.measured(present, error, allowed)
        return replace(known, least=least, measured_at=now)

    def _is_of_one_rate(self, entry: QueryEntry, said: Tolerance, since: int | None) -> bool:
        """Whether all that is in the window came since so much is kept."""
        if since is None:
            return True
        gone = clear_of(entry, said, since)
        log = self._queries.ground.deliveries.of(entry.name)
        return log.complete_until >= (since if gone is None else gone)
