"""Identities: how the engine knows inputs, queues, operators, queries and groups of queries.

Each is a text, equal to its text and hashed like it, whose parts are found once, when it is made.
They are made here and read here, and nowhere else. No name that is declared has one of the
characters that tell ours apart (``catalog.OURS``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Self, cast

ASIDE = "#left_out"

BAD_ROWS = "#bad_rows"
"""What stands behind the name of a query in the name of what it leaves out."""

KEPT = "~kept"
"""What stands behind the name of a stream in the name of what a drop point keeps of it."""

PARTS = 64
"""Between the numbers of two operators there is room for the numbers of the second one's parts."""

_OPERATOR = re.compile(r"op(\d+)(?:_(\d+))?", re.ASCII)

_LATE = "late"
"""What stands for the epoch of a group whose queries began at different times."""


class Identity(str):
    """A text that says what something is; wherever texts go it goes as one."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


# -- inputs ----------------------------------------------------------------------------------


class InputId(Identity):
    """The name of a stream or a relation, in lower case."""

    __slots__ = ()
    kind: ClassVar[str]

    def __new__(cls, name: str) -> Self:
        return name if isinstance(name, cls) else super().__new__(cls, name.lower())


class StreamId(InputId):
    """Names a stream.

    >>> StreamId("Bids"), StreamId("Bids").queue
    ('bids', 'stream:bids')
    """

    __slots__ = ()
    kind = "stream"

    @property
    def queue(self) -> QueueId:
        """The queue with its tuples."""
        return QueueId(f"{self.kind}:{self}")

    @property
    def whole(self) -> StreamId:
        """The stream that drop points keep this of, or the stream itself.

        >>> StreamId("bids~kept(0;2;1)").whole, StreamId("bids").whole
        ('bids', 'bids')
        """
        return StreamId(self.partition(KEPT)[0])

    @property
    def is_kept(self) -> bool:
        """Whether it is what a drop point keeps of a stream."""
        return KEPT in self


class RelationId(InputId):
    """Names a relation.

    >>> RelationId("R").queue(), RelationId("R").queue(5)
    ('relation:r', 'relation:r@5')
    """

    __slots__ = ()
    kind = "relation"

    def queue(self, epoch: int = 0) -> QueueId:
        """The queue with its changes for queries since an epoch."""
        return QueueId(f"{self.kind}:{self}@{epoch}" if epoch else f"{self.kind}:{self}")


# -- queues and operators --------------------------------------------------------------------


class QueueId(Identity):
    """Names a queue: that of an input, or the one behind an operator, which is an ``OperatorId``.

    A relation has a queue for queries that were there from the beginning, and a copy for those of
    each later epoch.

    >>> queue = QueueId("relation:r@5")
    >>> queue.relation, queue.stream, queue.epoch, queue.is_copy, queue.original
    ('r', None, 5, True, 'relation:r')
    >>> OperatorId("op7_1").owner, type(QueueId("op7_1")) is OperatorId
    ('op7', True)
    """

    __slots__ = ("epoch", "relation", "stream")
    stream: StreamId | None
    """The stream whose tuples it has."""
    relation: RelationId | None
    """The relation whose changes it has."""
    epoch: int
    """Since when it is there: all but copies are since the beginning."""

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        if cls is QueueId and _OPERATOR.fullmatch(text):
            return cast("Self", OperatorId(text))
        kind, _, rest = text.partition(":")
        name, _, epoch = rest.partition("@")
        made = super().__new__(cls, text)
        made.stream = StreamId(name) if kind == StreamId.kind else None
        made.relation = RelationId(name) if kind == RelationId.kind else None
        made.epoch = int(epoch or 0)
        return made

    @property
    def input(self) -> InputId:
        """The stream or relation that it is of; one behind an operator is of none."""
        return self.stream or self.relation or InputId("")

    @property
    def is_copy(self) -> bool:
        """Whether it is a relation's for queries that began late."""
        return self.epoch > 0

    @property
    def original(self) -> QueueId:
        """The queue of the same relation for those that were there from the beginning."""
        return self if self.relation is None else self.relation.queue()


