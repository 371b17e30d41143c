"""Pages of sources on their way in: threads read them, the loop takes them in between its steps.

A source delivers when its data is there, however busy the operators are: that is how a backlog
comes about. Of the sources that always have something (files, say) the one furthest behind is read;
those that are live (pipes, the wall clock) are all waited for, each in a thread of its own. What
was read and not taken when a run ends is there for the next one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from millpond.connectors.sources import is_live
from millpond.inputs import Inputs, Report, SourceReading
from millpond.interruption import WholeLock
from millpond.planning.physical import Graph
from millpond.reading import Allowance, ReadLimits


@dataclass(frozen=True)
class Feed:
    """What a run takes of the sources: nothing without an allowance.

    ``waits``: others may push while it runs, so what is held back may wait for them. ``promises``:
    quiet inputs and the clock are followed; else time stands still where nobody has said anything.
    """

    allowance: Allowance | None = None
    report: Report | None = None
    waits: bool = False
    promises: bool = True


def endless() -> Feed:
    """All that sources deliver, for as long as they do, and what others push."""
    return Feed(Allowance(ReadLimits(), {}), waits=True)


class Arrivals:
    """What was read of each source and not taken yet; every call comes with the lock held."""

    def __init__(
        self,
        inputs: Inputs,
        graph: Graph,
        lock: WholeLock,
        read: Callable[[SourceReading], None],
        tell: Callable[[], None],
        has_room: Callable[[str, bool], bool],
    ) -> None:
        self.has_news = False
        """Whether something has come that no turn of the loop has seen."""
        self.error: BaseException | None = None
        """What a source has raised; nothing more is taken until a run has raised it."""
        self._inputs, self._graph, self._lock = inputs, graph, lock
        self._read, self._tell, self._has_room = read, tell, has_room
        self._readings: dict[str, SourceReading] = {}
        self._wanted: queue.SimpleQueue[SourceReading | None] | None = None
        self._is_closed = False

    # -- taking ----------------------------------------------------------------------------

    def deliver(self, feed: Feed, is_idle: bool) -> bool:
        """Takes the pages that have come and has further ones read; whether anything has come.

        ``is_idle``: nobody has anything to do, so that no room will be made.
        """
        has_news, self.has_news = self.has_news, False
        names = self._open(feed)
        at_hand = self._at_hand(names)
        taken = [name for name in at_hand if self._take_if_room(name, feed)]
        is_reading = any(n in self._readings and n not in at_hand for n in names)
        if is_idle and not taken and not feed.waits and not is_reading:
            held = [name for name in at_hand if name in self._inputs.held]
            taken = [name for name in held[:1] if self._take(name, feed)]
        self._begin(self._open(feed), feed)
        return has_news or bool(taken)

    def _take_if_room(self, name: str, feed: Feed) -> bool:
        source = self._inputs.sources[name][0]
        if self._has_room(name, is_live(source)):
            return self._take(name, feed)
        if name not in self._inputs.held:
            self._inputs.held.add(name)
            self._inputs.report(name, feed.report, replace(source.progress(), is_held=True))
        return False

    def _open(self, feed: Feed) -> list[str]:
        """The sources that a run reads on."""
        if feed.allowance is None or self.error is not None or self._is_closed:
            return []
        return [name for name in self._inputs.sources_of(self._graph) if feed.allowance.of(name)]

    def _at_hand(self, names: Iterable[str]) -> list[str]:
        """Those with a page, the one furthest behind first."""
        found = [n for n in names if n in self._readings and self._readings[n].is_over]
        return sorted(found, key=self._inputs.reached)

    def _take(self, name: str, feed: Feed) -> bool:
        reading, allowance = self._readings[name], feed.allowance
        self._inputs.held.discard(name)
        if reading.error is not None or not self._inputs.is_current(reading):
            del self._readings[name]
            self._inputs.give_up(reading)
            self.error = self.error or reading.error
            return False
        if allowance is None or self.error is not None:
            return False
        left = allowance.of(name)
        if reading.line is None and reading.page is not None and reading.page.num_rows > left:
            part, reading.page = reading.page.slice(0, int(left)), reading.page.slice(int(left))
            self._inputs.take(reading, part, feed.report)
            allowance.use(name, part.num_rows)
            return True
        del self._readings[name]
        if reading.line is not None:
            self._inputs.take_line(reading, reading.line, feed.report)
        else:
            self._inputs.take(reading, reading.page, feed.report)
            allowance.use(name, 0 if reading.page is None else reading.page.num_rows)
        return True

    # -- reading ---------------------------------------------------------------------------

    def _begin(self, names: list[str], feed: Feed) -> None:
        is_limited = feed.allowance is not None and feed.allowance.is_limited
        sources = self._inputs.sources
        live = [name for name in names if is_live(sources[name][0])]
        calm = [name for name in names if name not in live]
        for name in live + sorted(calm, key=self._inputs.reached)[:1]:
            if name not in self._readings or not self._inputs.is_of(self._readings[name]):
                reading = self._readings[name] = self._inputs.reading(name, is_limited)
                self._start(reading, name in live)

    def _start(self, reading: SourceReading, is_alone: bool) -> None:
        if is_alone:
            _thread(lambda: self._execute(reading), f"millpond-{reading.name}")
            return
        if self._wanted is None:
            wanted = self._wanted = queue.SimpleQueue()

            def work() -> None:
                while (reading := wanted.get()) is not None:
                    self._execute(reading)

            _thread(work, "millpond-sources")
        self._wanted.put(reading)

    def _execute(self, reading: SourceReading) -> None:
        try:
            self._read(reading)
        except BaseException as error:  # noqa: BLE001 (the loop raises it)
            reading.error = error
        with self._lock:
            reading.is_over = self.has_news = True
            self._tell()

    # -- what is to come -------------------------------------------------------------------

    def is_quiet(self, feed: Feed) -> bool:
        """Whether nothing will come now: sources are live and have nothing, or are held back."""
        names = [name for name in self._open(feed) if name not in self._inputs.held]
        are_live = all(is_live(self._inputs.sources[name][0]) for name in names)
        return are_live and not self._at_hand(names)

    def is_over(self, feed: Feed) -> bool:
        """Whether nothing more will come in this run."""
        return not self._open(feed)

    def close(self) -> None:
        """Nothing is taken any more."""
        self._is_closed = True
        if self._wanted is not None:
            self._wanted.put(None)

    def raise_error(self) -> None:
        """Raises what a source has raised."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def _thread(work: Callable[[], None], name: str) -> None:
    """Runs without being waited for: a pipe may be silent for ever."""
    threading.Thread(target=work, name=name, daemon=True).start()
