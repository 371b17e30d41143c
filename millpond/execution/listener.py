"""Who is told what steps brought."""

from typing import Any, Protocol

from millpond.execution.operators.running import OperatorStep
from millpond.identities import OperatorId, QueryName, QueueId
from millpond.planning.convergence import Merge
from millpond.planning.parts import Cut
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction


class Listener(Protocol):
    """The part that is told what steps brought; all calls but the last come with the lock held."""

    def put_out(self, query: QueryName, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""

    def to_commit(self, identity: OperatorId, step: OperatorStep) -> None:
        """A step could be published; what that needs is read before anything has happened."""

    def committed(self, identity: OperatorId, step: OperatorStep) -> None:
        """A step is about to be published."""

    def skipped(self, identity: OperatorId, until: int) -> None:
        """An operator has passed a time in which nothing happened."""

    def purged(self, identity: OperatorId, cursor: int, state: Any) -> None:
        """An operator that has come to a time is about to forget what it keeps for queries that
        are gone."""

    def compacted(self, queue: QueueId, change: Compaction) -> None:
        """Pages of a queue are about to be replaced by one."""

    def failed(self, identity: OperatorId, step: OperatorStep, error: Exception) -> None:
        """A step could not be done; ``error`` names the place and the thing."""

    def cut(self, cut: Cut) -> None:
        """A part of an operator is about to be one itself, or to be a part again."""

    def merged(self, merge: Merge) -> None:
        """The readers of one queue read another one now."""

    def lost_spark(self) -> None:
        """Spark has died; the next step asks for another one."""

    def after_commit(self) -> None:
        """Steps were committed; the lock is not held."""
