"""Result logs: positions, pages and counts of what queries have put out."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from millpond.delivery.group_results import GroupLog, SliceOfPage
from millpond.delivery.results import ResultLog
from millpond.insight.validation.complaints import recounted
from millpond.storage.kept_pages import KeptPages
from millpond.storage.pages import Page


def positions(logs: Iterable[ResultLog]) -> Iterator[str]:
    """What a sink or a subscriber has yet to see is there, and nobody has seen what is to come."""
    for log in logs:
        seen = [subscriber.position for subscriber in log.subscribers]
        if log.entry.sink is not None and not log.sink_failed:
            seen.append(log.sink_position)
        first = log.position - len(log.waiting)
        for each in seen:
            if not first <= each <= log.position:
                yield (
                    f"somebody is at page {each} of the results of {log.entry.name}, of which "
                    f"those from {first} to {log.position} are there"
                )


def pages_of_logs(logs: Iterable[ResultLog]) -> Iterator[str]:
    """No page that is kept, or that somebody has yet to see, is free."""
    for log in logs:
        free = sum(page.is_free for page in log.pages)
        if free:
            yield f"{free} pages of the results of {log.entry.name} are free"


def rows_of_logs(logs: Iterable[ResultLog]) -> Iterator[str]:
    """No more is kept than was put out."""
    for log in logs:
        kept = sum(page.rows for page in log.kept)
        if kept > log.own_rows:
            yield f"{kept} rows of {log.entry.name} are kept, and {log.own_rows} were put out"


# -- groups ----------------------------------------------------------------------------------


def counts_of_groups(logs: Iterable[ResultLog]) -> Iterator[str]:
    """It is known how many rows each query of a group has put out, and has in the pages."""
    for log in (each for each in logs if isinstance(each, GroupLog)):
        name = log.entry.name
        yield from recounted("rows", log.own_rows, int(log._counts.sum()), name)
        there = np.zeros(len(log._counts), np.int64)
        for page in log.kept:
            tags = log._tags.get(page)
            if tags is None:
                yield f"whose the rows of a page of {name} are is not known"
            else:
                there[tags.numbers] += tags.counts
        yield from recounted("rows in pages", log._there.tolist(), there.tolist(), name)
        if np.any(log._gone > log._counts) or np.any(log._there > log._counts):
            yield f"more rows of {name} are gone or there than were put out"


def holders_of_pages(logs: Iterable[ResultLog]) -> Iterator[str]:
    """A page of a group stays as long as the group or a query of it needs it."""
    some = list(logs)
    parts = Counter((id(each._log), each._page) for log in some for each in parts_of(log))
    for log in (each for each in some if isinstance(each, GroupLog)):
        for page in log.pages:
            needed = 1 + parts[id(log), page]
            if log._holders[page] < needed:
                yield (
                    f"a page of {log.entry.name} is held by {log._holders[page]}, and {needed} "
                    "need it"
                )


def parts_of(log: ResultLog) -> list[SliceOfPage]:
    """The parts of pages of groups that a query has."""
    return [page for page in log.pages if isinstance(page, SliceOfPage)]


def whole_pages(logs: Iterable[ResultLog]) -> set[Page]:
    """All pages that results lie in."""
    found: set[Page] = set()
    for log in logs:
        parts = parts_of(log)
        found.update(set(log.pages) - set(parts), (part._page for part in parts))
        if isinstance(log, GroupLog):
            found.update(log._holders)
    return found


# -- the account -----------------------------------------------------------------------------


def account(books: KeptPages) -> Iterator[str]:
    """The memory of all kept pages is the sum of what was counted for each."""
    yield from recounted("memory of kept pages", books.memory_bytes, sum(books._in_memory.values()))


def accounted(books: KeptPages, kept_pages: set[Page]) -> Iterator[str]:
    """Each kept page that takes memory is in the account, and none that is gone."""
    for page in kept_pages:
        if page.memory_bytes and books._in_memory.get(page) != page.memory_bytes:
            yield from recounted(
                "memory of a kept page", books._in_memory.get(page), page.memory_bytes
            )
    for page in books._in_memory.keys() - kept_pages:
        if not page._pins:  # else somebody is reading it
            yield f"a page of {page.rows} rows is in the account, and kept by nobody"
