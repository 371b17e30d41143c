"""What the running operators tell: steps that are committed, or failed, and what they put out."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from millpond.delivery.group_results import GroupLog
from millpond.delivery.latency import in_unit
from millpond.delivery.results import ResultLog
from millpond.durability.transitions import (
    Compacted,
    CutMade,
    Merged,
    OperatorKept,
    Stepped,
)
from millpond.failures import Failure
from millpond.identities import OperatorId, QueryName, QueueId
from millpond.kernels.aggregate import last_keys_in
from millpond.planning.convergence import Merge
from millpond.planning.parts import Cut
from millpond.planning.physical import MatchOperator
from millpond.sharing.groups import some_of
from millpond.sharing.queries import Queries
from millpond.sharing.waits import ready_seconds
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction

if TYPE_CHECKING:
    from millpond.execution.operators.running import OperatorStep


SLOW_SECONDS = 2.0
"""A step that takes longer is said in the log."""

logger = logging.getLogger("millpond")


class Follower(Protocol):
    """Who follows some arrivals from their coming to their deliveries."""

    def committed(self, identity: OperatorId, step: OperatorStep, queries: list[str]) -> None:
        """A step is about to be published."""

    def failed(
        self, identity: OperatorId, step: OperatorStep, queries: list[str], error: Exception
    ) -> None:
        """A step could not be done."""

    def put_out(self, log: ResultLog, operator: OperatorId | None, page: Page) -> None:
        """A query has put out a page, and others are to get it."""

    def handed_on(self) -> None:
        """What was put out was handed on; the lock is not held."""


class Commits:
    """Notes what happens to operators in the log, and hands on what came of it."""

    def __init__(
        self, queries: Queries, tidy: Callable[[], None], wake: Callable[[], None]
    ) -> None:
        self._queries, self._ground = queries, queries.ground
        self._tidy = tidy
        """Looks after the log, and whether all parts agree."""
        self._wake = wake
        """Has the loop look at what came of a step."""
        self.follower: Follower | None = None
        self._committed: OperatorId | None = None
        """Whose step was committed last, where somebody follows them."""
        self._is_news = True
        """Whether anything was told since that was last looked after."""

    def put_out(self, query: QueryName, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        self._is_news = True
        ready = -math.inf if page is None else ready_seconds(self._queries, query, page.first)
        self._ground.deliveries.publish(query, page, until, ready)
        if self.follower is not None and page is not None:
            log = self._ground.deliveries.of(QueryName(query).key)
            self.follower.put_out(log, self._committed, page)

    def to_commit(self, identity: OperatorId, step: OperatorStep) -> None:
        """Reads whose the rows are that a step puts out, and which of them come."""
        page = step.published
        log = None if page is None else self._queries.log_of_output(identity)
        if page is not None and isinstance(log, GroupLog):
            log.tags_of(page)
        elif page is not None and log is not None and log.counts_coming:
            _ = page.table

    def committed(self, identity: OperatorId, step: OperatorStep) -> None:
        """A step is about to be published."""
        self._is_news = True
        if step.outcome is not None and step.outcome.seconds > SLOW_SECONDS:
            label, seconds = self._queries.graph.operators[identity].label(), step.outcome.seconds
            about = {"operator": str(identity), "seconds": seconds, "rows": step.rows}
            words = f"a step of {identity} ({label}) took {in_unit(seconds)}, {step.rows} rows"
            logger.info("%s", words, extra={"event": "slow_step", "about": about})
        if self.follower is not None:
            self._committed = identity
            self.follower.committed(identity, step, self._served(identity))
        self._ground.inputs.epochs.moved()
        journal = self._ground.journal
        if step.outcome is not None and journal.is_durable:
            page, state = step.published, step.running.state
            kept = None if state is None else state.reference(step.outcome.state)
            log = self._queries.log_of_output(identity)
            tags = None if log is None else log.tags_in(page)
            journal.note(Stepped(identity, step.reached, page, kept, tags))

    def skipped(self, identity: OperatorId, until: int) -> None:
        """An operator has passed a time in which nothing happened."""
        self._is_news = True
        self._ground.inputs.epochs.moved()
        self._ground.journal.note(Stepped(identity, until))

    def compacted(self, queue: QueueId, change: Compaction) -> None:
        """Pages of a queue are about to be replaced by one."""
        self._is_news = True
        if self._ground.journal.is_durable:
            names = tuple(name for page in change.replaced for name in page.names)
            self._ground.journal.note(Compacted(queue, change.page, names, change.content_until))

    def purged(self, identity: OperatorId, cursor: int, state: Any) -> None:
        """An operator is about to forget what it keeps for queries that are gone."""
        self._is_news = True
        self._ground.journal.note(OperatorKept(identity, cursor, state))

    def cut(self, cut: Cut) -> None:
        """A part of an operator is about to be one itself, or to be a part again."""
        self._is_news = True
        self._ground.journal.note(CutMade(cut.part, cut.is_cut, cut.at))

    def merged(self, merge: Merge) -> None:
        """Whoever has read one queue reads another one now."""
        self._is_news = True
        self._ground.journal.note(Merged(merge.queue, merge.into, merge.at))
        self._queries.merged(merge)

    def failed(self, identity: OperatorId, step: OperatorStep, error: Exception) -> None:
        """A step could not be done: the queries that need it stand still, the others go on."""
        self._is_news = True
        label = self._queries.graph.operators[identity].label()
        served = self._served(identity)
        if self.follower is not None:
            self.follower.failed(identity, step, served, error)
        own = self._own(identity, served, last_keys_in(step.error))
        if own is not None:
            place = self._queries.runtime.picture.place_of(identity)
            word = "query" if len(own) == 1 else "queries"
            said = str(error).removeprefix(place)
            error = type(error)(f"{word} {some_of(own)}, {label}{said}")
        failing = self._queries.groups.expanded(served) if own is None else own
        queries = dict.fromkeys(QueryName(query).asked_by for query in failing)
        found = [
            Failure(query, label, str(error), step.after, step.until, step.offenders)
            for query in queries
        ]
        if found:  # else it was about rows of queries that are gone
            self._queries.fail(found, error)

    def _served(self, identity: OperatorId) -> list[str]:
        return list(self._queries.runtime.picture.queries(identity))

    def _own(
        self, identity: OperatorId, served: Sequence[str], numbers: frozenset[int]
    ) -> list[str] | None:
        """Those of a group in whose own rows a step has failed; None if it was in those of all.

        Above a match the last key of every aggregate is the number of the query.
        """
        graph = self._queries.graph
        group = self._queries.groups.get(served[0]) if len(served) == 1 else None
        if group is None or not numbers:
            return None
        upstream = (graph.operators[each] for each in graph.upstream(identity))
        if not any(isinstance(operator, MatchOperator) for operator in upstream):
            return None
        return [name for number, name in group.queries.items() if number in numbers]

    def lost_spark(self) -> None:
        """Spark has died; the next step asks for another one."""
        self._is_news = True
        self._ground.lazy_spark.has_died()

    def after_commit(self) -> None:
        """Hands on what was put out; callbacks run without the lock."""
        if not self._is_news:
            return
        ground = self._ground
        with ground.lock:
            ground.journal.flush()
            self._is_news = False
            self._tidy()
            self._wake()
        ground.deliveries.hand_on(self._queries.fail)
        if self.follower is not None:
            self.follower.handed_on()