class OperatorId(QueueId):
    """Names an operator, or a part of one, and the queue behind it.

    Strategies know it by its number; those that read it have larger ones.

    >>> OperatorId("op12").number, OperatorId("op12_1").number, OperatorId.numbered(705)
    (768, 705, 'op12_1')
    """

    __slots__ = ("number",)
    number: int

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        found = _OPERATOR.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} names no operator")
        made, part = super().__new__(cls, text), found[2]
        made.number = (int(found[1]) - bool(part)) * PARTS + int(part or 0)
        return made

    @classmethod
    def written(cls, text: str) -> Self | None:
        """The one that a user means, if there can be one of that name."""
        return cls(text) if _OPERATOR.fullmatch(text) else None

    @classmethod
    @lru_cache(maxsize=4096)
    def numbered(cls, number: int) -> Self:
        """The one that strategies know by a number."""
        whole, part = divmod(number, PARTS)
        return cls(f"op{whole + 1}_{part}" if part else f"op{whole}")

    @property
    def owner(self) -> OperatorId:
        """The operator that a part is of; an operator's own name is answered as it is."""
        return self.numbered(-(-self.number // PARTS) * PARTS) if self.number % PARTS else self

    def part(self, place: int) -> OperatorId:
        """One of its parts, the first of which is 1."""
        return OperatorId(f"{self}_{place}")


BY_NUMBER = attrgetter("number")
"""Orders operators: those that are read come before those that read them."""


def is_ours(name: str) -> bool:
    """Whether the engine has made a name: of what a query leaves out, or a source cannot read.

    >>> is_ours("Q#left_out"), is_ours("S#bad_rows"), is_ours("Q")
    (True, True, False)
    """
    return name.endswith((ASIDE, BAD_ROWS))


# -- queries and groups of them --------------------------------------------------------------


class QueryName(Identity):
    """Names a query as its statement does, what it leaves out, or a group (a ``GroupId``).

    >>> name = QueryName("Q")
    >>> name.aside, name.aside.is_aside, name.aside.asked_by
    ('Q#left_out', True, 'Q')
    """

    __slots__ = ("_key", "is_aside")
    _key: QueryId
    is_aside: bool
    """Whether it names what ON ERROR SKIP leaves out of a query."""

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        if text.startswith("~") and not issubclass(cls, GroupId):
            return cast("Self", GroupId(text))
        made = super().__new__(cls, text)
        made.is_aside = text.endswith(ASIDE)
        if cls is QueryName:
            made._key = QueryId(text)
        return made

    @property
    def key(self) -> QueryId:
        """The same in lower case, by which it is found."""
        return self._key

    @property
    def aside(self) -> Self:
        """Names what ON ERROR SKIP leaves out of the query."""
        return type(self)(f"{self}{ASIDE}")

    @property
    def asked_by(self) -> Self:
        """The query itself, of what it puts out or leaves out."""
        return type(self)(self.removesuffix(ASIDE)) if self.is_aside else self


class QueryId(QueryName):
    """The name of a query, of what it leaves out, or of a group, in lower case.

    >>> QueryId("Q"), QueryId("Q").aside, QueryId("~401aa2ec812d@late").is_aside
    ('q', 'q#left_out', False)
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        return name if isinstance(name, cls) else super().__new__(cls, name.lower())

    @property
    def key(self) -> QueryId:
        """Itself."""
        return self


class GroupId(QueryId):
    """Names a group: queries of one shape that run as one, begun at one time or late-comers.

    >>> GroupId.of("401aa2ec812d77", 3), GroupId.of("401aa2ec812d77", None).is_late
    ('~401aa2ec812d@3', True)
    """

    __slots__ = ("is_late",)
    is_late: bool
    """Whether its queries began at different times."""

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        made = super().__new__(cls, text)
        made.is_late = text.endswith(f"@{_LATE}")
        return made

    @classmethod
    def of(cls, shape: str, epoch: int | None) -> Self:
        """The group of a shape whose queries began in an epoch; None: at different times."""
        return cls(f"~{shape[:12]}@{_LATE if epoch is None else epoch}")
