"""What happens to results: how far sinks are, and what is kept."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from millpond.delivery.group_results import GroupLog, SliceOfPage
from millpond.delivery.results import ResultLog
from millpond.identities import QueryId
from millpond.storage.pages import Page
from millpond.storage.store import Store
from millpond.storage.transitions import Transition


class Delivering(Protocol):
    """Has the logs of what queries put out."""

    @property
    def store(self) -> Store:
        """Where pages lie."""

    def of(self, query: str) -> ResultLog:
        """The log of a query."""

    def group_log(self, name: str, like: ResultLog) -> GroupLog:
        """The log of a group, also of one that is gone."""


@dataclass(frozen=True)
class Came(Transition, kind="came", to="deliveries"):
    """So many elements have come of what a query leaves out."""

    query: QueryId
    elements: int

    def apply(self, part: Delivering) -> None:
        """Counts them."""
        part.of(self.query).came = self.elements


@dataclass(frozen=True)
class SinkFed(Transition, kind="sink", to="deliveries"):
    """A sink has so many pages of a query's results, and says by a mark what it contains."""

    query: QueryId
    position: int
    mark: Any

    def apply(self, part: Delivering) -> None:
        """Has the rest wait."""
        log = part.of(self.query)
        log.sink_position, log.sink_mark = self.position, self.mark
        log.forget()


def sink_fed(log: ResultLog) -> SinkFed:
    """How much of the results the sink of a query has."""
    mark = log.sink_mark if log.sink is None else log.sink.mark()
    return SinkFed(log.entry.identity, log.sink_position, mark)


Reference = dict[str, Any]
"""What the log says of a page, or of a query's slice of one."""


@dataclass(frozen=True)
class ResultsKept(Transition, kind="results", to="deliveries"):
    """What is kept of the results of a query or a group, in a checkpoint."""

    query: QueryId
    until: int
    rows: int
    came: int
    position: int
    complete: bool
    kept: tuple[Reference, ...]
    waiting: tuple[Reference, ...]
    content: tuple[Reference, ...]
    counts: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def apply(self, part: Delivering) -> None:
        """Has it back."""
        log = part.of(self.query)
        known = {
            text: _page_or_slice(part, json.loads(text), log)
            for text in {json.dumps(each): None for each in self._references()}
        }
        kept, waiting, content = (
            [known[json.dumps(each)] for each in some]
            for some in (self.kept, self.waiting, self.content)
        )
        facts = self.until, self.rows, self.came, self.position, self.complete
        log.restore(kept, waiting, content, *facts)
        if isinstance(log, GroupLog):
            log.restore_facts(self.counts, self.gone, self.tags)

    def _references(self) -> Iterator[Reference]:
        yield from self.kept
        yield from self.waiting
        yield from self.content


def results_kept(log: ResultLog) -> ResultsKept:
    """What is kept of the results of a query or a group."""
    kept, waiting, content = (
        tuple(page.reference() for page in pages) for pages in (log.kept, log.waiting, log.content)
    )
    facts = log.own_until, log.own_rows, log.came, log.position, log.is_complete
    of_group = log.facts() if isinstance(log, GroupLog) else {}
    return ResultsKept(log.entry.identity, *facts, kept, waiting, content, **of_group)


def _page_or_slice(part: Delivering, reference: Reference, own: ResultLog) -> Page:
    if "group" not in reference:
        return _page_of(part, own, reference)
    log = part.group_log(reference["group"], own)
    page = _page_of(part, log, reference["page"])
    return SliceOfPage(log, page, reference["number"], reference["rows"])


def _page_of(part: Delivering, log: ResultLog, reference: Reference) -> Page:
    """A page of a log; of a group's a query may have a slice already."""
    known = log.page_in(tuple(reference["names"])) if isinstance(log, GroupLog) else None
    return known or Page.referred(part.store, reference)
