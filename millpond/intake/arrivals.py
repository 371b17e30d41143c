"""Pages of sources on their way in: threads read them, the loop takes them in between its steps.

A source delivers when its data is there, however busy the operators are: that is how a backlog
comes about. Of the sources that always have something (files, say) the one furthest behind is
read, and beside it the next one if it will soon be that; its page is taken when it is, so that
pages come in the same order however many are read at once. Those that are live (pipes, the wall
clock) are all waited for, each in a thread of its own. What was read and not taken when a run ends
is there for the next one.
"""

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from millpond.connectors.sources import is_live
from millpond.errors import InputError, StoreError
from millpond.identities import InputId
from millpond.intake.inputs import Inputs, Report
from millpond.intake.reading import Allowance, ReadLimits
from millpond.intake.source_reading import SourceReading
from millpond.intake.taking import Taking
from millpond.interruption import WholeLock
from millpond.planning.graph import Graph
from millpond.schema import BEGINNING

MOST_AT_ONCE = 2
"""So many of the sources that always have something are read at a time."""


@dataclass(frozen=True)
class Intake:
    """What a run takes of the sources: nothing without an allowance.

    ``waits``: others may push while it runs, so what is held back may wait for them. ``promises``:
    quiet inputs and the clock are followed; else time stands still where nobody has said anything.
    """

    allowance: Allowance | None = None
    report: Report | None = None
    waits: bool = False
    promises: bool = True


