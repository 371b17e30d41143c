"""Watches how far answers are behind, and has streams keep fewer tuples, or more again; of what
waits already some are dropped too."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence

from millpond.approximation.pace import Pace
from millpond.approximation.shedding import Shedding, left_percent
from millpond.catalog import QueryEntry
from millpond.facade.loads import Seen, kept_of, whole_of
from millpond.facade.thinning import taken_until, thinned
from millpond.facade.tolerated_errors import ToleratedErrors
from millpond.facade.window_memory import WindowMemory
from millpond.identities import InputId, OperatorId
from millpond.intake.drop_point import percent_of, tolerating
from millpond.schema import FOREVER
from millpond.sharing.queries import Queries
from millpond.sharing.statement import KeptChanged
from millpond.storage.queues import Queue
from millpond.storage.transitions import Transition

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.1
"""So often it is looked how far answers are behind, at most."""
LATELY = 0.25
"""What comes is counted over this part of the time by which answers may be behind."""
LEAST_SPAN = 0.5
"""What gets done is counted over so many seconds at least."""
WORK = 0.25
"""What waits has to be work for this part of the time by which answers may be behind."""


class Watch:
    """Decides for all streams with queries that tolerate a sample; the lock is held."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._errors = ToleratedErrors(queries)
        self._windows = WindowMemory(queries)
        self._known: Shedding | None = None
        self._paced = Pace(LEAST_SPAN)
        self._asking: tuple[tuple[str, float, float], ...] = ()
        """The streams, with what they need and the weights of their queries, of the last look."""
        self._looks: dict[InputId, deque[tuple[float, int]]] = {}
        """When it was looked at a stream, and how many tuples it had had by then."""
        self._look_again = 0.0
        self._is_behind = False

    def look(self) -> None:
        """Has streams keep what there is time for, if that is wanted and it is time to look."""
        now = time.monotonic()
        if now < self._look_again or not self._queries.has_runtime:
            return
        self._look_again = now + LOOK_SECONDS
        self._notice()
        self._windows.look()
        ground = self._queries.ground
        settings = ground.settings
        if not ground.inputs.kept or settings.overload == "wait" or not settings.latency_seconds:
            return
        self._decide(list(ground.inputs.kept), now, settings.latency_seconds)

    def _notice(self) -> None:
        """Says so once when the strategy begins to fall behind, and when it no more does."""
        before, reason = self._is_behind, self._queries.partitioning.falls_behind
        self._is_behind = bool(reason)
        if reason and not before:
            logger.warning("the strategy cannot keep up: %s", reason)
        elif before and not reason:
            logger.info("the strategy keeps up again")

    def _decide(self, streams: list[InputId], now: float, allowed_seconds: float) -> None:
        """Decides how much of all work is done, and then how much of each stream is kept."""
        seen = [self._seen(each, now, allowed_seconds) for each in streams]
        known = self._known
        if known is None or known.allowed_seconds != allowed_seconds:
            known = Shedding(allowed_seconds)
        work, free = sum(each.work for each in seen), sum(each.free for each in seen)
        pace = self._pace(now, [query for each in seen for query in each.queries], work > 0)
        whole = whole_of(seen)
        left = left_percent(whole.present, whole.least, allowed_seconds, work / pace, free / pace)
        work = (work - free * (1 - left / whole.present)) / pace
        load = None if whole.load is None else whole.load * whole.present / 100 / pace
        behind = max(each.behind for each in seen)
        reason = self._queries.partitioning.falls_behind
        if reason:  # answers are in time yet, but the strategy sees that it will not go on so
            work = max(work, allowed_seconds)
        self._known, percent = known.decide(now, whole.present, whole.least, behind, load, work)
        told = f"{max(behind, work):.2g} s behind, or would be; {allowed_seconds:g} s are allowed"
        told += f"; the strategy cannot keep up: {reason}" if reason else ""
        demands = tuple(each.demand for each in seen)
        asking = tuple((each.stream, each.least_percent, each.weight) for each in demands)
        is_as_before = percent == whole.present and asking == self._asking
        self._asking = asking
        chosen = {} if is_as_before else kept_of(seen, percent)
        for each in seen:
            kept = chosen.get(each.stream, each.present)
            part = each.part_told(kept, whole.load, percent) if len(seen) > 1 else ""
            self._change(each, kept, left / whole.present, told + part)

    def _change(self, seen: Seen, percent: float, part: float, told: str) -> None:
        """Has a stream keep so many percent, and that part of what waits."""
        if percent < seen.least:
            reason = "bounds are wider than a query tolerates, or may be"
            self._keep(seen.stream, seen.least, reason)
            return
        left = max(seen.least, min(percent, seen.present * part))
        change = list(thinned(self._queries, seen.stream, left)) if left < seen.present else []
        if percent != seen.present or change:
            self._keep(seen.stream, percent, f"answers were {told}", change)

    def _seen(self, stream: InputId, now: float, allowed_seconds: float) -> Seen:
        """What is known of a stream now."""
        inputs = self._queries.ground.inputs
        entry = inputs.streams[stream].entry
        queries = [each for each in tolerating(inputs.catalog, stream) if each.active]
        present = percent_of(inputs.catalog, entry, inputs.settings())
        needs = (self._errors.least_percent(each, present, now) for each in queries)
        work = max(map(self._waiting_seconds, queries), default=0.0)
        return Seen(
            stream,
            tuple(queries),
            present,
            max(needs, default=100.0),
            max((self._behind(each, now, allowed_seconds) for each in queries), default=0.0),
            self._coming(stream, now, allowed_seconds),
            self._tuple_seconds(queries),
            work,
            min(work, self._free_seconds(stream)),
        )

    def _pace(self, now: float, queries: list[QueryEntry], is_busy: bool) -> float:
        """How many seconds of work get done in a second."""
        known = self._queries.runtime.statistics
        found = {each: known[each] for each in self._readers(queries)}
        done = {name: (each.tally.rows_taken, each.cost_seconds) for name, each in found.items()}
        span = max(LEAST_SPAN, self._queries.ground.settings.latency_seconds)
        self._paced.span_seconds = span
        return self._paced.look(now, done, is_busy)

    def _free_seconds(self, stream: InputId) -> float:
        """How much work waits that no step has taken, for who reads the most of a stream."""
        graph, inputs = self._queries.graph, self._queries.ground.inputs
        found = [0.0]
        for name in inputs.kept[stream]:
            queue = inputs.streams[name].queue
            rows = queue.waiting(taken_until(self._queries, queue), FOREVER)
            costs = self._queries.runtime.statistics
            found.append(rows * sum(costs[each].cost_seconds for each in graph.readers(queue.name)))
        return max(found)

    def _coming(self, stream: InputId, now: float, allowed_seconds: float) -> float | None:
        """How many tuples came in a second lately; None if that was not seen for long enough."""
        looks = self._looks.setdefault(stream, deque())
        looks.append((now, self._queries.ground.inputs.streams[stream].arrived))
        while len(looks) > 2 and now - looks[1][0] >= allowed_seconds * LATELY:
            looks.popleft()
        (first, before), (last, arrived) = looks[0], looks[-1]
        return (arrived - before) / (last - first) if last - first >= LOOK_SECONDS / 2 else None

    def _tuple_seconds(self, queries: list[QueryEntry]) -> float:
        """How much work a tuple is for all who read what is kept of its stream."""
        known = self._queries.runtime.statistics
        return sum(known[each].cost_seconds for each in self._readers(queries))

    def _readers(self, queries: list[QueryEntry]) -> set[OperatorId]:
        """The operators that read inputs for queries."""
        return {
            identity
            for output in map(self._output, queries)
            if output is not None
            for identity, queue in self._queues(output)
            if not isinstance(queue.name, OperatorId)
        }

    def _waiting_seconds(self, entry: QueryEntry) -> float:
        """How much work waits before the answers of a query."""
        output = self._output(entry)
        return 0.0 if output is None else sum(self._work_seconds(*q) for q in self._queues(output))

    def _keep(
        self, stream: InputId, percent: float, reason: str, more: Sequence[Transition] = ()
    ) -> None:
        """Has a stream keep so many percent from now on, and what else follows from that."""
        name = self._queries.ground.inputs.streams[stream].entry.name
        logger.info("stream %s keeps %g percent from now on: %s", name, percent, reason)
        self._queries.change([KeptChanged(name, percent, reason), *more])

    def _behind(self, entry: QueryEntry, now: float, allowed_seconds: float) -> float:
        """How long the oldest of what a query could have worked on waits, if that is for work.

        If what waits is soon done, something else holds answers up: fewer tuples would not help.
        """
        output = self._output(entry)
        if output is None:
            return 0.0
        waiting = [each for each in self._queues(output) if not each[1].is_caught_up()]
        oldest = min((_oldest(queue) for _, queue in waiting), default=now)
        work = sum(self._work_seconds(*each) for each in waiting)
        return max(0.0, now - oldest) if work >= WORK * allowed_seconds else 0.0

    def _output(self, entry: QueryEntry) -> OperatorId | None:
        group = self._queries.groups.of(entry.identity)
        return self._queries.outputs.get(entry.identity) if group is None else group.output

    def _queues(self, output: OperatorId) -> Iterator[tuple[OperatorId, Queue]]:
        """The operators of a query, and what they read."""
        graph, queues = self._queries.graph, self._queries.ground.inputs.queues
        for identity in graph.upstream(output):
            for name in graph.queues_of(identity):
                if name in queues:
                    yield identity, queues[name]

    def _work_seconds(self, identity: OperatorId, queue: Queue) -> float:
        """How long an operator will take for what waits before it, by what its tuples cost."""
        rows = queue.waiting(_cursor(queue), queue.heartbeat)
        return rows * self._queries.runtime.statistics[identity].cost_seconds


def _oldest(queue: Queue) -> float:
    """When the oldest tuple arrived that waits."""
    return queue.oldest_arrival(_cursor(queue))


def _cursor(queue: Queue) -> int:
    """How far the last of those is that work on a queue."""
    return min((each.cursor for each in queue.readers if each.works), default=queue.heartbeat)
