"""Windows of what drop points keep: what they take, what they may take, and which are shortened.

A tuple that comes while more is taken than may be stays for the shortest window its queries
tolerate; what is known of it afterwards are the rows of a drop point. Which tuples these are is in
the log, page by page, like all that comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millpond.catalog import Catalog, QueryEntry, Tolerance
from millpond.identities import QueueId, StreamId
from millpond.settings import Settings, format_bytes
from millpond.storage.queues import Queue


class KeptWindows:
    """Knows the windows that may be shortened; the engine's lock is held."""

    def __init__(
        self,
        catalog: Catalog,
        queues: Mapping[QueueId, Queue],
        settings: Callable[[], Settings],
    ) -> None:
        self._catalog, self._queues, self._settings = catalog, queues, settings
        self.allotted: dict[StreamId, int] = {}
        """What windows may take where memory is short, by the names of what is kept."""

    def bytes(self, tolerance: Tolerance) -> int:
        """What a window takes."""
        queues = (StreamId(name).queue for name in tolerance.all_kept)
        return sum(self._queues[each].bytes for each in queues if each in self._queues)

    def rows(self, tolerance: Tolerance) -> int:
        """How many rows it has."""
        queues = (StreamId(name).queue for name in tolerance.all_kept)
        return sum(self._queues[each].rows for each in queues if each in self._queues)

    def limit(self, tolerance: Tolerance) -> int | None:
        """What a window may take, None if that is as much as it needs: what all of its queries say,
        and what the engine has allotted to it."""
        if tolerance.shortest_ticks is None or self._settings().overload == "wait":
            return None
        said = [each.window_bytes for each in self._tolerances(tolerance.kept)]
        known = [each for each in said if each is not None]
        limits = [max(known)] if known and len(known) == len(said) else []
        allotted = self.allotted.get(StreamId(tolerance.kept))
        return min([*limits, *([] if allotted is None else [allotted])], default=None)

    def is_shortened(self, tolerance: Tolerance) -> bool:
        """Whether a tuple that comes now stays for the shortest window only."""
        limit = self.limit(tolerance)
        return limit is not None and self.bytes(tolerance) >= limit

    def told(self, tolerance: Tolerance) -> str:
        """How long the window is of what comes now, and why."""
        if tolerance.shortest_ticks is None:
            return ""
        if not self.is_shortened(tolerance):
            return "whole"
        limit = format_bytes(self.limit(tolerance) or 0)
        return f"RANGE {tolerance.shortest_ticks}, as it may take {limit}"

    def forget(self, name: StreamId) -> None:
        """Forgets what was allotted to a window that is no more."""
        self.allotted.pop(name, None)

    def _tolerances(self, kept: str) -> list[Tolerance]:
        """What the active queries over a window tolerate."""
        entries = self._catalog.of_kind(QueryEntry)
        found = (each.tolerates for each in entries if each.active and each.tolerates is not None)
        return [each for each in found if each.kept == kept]
