"""What all running operators share of reading: fragments, subscriptions and a cursor."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from millpond.cql.node import Node
from millpond.execution.fragments import ENDED, STARTED, Fragment
from millpond.execution.surroundings import Surroundings
from millpond.identities import OperatorId, QueueId
from millpond.planning.branches import Outputs
from millpond.planning.physical import Operator, queues_in
from millpond.schema import BEGINNING
from millpond.storage.pages import Page
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader


class ReadingOperator:
    """An operator that reads queues, and knows how far it has come in them."""

    needs: frozenset[str] = frozenset({STARTED})

    def __init__(
        self, identity: OperatorId, operator: Operator, around: Surroundings, cursor: int
    ) -> None:
        self.identity = identity
        self.operator = operator
        self.around = around
        self.cursor = cursor
        """Up to here steps are committed."""
        self.claimed = cursor
        """Up to here steps are prepared."""
        self.inputs = operator.queues()
        """The names of the queues it reads."""
        self.fragments: list[Fragment] = []
        self.subscriptions: list[tuple[Queue, Reader]] = []
        """The queues it reads on and on."""
        self.past: list[tuple[Queue, Reader]] = []
        """The queues it read before, for what windows still need of them."""
        self._read()

    def needs_of(self, index: int) -> frozenset[str]:
        """What the operator asks of its n-th fragment."""
        return self.needs

    def outputs(self, index: int) -> Outputs:
        """The columns it wants of its n-th fragment."""
        return Outputs.all_of(self.operator.inputs[index])

    @cached_property
    def is_local(self) -> bool:
        """Whether all expressions can be evaluated without Spark."""
        return all(fragment.is_local for fragment in self.fragments)

    def _read(self) -> None:
        self.fragments = [
            Fragment(node, self.around, self.outputs(index))
            for index, node in enumerate(self.operator.inputs)
        ]
        for index, fragment in enumerate(self.fragments):
            fragment.subscribe(self.cursor, self.needs_of(index))
        self._subscribed()

    def _subscribed(self) -> None:
        self.subscriptions = [each for f in self.fragments for each in f.subscriptions]
        self.past = [each for f in self.fragments for each in f.past]

    # -- reading other queues from a time on -----------------------------------------------

    def can_reread(self, nodes: Sequence[Node], at: int) -> bool:
        """Whether it can read these fragments from a time on."""
        pairs = zip(self.fragments, nodes, strict=True)
        return all(fragment.can_reread(node, at) for fragment, node in pairs)

    def reread(self, nodes: Sequence[Node], at: int) -> None:
        """From where it has come, reads fragments of the same meaning that have other queues."""
        for index, (fragment, node) in enumerate(zip(self.fragments, nodes, strict=True)):
            if node != fragment.node:
                fragment.reread(node, at, self.needs_of(index))
        self.inputs = queues_in(nodes)
        self.__dict__.pop("is_local", None)
        self._subscribed()

    def redefine(self, operator: Operator) -> None:
        """From where it has come, reads other queues that have had the same content."""
        left = self.subscriptions
        self.operator, self.inputs = operator, operator.queues()
        self._read()
        for queue, reader in left:
            queue.unsubscribe(reader)
        self.read_since({queue.name: reader.since for queue, reader in left})
        self.__dict__.pop("is_local", None)

    @property
    def reads_since(self) -> dict[QueueId, int]:
        """After which times it reads its queues, where what came before is read elsewhere."""
        return {q.name: r.since for q, r in self.subscriptions if r.since >= BEGINNING}

    def read_since(self, times: Mapping[QueueId, int]) -> None:
        """Tells the operator's readers that they read queues after these times only."""
        for queue, reader in self.subscriptions:
            reader.since = times.get(queue.name, reader.since)

    def let_go(self) -> list[QueueId]:
        """Forgets the queues of before that nothing is needed of any more; their names."""
        names = [name for fragment in self.fragments for name in fragment.let_go()]
        self._subscribed()
        return names

    # -- how far it could go ---------------------------------------------------------------

    @property
    def horizon(self) -> int:
        """The time up to which the operator's inputs are complete."""
        return min(queue.heartbeat for queue, _ in self.subscriptions)

    def waiting(self, after: int, until: int) -> int:
        """About how many rows lie in (after, until]."""
        rows = 0
        for fragment in self.fragments:
            rows += fragment.waiting(after, until)
        return rows

    def waiting_in(self, queue: Queue) -> int:
        """About how many rows of one of its queues wait for it."""
        return queue.waiting(self.claimed, queue.heartbeat)

    @property
    def row_bytes(self) -> float:
        """The average size of the rows held by the queues it reads; 0 if they are empty."""
        queues = [queue for queue, _ in self.subscriptions]
        return sum(queue.bytes for queue in queues) / max(1, sum(queue.rows for queue in queues))

    def has_work(self, until: int) -> bool:
        """Whether a step up to ``until`` could put anything out."""
        if until <= self.claimed:
            return False
        for index, fragment in enumerate(self.fragments):
            if fragment.waiting(self.claimed, until) or self._ends(index, until):
                return True
        return False

    def _ends(self, index: int, until: int) -> int:
        if ENDED not in self.needs_of(index):
            return 0
        return self.fragments[index].ending(self.claimed, until)

    def limited(self, horizon: int, most: int) -> int:
        """The latest time up to which a step reads about ``most`` rows, or the horizon."""
        if self.waiting(self.claimed, horizon) <= most:
            return horizon
        times: list[tuple[int, int, Page]] = []
        for queue in {id(queue): queue for queue, _ in self.subscriptions}.values():
            spans = queue.first(self.claimed, horizon, most)
            times += [(span.page.last, span.rows, span.page) for span in spans]
        times.sort(key=lambda each: each[0])
        total, until = 0, self.claimed
        for last, rows, page in times:
            if total + rows > most:
                passed = page.rows - page.count(self.claimed, page.last)
                inside = page.row_time(min(passed + most - total, page.rows - 1)) - 1
                return min(max(until, inside, self.claimed + 1), horizon)
            total, until = total + rows, last
        return horizon

    # -- how far it has come ---------------------------------------------------------------

    def unclaim(self, after: int) -> None:
        """What was claimed later than a time is there to be done again."""
        self.claimed = min(self.claimed, after)

    def skip(self, until: int) -> None:
        """Moves the cursor over a step, or over a time in which nothing happens."""
        self.cursor = until
        self.claimed = max(self.claimed, until)
        for _, reader in (*self.subscriptions, *self.past):
            reader.cursor = until

    def leave(self) -> None:
        """Reads no queue any more."""
        for queue, reader in (*self.subscriptions, *self.past):
            queue.unsubscribe(reader)