def endless() -> Intake:
    """All that sources deliver, for as long as they do, and what others push."""
    return Intake(Allowance(ReadLimits(), {}), waits=True)


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
        self._taking = Taking(inputs)
        self._read, self._tell, self._has_room = read, tell, has_room
        self._readings: dict[str, SourceReading] = {}
        self._ahead: set[str] = set()
        """The sources of which a page is or was read before it is their turn."""
        self._spans: dict[InputId, int] = {}
        """How much further each source was after its last page."""
        self._wanted: queue.SimpleQueue[SourceReading | None] = queue.SimpleQueue()
        self._threads = 0
        self._is_closed = False

    # -- taking ----------------------------------------------------------------------------

    def deliver(self, intake: Intake, is_idle: bool) -> bool:
        """Takes the pages that have come and has further ones read; whether anything has come.

        ``is_idle``: nobody has anything to do, so that no room will be made.
        """
        has_news, self.has_news = self.has_news, False
        if intake.allowance is None:
            return has_news
        has_taken = self._take_what_came(intake, is_idle)
        has_news = has_news or has_taken
        self._begin(self._open(intake), intake)
        while has_taken:  # then it may be the turn of what was read ahead
            has_taken = self._take_what_came(intake, is_idle=False)
            self._begin(self._open(intake), intake)
        return has_news

    def _take_what_came(self, intake: Intake, is_idle: bool) -> bool:
        names = self._open(intake)
        at_hand = self._at_hand(names)
        taken = [name for name in at_hand if self._take_if_room(name, intake)]
        is_reading = any(n in self._readings and not self._readings[n].is_over for n in names)
        if is_idle and not taken and not intake.waits and not is_reading:
            held = [name for name in at_hand if name in self._inputs.held]
            taken = [name for name in held[:1] if self._take(name, intake)]
        return bool(taken)

    def _take_if_room(self, name: InputId, intake: Intake) -> bool:
        source = self._inputs.sources[name][0]
        if self._has_room(name, is_live(source)):
            return self._take(name, intake)
        if name not in self._inputs.held:
            self._inputs.held.add(name)
            self._taking.report(name, intake.report, replace(source.progress(), is_held=True))
        return False

    def _open(self, intake: Intake) -> list[InputId]:
        """The sources that a run reads on."""
        if intake.allowance is None or self.error is not None or self._is_closed:
            return []
        return [name for name in self._inputs.sources_of(self._graph) if intake.allowance.of(name)]

    def _at_hand(self, names: Iterable[InputId]) -> list[InputId]:
        """Those with a page whose turn it is, the one furthest behind first."""
        due = [name for name in names if name in self._readings and name not in self._ahead]
        return sorted((n for n in due if self._readings[n].is_over), key=self._inputs.reached)

    def _take(self, name: InputId, intake: Intake) -> bool:
        reading, allowance = self._readings[name], intake.allowance
        self._inputs.held.discard(name)
        if allowance is None or self.error is not None:
            return False
        left, rows, before = allowance.of(name), reading.rows, self._inputs.reached(name)
        if reading.error is not None or not self._taking.is_current(reading, left):
            del self._readings[name]
            self._taking.give_up(reading)
            self.error = reading.error
            return False
        whole = reading.page
        try:
            if rows > left:
                self._taking.take(reading.cut(int(left)), intake.report)
            else:
                del self._readings[name]
                self._taking.take(reading, intake.report)
        except InputError as error:  # the next run meets it again: nothing is lost
            reading.page, self.error = whole, error
            self._keep_refused(reading, error)
            return False
        except StoreError:  # it is taken when the store can be written
            reading.page, self._readings[name] = whole, reading
            raise
        is_known = before >= BEGINNING and name in self._inputs.sources
        self._spans[name] = self._inputs.reached(name) - before if is_known else 0
        allowance.use(name, int(min(rows, left)))
        return True

    def _keep_refused(self, reading: SourceReading, error: InputError) -> None:
        """A page that is refused stays where it is, or is read again where it can be: it may have
        been mended by then."""
        if is_live(reading.source):
            self._readings[reading.name] = reading
        else:
            self._readings.pop(reading.name, None)
            self._taking.give_up(reading)
            reading.pages.error = error

    # -- reading ---------------------------------------------------------------------------

    def _begin(self, names: list[InputId], intake: Intake) -> None:
        is_limited = intake.allowance is not None and intake.allowance.is_limited
        sources = self._inputs.sources
        live = [name for name in names if is_live(sources[name][0])]
        calm = sorted((name for name in names if name not in live), key=self._inputs.reached)
        self._ahead.difference_update(live + calm[:1])
        ahead = self._soon(calm)
        self._ahead.update(ahead)
        for name in live + calm[:1] + ahead:
            if name not in self._readings or not self._taking.is_of(self._readings[name]):
                reading = self._readings[name] = self._taking.reading(name, is_limited)
                self._start(reading, name in live)

    def _soon(self, calm: list[InputId]) -> list[InputId]:
        """Those to be read beside the one furthest behind, where there is room: it will have
        overtaken them when it has come as far once more as with its last page."""
        free = MOST_AT_ONCE - len({*calm[:1], *(n for n in calm if n in self._readings)})
        if free <= 0 or not calm or calm[0] in self._inputs.held:
            return []
        until = self._inputs.reached(calm[0]) + self._spans.get(calm[0], 0)
        near = [name for name in calm[1:] if self._inputs.reached(name) <= until]
        new = [name for name in near if name not in self._readings and self._can_wait(name)]
        return new[:free]

    def _can_wait(self, name: InputId) -> bool:
        """Whether a page of a source may be read long before it is taken."""
        return self._inputs.is_timed(name) and self._has_room(name, False)

    def _start(self, reading: SourceReading, is_alone: bool) -> None:
        if is_alone:
            _thread(lambda: self._execute(reading), f"millpond-{reading.name}")
            return
        if self._threads < min(MOST_AT_ONCE, sum(not r.is_over for r in self._readings.values())):
            self._threads += 1
            _thread(self._work, f"millpond-sources-{self._threads}")
        self._wanted.put(reading)

    def _work(self) -> None:
        while (reading := self._wanted.get()) is not None:
            self._execute(reading)

    def _execute(self, reading: SourceReading) -> None:
        try:
            self._read(reading)
        except BaseException as error:  # noqa: BLE001 (the loop raises it)
            reading.error = error
        with self._lock:
            reading.is_over = self.has_news = True
            self._tell()

    # -- what is to come -------------------------------------------------------------------

    def is_quiet(self, intake: Intake) -> bool:
        """Whether nothing will come now: sources are live and have nothing, or are held back."""
        names = [name for name in self._open(intake) if name not in self._inputs.held]
        are_live = all(is_live(self._inputs.sources[name][0]) for name in names)
        return are_live and not self._at_hand(names)

    def is_over(self, intake: Intake) -> bool:
        """Whether nothing more will come in this run."""
        return not self._open(intake)

    def close(self) -> None:
        """Nothing is taken any more."""
        self._is_closed = True
        for _ in range(self._threads):
            self._wanted.put(None)

    def stop(self, error: Exception) -> None:
        """Nothing more is taken until a run has raised an error."""
        self.error = self.error or error

    def raise_error(self) -> None:
        """Raises what a source has raised."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def _thread(work: Callable[[], None], name: str) -> None:
    """Runs without being waited for: a pipe may be silent for ever."""
    threading.Thread(target=work, name=name, daemon=True).start()
