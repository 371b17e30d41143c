"""Follows some arrivals: each is a trace, from the tuples' coming through steps to deliveries.

A page that has come, if it is chosen, is marked in its origins (`origins.py`), which steps pass on
to what they make of it. So whatever a step or a query puts out says itself which traces it is part
of, exactly; a step that reads several followed arrivals is in the trace of each.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.delivery.results import ResultLog
from millpond.execution.fragments import STARTED
from millpond.identities import OperatorId, QueueId
from millpond.intake.transitions import PageCame
from millpond.settings import Settings
from millpond.storage.origins import Followed, Origins
from millpond.storage.pages import Page
from millpond.storage.transitions import Transition
from millpond.tracing.telling import Context, Telling

if TYPE_CHECKING:
    from millpond.execution.operators.running import OperatorStep

MOST_WAITING = 1_000
"""Of so many pages at most it is awaited that sinks have them."""

MOST_NAMED = 8
"""So many of the queries that a step serves are named."""


@dataclass(eq=False)
class Trace:
    """What is known of one arrival: who has told of it, by the queues behind them."""

    came: float
    first: Context
    spans: dict[QueueId, tuple[Context, float]] = field(default_factory=dict)

    def behind(self, queues: Iterable[QueueId]) -> tuple[list[Context], float]:
        """The spans of those who filled some queues, the last of them first, and when it ended."""
        found = [self.spans[each] for each in queues if each in self.spans]
        found.sort(key=lambda pair: -pair[1])
        told = found or [(self.first, self.came)]
        return [context for context, _ in told], told[0][1]


@dataclass(frozen=True)
class Waiting:
    """A page of results of some traces that is not yet where it goes."""

    log: ResultLog
    position: int
    rows: int
    began: float
    operator: OperatorId | None
    """Who has put it out."""
    traces: tuple[Trace, ...]


class Following:
    """Tells of arrivals that are followed; the lock is held but where it is said otherwise."""

    def __init__(self, settings: Settings) -> None:
        self._telling = Telling(settings)
        self._waiting: deque[Waiting] = deque(maxlen=MOST_WAITING)

    def within(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """What comes inside belongs to the trace that the headers of a request name, if any."""
        return self._telling.within(headers)

    def comes(self, transition: Transition) -> None:
        """Something has come to an input; if it is chosen it is followed from here."""
        if not isinstance(transition, PageCame) or not transition.page.origins:
            return
        queue, page = transition.queue, transition.page
        about = {
            "millpond.input": str(queue.input),
            "millpond.rows": page.rows,
            "millpond.bytes": page.bytes,
        }
        first = self._telling.root(f"arrive {queue.input}", page.made_seconds, about)
        if first is not None:
            now = time.monotonic()
            trace = Trace(now, first)
            trace.spans[queue] = first, now
            page.origins = ((Followed(page.made_seconds, trace), page.rows),)

    def committed(self, identity: OperatorId, step: OperatorStep, queries: list[str]) -> None:
        """A step is about to be published."""
        outcome = step.outcome
        if outcome is None:
            return
        for trace in _traces(outcome.origins):
            behind, ready = trace.behind(step.running.inputs)
            about = _about(step, queries) | {
                "millpond.place": outcome.place,
                "millpond.rows_out": outcome.rows,
                "millpond.executed_seconds": outcome.seconds,
                "millpond.waited_seconds": max(0.0, outcome.began - ready),
            }
            context = self._telling.child(f"step {identity}", behind, outcome.began, about)
            trace.spans[identity] = context, time.monotonic()

    def failed(
        self, identity: OperatorId, step: OperatorStep, queries: list[str], error: Exception
    ) -> None:
        """A step could not be done."""
        now = time.monotonic()
        for trace in dict.fromkeys(_read(step)):
            behind, ready = trace.behind(step.running.inputs)
            about = _about(step, queries) | {"millpond.error": type(error).__name__}
            self._telling.child(f"step {identity}", behind, min(ready, now), about, "failed")

    def put_out(self, log: ResultLog, operator: OperatorId | None, page: Page) -> None:
        """A query has put out a page, and others are to get it."""
        traces = tuple(_traces(page.origins))
        if traces:
            facts = log.position, page.rows, time.monotonic(), operator
            self._waiting.append(Waiting(log, *facts, traces))

    def handed_on(self) -> None:
        """What was put out was handed on, as far as sinks were ready; the lock is not held."""
        for _ in range(len(self._waiting)):
            waiting = self._waiting.popleft()
            if _is_there(waiting):
                self._delivered(waiting)
            else:
                self._waiting.append(waiting)

    def _delivered(self, waiting: Waiting) -> None:
        log = waiting.log
        about = {
            "millpond.query": log.entry.name,
            "millpond.rows": waiting.rows,
            "millpond.subscribers": len(log.subscribers),
            "millpond.sink": "" if log.entry.sink is None else log.entry.sink.name,
        }
        error = "the sink failed" if log.sink_failed else ""
        for trace in waiting.traces:
            behind, _ = trace.behind(() if waiting.operator is None else [waiting.operator])
            about["millpond.seconds"] = time.monotonic() - trace.came
            name = f"deliver {log.entry.name}"
            self._telling.child(name, behind, waiting.began, about, error)

    def end(self) -> None:
        """Tells what is left, in the background, and nothing more."""
        self.handed_on()
        self._waiting.clear()
        self._telling.end()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and all is told."""
        return self._telling.is_over

    def close(self, seconds: float) -> None:
        """Ends it; what is not told after so many seconds is given up."""
        self.end()
        self._telling.close(seconds)


def _is_there(waiting: Waiting) -> bool:
    """Whether a page has come to all who are to get it."""
    log = waiting.log
    is_written = log.sink is None or log.sink_failed or log.sink_position >= waiting.position
    return is_written or log.is_closed


def _about(step: OperatorStep, queries: list[str]) -> dict[str, Any]:
    return {
        "millpond.operator": step.running.operator.label(),
        "millpond.queries": queries[:MOST_NAMED],
        "millpond.rows_in": step.rows,
    }


def _traces(origins: Origins) -> Iterator[Trace]:
    for moment, _ in origins:
        if isinstance(moment, Followed):
            yield moment.trace


def _read(step: OperatorStep) -> Iterator[Trace]:
    """The traces of what a step reads that is new."""
    for reading in step.readings:
        for spans in reading.spans.get(STARTED, ()):
            for span in spans:
                yield from _traces(span.origins)
