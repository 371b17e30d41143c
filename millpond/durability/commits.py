"""What the running operators tell: steps that are committed, or failed, and what they put out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from millpond.catalog import ASIDE
from millpond.delivery.group_results import GroupLog
from millpond.failures import Failure
from millpond.kernels.aggregate import last_keys_in
from millpond.planning.convergence import Merge
from millpond.planning.parts import Cut
from millpond.planning.physical import MatchOperator
from millpond.sharing.groups import some_of
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction

if TYPE_CHECKING:
    from millpond.facade.engine import Engine
    from millpond.spark.steps import Step


class Commits:
    """Notes what happens to operators in the log, and hands on what came of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def put_out(self, query: str, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        self._engine.deliveries.put_out(query, page, until)

    def to_commit(self, identity: str, step: Step) -> None:
        """Reads whose the rows are that a step puts out, and which of them come."""
        page = step.published
        log = None if page is None else self._engine.queries.log_of_output(identity)
        if page is not None and isinstance(log, GroupLog):
            log.tags_of(page)
        elif page is not None and log is not None and log.counts_coming:
            _ = page.table

    def committed(self, identity: str, step: Step) -> None:
        """A step is about to be published."""
        self._engine.inputs.moved()
        journal = self._engine.journal
        if step.outcome is not None and journal.is_durable:
            page, state = step.published, step.running.state
            log = self._engine.queries.log_of_output(identity)
            tagged = {}
            if page is not None and isinstance(log, GroupLog):
                tagged = {"tags": log.tags_of(page).to_json()}
            journal.note(
                "step",
                operator=identity,
                until=step.reached,
                page=None if page is None else page.reference(),
                state=None if state is None else state.reference(step.outcome.state),
                **tagged,
            )

    def skipped(self, identity: str, until: int) -> None:
        """An operator has passed a time in which nothing happened."""
        self._engine.inputs.moved()
        self._engine.journal.note("skip", operator=identity, until=until)

    def compacted(self, queue: str, change: Compaction) -> None:
        """Pages of a queue are about to be replaced by one."""
        if self._engine.journal.is_durable:
            self._engine.journal.note(
                "compact",
                queue=queue,
                page=None if change.page is None else change.page.reference(),
                replaced=[name for page in change.replaced for name in page.names],
                until=change.content_until,
            )

    def purged(self, identity: str, cursor: int, state: Any) -> None:
        """An operator is about to forget what it keeps for queries that are gone."""
        self._engine.journal.note("operator", name=identity, cursor=cursor, state=state)

    def cut(self, cut: Cut) -> None:
        """A part of an operator is about to be one itself, or to be a part again."""
        self._engine.journal.note("cut", **asdict(cut))

    def merged(self, merge: Merge) -> None:
        """Whoever has read one queue reads another one now."""
        self._engine.journal.note("merge", **asdict(merge))
        self._engine.queries.merged(merge)

    def failed(self, identity: str, step: Step, error: Exception) -> None:
        """A step could not be done: the queries that need it stand still, the others go on."""
        label = self._engine.graph.operators[identity].label()
        served = self._engine.runtime.picture.queries(identity)
        own = self._own(identity, served, last_keys_in(step.error))
        if own is not None:
            place = self._engine.runtime.picture.place_of(identity)
            word = "query" if len(own) == 1 else "queries"
            said = str(error).removeprefix(place)
            error = type(error)(f"{word} {some_of(own)}, {label}{said}")
        served = self._engine.queries.groups.expanded(served) if own is None else own
        queries = dict.fromkeys(query.removesuffix(ASIDE) for query in served)
        found = [
            Failure(query, label, str(error), step.after, step.until, step.offenders)
            for query in queries
        ]
        if found:  # else it was about rows of queries that are gone
            self._engine.queries.fail(found, error)

    def _own(self, identity: str, served: list[str], numbers: frozenset[int]) -> list[str] | None:
        """Those of a group in whose own rows a step has failed; None if it was in those of all.

        Above a match the last key of every aggregate is the number of the query.
        """
        graph = self._engine.graph
        group = self._engine.queries.groups.get(served[0]) if len(served) == 1 else None
        if group is None or not numbers:
            return None
        upstream = (graph.operators[each] for each in graph.upstream(identity))
        if not any(isinstance(operator, MatchOperator) for operator in upstream):
            return None
        return [name for number, name in group.queries.items() if number in numbers]

    def lost_spark(self) -> None:
        """Spark has died; the next step asks for another one."""
        self._engine.lazy_spark.has_died()

    def after_commit(self) -> None:
        """Hands on what was put out; callbacks run without the lock."""
        engine = self._engine
        with engine.lock:
            engine.journal.flush()
            engine.shorten_log()
            engine.validate_if_set()
            engine.operation.wake()
        engine.deliveries.hand_on(engine.queries.fail)
