"""Pages of sources are taken: read without the lock, here or elsewhere, and taken with it."""

import json
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.connectors import Progress
from millpond.connectors.admission import Admission
from millpond.connectors.sources import SourcePage
from millpond.errors import InputError
from millpond.identities import InputId
from millpond.intake.inputs import Coming, Inputs, Report
from millpond.intake.intake import END, StreamIntake
from millpond.intake.pushing import apply_changes
from millpond.intake.source_reading import SourceReading
from millpond.intake.transitions import PageCame, SourceRead, StreamCame
from millpond.storage.pages import Page


def admit_elsewhere(inputs: Inputs, reading: SourceReading) -> Admission | None:
    """What the rows of a page are admitted by that is about to be read elsewhere; None: it cannot
    be. The lock is held."""
    intake = inputs.streams.get(reading.name)
    if intake is None or _is_looked_at(inputs, intake):
        return None
    intake.is_admitted_elsewhere = True
    reading.admission = intake.admission
    return reading.admission


def _is_looked_at(inputs: Inputs, intake: StreamIntake) -> bool:
    """Whether somebody looks at the tuples of a stream as they come, which elsewhere nobody does:
    constraints, punctuations and a delay that follows how they come remember what came before,
    those too far ahead are put aside, and a drop point thins them."""
    is_thinned = intake.entry.identity in inputs.kept
    follows = intake.disorder is not None or intake.entry.ahead_microseconds is not None
    return bool(intake.watched) or intake.is_punctuated or is_thinned or follows


class Taking:
    """Takes pages of sources; every call comes with the lock held."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def reading(self, name: InputId, is_limited: bool) -> SourceReading:
        """A page of a source, to be read without the lock."""
        return SourceReading(
            name,
            *self._inputs.sources[name],
            self._inputs.read_rows.get(name, 0),
            self._inputs.bad_rows.get(name, 0),
            is_limited,
        )

    def give_up(self, reading: SourceReading) -> None:
        """Forgets what was read."""
        if reading.admission is not None and reading.name in self._inputs.streams:
            self._inputs.streams[reading.name].is_admitted_elsewhere = False
        line = reading.line or {}
        self._inputs.store.remove(tuple(line[key] for key in ("name", "late") if key in line))

    def is_current(self, reading: SourceReading, most_rows: float) -> bool:
        """Whether what was read may be taken: the source and what was admitted are as they were.

        A page that was read elsewhere is taken whole, and if nobody has begun to look at tuples.
        """
        is_whole = reading.line is None or reading.rows <= most_rows
        if not self.is_of(reading) or not is_whole:
            return False
        admission, intake = reading.admission, self._inputs.streams.get(reading.name)
        if admission is None or intake is None:
            return True
        return admission == intake.admission and not _is_looked_at(self._inputs, intake)

    def is_of(self, reading: SourceReading) -> bool:
        """Whether a page is one of the source that there is, and not of one of the same name."""
        return self._inputs.sources.get(reading.name, (None, None))[1] is reading.pages

    def take(self, reading: SourceReading, report: Report | None) -> None:
        """Takes a page of a source; at its end the promise that nothing follows."""
        if reading.line is not None:
            self._take_line(reading.name, reading.line, report)
            return
        name, page = reading.name, reading.page
        self.report(name, report, reading.source.progress())
        with self._inputs.ahead(flushes=False) as coming:
            coming.append(self._taken(name, page))
            if page is None:
                self._inputs.promise_to(self._inputs.queues_of(name), END, coming)
                return
            if page.bad:
                coming.append(self._inputs.put_aside(name, page.bad))
            self._read(name, page.rows, coming)
            if page.until is not None:
                self._inputs.promise_to(self._inputs.queues_of(name), page.until, coming)

    def _taken(self, name: InputId, page: SourcePage | None) -> SourceRead:
        """How much of a source is taken with a page; the position is in the log with its rows."""
        bad = self._inputs.bad_rows.get(name, 0)
        if page is None:
            return SourceRead(name, -1, bad)
        rows = self._inputs.read_rows.get(name, 0) + page.rows.num_rows
        try:
            json.dumps(page.position)
        except (TypeError, ValueError) as error:  # it could never be in the log
            raise InputError(f"{name}: its position is no value of JSON: {error}") from None
        return SourceRead(name, rows, bad + len(page.bad), page.position)

    def _read(self, name: InputId, page: pa.Table, coming: Coming) -> None:
        """The rows of a page of a source come."""
        if name in self._inputs.streams:
            taken = self._inputs.read_rows.get(name, 0)
            self._inputs.accept(name, self._inputs.streams[name], page, coming, taken)
        else:
            times = np.asarray(page["ts"]).astype(np.int64)
            weights = np.asarray(page["weight"]).astype(np.int64)
            rows = page.select(page.column_names[2:])
            apply_changes(self._inputs.relations[name], rows, times, weights, coming)

    def _take_line(self, name: InputId, line: dict[str, Any], report: Report | None) -> None:
        """Takes a page of a stream's source that was read and written elsewhere."""
        self.report(name, report, Progress(*line["progress"]))
        with self._inputs.ahead(flushes=False) as coming:
            coming.append(SourceRead(name, line["taken"]))
            if line["taken"] < 0:
                self._inputs.promise_to(self._inputs.queues_of(name), END, coming)
            else:
                self._read_line(name, line, coming)

    def _read_line(self, name: InputId, line: dict[str, Any], coming: Coming) -> None:
        intake = self._inputs.streams[name]
        intake.is_admitted_elsewhere = False
        self._inputs.store.note_line(line, "name", "sum")
        self._inputs.store.note_line(line, "late", "late_sum")
        if "name" in line:
            page = Page.referred(
                self._inputs.store, line | {"names": [line["name"]], "sorted": True}
            )
            coming.append(PageCame(intake.queue.name, page))
        late = self._late_page(intake, line) if "late" in line else None
        count = intake.late_count + (0 if late is None else late.rows)
        reached = line["largest"], line["arrived"], count, line["heartbeat"]
        coming.append(StreamCame(name, *reached, late))

    def _late_page(self, intake: StreamIntake, line: dict[str, Any]) -> Page:
        name, rows = line["late"], line["late_rows"]
        bytes_ = self._inputs.store.path(name).stat().st_size
        place = intake.late_place(rows)
        return Page(self._inputs.store, rows=rows, bytes_=bytes_, names=(name,), **place)

    def report(self, name: InputId, report: Report | None, progress: Progress) -> None:
        """Tells how far a source is, if that is asked for."""
        if report is not None:
            report(self._inputs.catalog.entries[name].name, progress)
