"""Names that the engine makes itself: made here and read here, and nowhere else.

No name that is declared has one of the characters that tell them apart (``catalog.OURS``).
"""

from typing import NamedTuple

ASIDE = "#left_out"
"""What stands behind the name of a query in the name of what it leaves out."""

PARTS = 64
"""Between the numbers of two operators there is room for the numbers of the second one's parts."""

_STREAM, _RELATION = "stream", "relation"


# -- queues ----------------------------------------------------------------------------------


class InputQueue(NamedTuple):
    """Which input a queue belongs to, and since which epoch; one behind an operator has none.

    A relation has a queue for queries that were there from the beginning, and a copy for those of
    each later epoch.
    """

    kind: str
    name: str
    epoch: int = 0

    def __str__(self) -> str:
        since = f"@{self.epoch}" if self.epoch else ""
        return f"{self.kind}:{self.name}{since}"

    @property
    def is_stream(self) -> bool:
        """Whether it has the tuples of a stream."""
        return self.kind == _STREAM

    @property
    def is_copy(self) -> bool:
        """Whether it is a relation's for queries that began late."""
        return self.kind == _RELATION and self.epoch > 0


def stream_queue(name: str) -> str:
    """What the queue of a stream is called.

    >>> stream_queue("Bids")
    'stream:bids'
    """
    return str(InputQueue(_STREAM, name.lower()))


def relation_queue(name: str, epoch: int = 0) -> str:
    """What the queue of a relation is called, for queries since an epoch.

    >>> relation_queue("R"), relation_queue("R", 5)
    ('relation:r', 'relation:r@5')
    """
    return str(InputQueue(_RELATION, name.lower(), epoch))


def input_queue(queue: str) -> InputQueue | None:
    """What a queue is called after, if it is an input's.

    >>> input_queue("relation:r@5"), input_queue("op12")
    (InputQueue(kind='relation', name='r', epoch=5), None)
    """
    kind, colon, rest = queue.partition(":")
    if not colon:
        return None
    name, _, epoch = rest.partition("@")
    return InputQueue(kind, name, int(epoch or 0))


def input_of(queue: str) -> str:
    """The stream or relation that a queue is of; of one behind an operator none.

    >>> input_of("relation:r@5"), input_of("op12")
    ('r', '')
    """
    found = input_queue(queue)
    return "" if found is None else found.name


def stream_of(queue: str) -> str | None:
    """The stream whose tuples a queue has, if it is one's."""
    found = input_queue(queue)
    return found.name if found is not None and found.is_stream else None


def is_relation(queue: str) -> bool:
    """Whether a queue has the changes of a relation."""
    found = input_queue(queue)
    return found is not None and not found.is_stream


def is_copy(queue: str) -> bool:
    """Whether it is a queue of a relation for queries that began late."""
    found = input_queue(queue)
    return found is not None and found.is_copy


def original(copy: str) -> str:
    """The queue of the same relation for those that were there from the beginning.

    >>> original("relation:r@5")
    'relation:r'
    """
    found = input_queue(copy)
    return copy if found is None else str(found._replace(epoch=0))


def epoch_of(queue: str) -> int:
    """Since which epoch a queue is there: of all but copies since the beginning.

    >>> epoch_of("relation:r@5"), epoch_of("stream:s"), epoch_of("op1")
    (5, 0, 0)
    """
    found = input_queue(queue)
    return 0 if found is None else found.epoch


# -- operators -------------------------------------------------------------------------------


def name_of(number: int) -> str:
    """What an operator or a part of one is called; strategies know it by its number.

    >>> name_of(768), name_of(705), number_of("op12"), number_of("op12_1")
    ('op12', 'op12_1', 768, 705)
    """
    whole, part = divmod(number, PARTS)
    return f"op{whole + 1}_{part}" if part else f"op{whole}"


def number_of(name: str) -> int:
    """The number of an operator; those that read it have larger ones."""
    whole, _, part = name.removeprefix("op").partition("_")
    return (int(whole) - 1) * PARTS + int(part) if part else int(whole) * PARTS


def owner_of(name: str) -> str:
    """The operator that a part is of; an operator's own name is answered as it is.

    >>> owner_of("op7_1"), owner_of("op7")
    ('op7', 'op7')
    """
    return name.partition("_")[0]


# -- queries ---------------------------------------------------------------------------------


def aside_of(query: str) -> str:
    """What is called so that ON ERROR SKIP leaves out of a query."""
    return query + ASIDE


def is_aside(name: str) -> bool:
    """Whether a name is that of what a query leaves out."""
    return name.endswith(ASIDE)


def asked_by(name: str) -> str:
    """The query itself, of what it puts out or leaves out.

    >>> asked_by("q#left_out"), asked_by("q")
    ('q', 'q')
    """
    return name.removesuffix(ASIDE)
