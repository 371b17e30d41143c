"""Queues: what they hold is counted right, and is held by those who need it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate

from millpond.identities import QueueId
from millpond.insight.validation.complaints import recounted, strangers
from millpond.schema import FOREVER
from millpond.storage.backlog import Amount, Backlog
from millpond.storage.pages import Page
from millpond.storage.queues import Queue
from millpond.storage.readers import ReaderKind


def amounts(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """A queue has as many rows and bytes as its pages."""
    for queue in queues.values():
        pages = queue.all_pages
        rows, size = sum(page.rows for page in pages), sum(page.bytes for page in pages)
        yield from recounted("rows", queue.rows, rows, queue.name)
        yield from recounted("bytes", queue.bytes, size, queue.name)


def spilled(settled_queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """So much of a queue is on disk only as its pages are; nobody spills just now."""
    for queue in settled_queues.values():
        size = sum(page.bytes for page in queue.all_pages if page.is_spilled)
        yield from recounted("spilled bytes", queue.spilled_bytes, size, queue.name)


def index(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """By what pages are found without a look at them is right."""
    for queue in queues.values():
        pages = queue._pages
        sums = zip(
            accumulate(p.rows for p in pages), accumulate(p.bytes for p in pages), strict=True
        )
        yield from recounted("sums", queue._amounts, list(sums), queue.name)
        lasts = list(accumulate((page.last for page in pages), max))
        yield from recounted("times", queue._lasts, lasts, queue.name)
        free = sum(page.is_free for page in pages)
        yield from recounted("free pages", queue._freed, free, queue.name)


def floors(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """A page has nothing but what is later than was promised when it came."""
    for queue in queues.values():
        floors_ = queue._floors
        if len(floors_) != len(queue._pages) or sorted(floors_) != floors_:
            yield f"{queue.name} has promises that fall, or not one for each page"
            continue
        for page, floor in zip(queue._pages, floors_, strict=True):
            if page.first <= floor or floor > queue.heartbeat:
                yield (
                    f"{queue.name} has a page from {page.first} on that came at {floor}, and is "
                    f"promised up to {queue.heartbeat}"
                )


def holders(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """A page is held by as many kinds of readers as it says; one that nobody holds is let go as
    soon as it is passed."""
    for queue in queues.values():
        held = Counter(id(p) for kind in queue._kinds.values() for p in _held(kind))
        unread = {id(page) for page in queue._unread}
        for page in queue.pages:
            if page.holders != held[id(page)] or bool(page.holders) == (id(page) in unread):
                yield from _about_holders(queue, page, held[id(page)])


def _about_holders(queue: Queue, page: Page, held: int) -> Iterator[str]:
    where = f"a page of {queue.name} up to {page.last}"
    yield from recounted("holders", page.holders, held, where)
    if not page.holders and page not in queue._unread:
        yield f"{where} is held by nobody, and stays for ever"
    if page.holders and page in queue._unread:
        yield f"{where} is held, and is to be let go"


def needed_pages(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """No page that a reader needs is free."""
    for queue in queues.values():
        held = {id(page) for kind in queue._kinds.values() for page in _held(kind)}
        for page in queue._pages:
            if page.is_free and id(page) in held:
                yield f"a page of {queue.name} up to {page.last} is needed, and free"
        if queue.base is not None and queue.base.is_free:
            yield f"the content of {queue.name} is free"


def _held(kind: ReaderKind) -> Iterator[object]:
    yield from kind.unsummed
    yield from (page for _, _, page in kind._held)


def kinds(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """Readers are with those who need pages equally long, and the slowest of them is known."""
    for queue in queues.values():
        for key, kind in queue._kinds.items():
            if not kind.readers or any(reader.kind != key for reader in kind.readers):
                yield f"{queue.name} has readers with others than their like"
            known = {id(reader): cursor for cursor, _, reader in kind._cursors}
            for reader in kind.readers:
                if known.get(id(reader), FOREVER) > reader.cursor:
                    yield f"a reader of {queue.name} at {reader.cursor} is thought to be further"


def contents(queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """Content is summed up no further than everybody is who needs it."""
    for queue in queues.values():
        for reader in queue.readers:
            if reader.needs_content and reader.cursor < queue.base_time:
                yield (
                    f"{queue.name} is summed up to {queue.base_time}, and a reader is at "
                    f"{reader.cursor}"
                )


# -- the backlog -----------------------------------------------------------------------------


def backlog(counted: Backlog, queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """What waits in all queues is the sum of what waits in each."""
    known = counted._amounts
    yield from strangers("queues with a backlog", known, queues)
    for of in Amount._fields:
        total = sum(getattr(amount, of) for amount in known.values())
        yield from recounted(f"{of} of the backlog", getattr(counted, of), total)


def waiting(counted: Backlog, settled_queues: Mapping[QueueId, Queue]) -> Iterator[str]:
    """What waits in a queue is what its slowest reader has yet to read; what is in files only is
    counted about."""
    for name, queue in settled_queues.items():
        if name in counted._amounts and all(page.is_in_driver for page in queue.pages):
            wait = Amount(*_waiting(queue), queue.bytes - queue.spilled_bytes)
            yield from recounted("backlog", counted.of(name), wait, name)


def _waiting(queue: Queue) -> tuple[int, int]:
    passed = [reader.cursor for reader in queue.readers if reader.works]
    return queue._amount(min(passed), FOREVER) if passed else (0, 0)
