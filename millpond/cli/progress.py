"""How far a run has come, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from millpond.cli.results import Printer
from millpond.connectors import Progress as SourceProgress

ShowProgress: TypeAlias = Callable[[str, SourceProgress], None]
"""Called with a source's name and how far it has been read."""


class PrintingFailed(BaseException):
    """Results cannot be printed, as their reader has gone for instance: the run is to end.

    It is no ``Exception``: an engine goes on when a subscriber raises one of those.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def ended_by_printing() -> Iterator[None]:
    """Lets what printing raised out of a run, as it was."""
    try:
        yield
    except PrintingFailed as failed:
        raise failed.error from None


class ProgressDisplay:
    """Bars at the foot of a terminal that make way for results."""

    def __init__(self) -> None:
        self._bars: Progress | None = None

    @contextmanager
    def shown(self) -> Iterator[ShowProgress | None]:
        """A bar a source on stderr while the block runs; None where stderr is no terminal."""
        if not sys.stderr.isatty():
            yield None
            return
        amount_read = TextColumn("{task.fields[amount]}")
        columns = (TextColumn("{task.description}"), BarColumn(), amount_read)
        console = Console(file=sys.stderr)
        self._bars = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
        try:
            with self._bars:
                yield _updating(self._bars)
        finally:
            self._bars = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Takes the bars away while something is printed, and shows them again below it."""
        if self._bars is None or not sys.stdout.isatty():
            yield
            return
        self._bars.stop()
        try:
            yield
        finally:
            self._bars.start()

    @contextmanager
    def waiting_for(self, what: str) -> Iterator[None]:
        """Says on a terminal what takes a while, until it is there; from any thread."""
        text = f"starting {what} ..."
        bars = self._bars
        if bars is not None:
            task = bars.add_task(text, total=None, amount="")
            try:
                yield
            finally:
                bars.remove_task(task)
        elif sys.stderr.isatty():
            with Console(file=sys.stderr).status(text):
                yield
        else:
            yield

    def printing(self, printer: Printer) -> Callable[[str, pa.Table], None]:
        """What writes results of a query where the bars are not."""

        def write(query: str, table: pa.Table) -> None:
            try:
                with self.aside():
                    printer.write(query, table)
            except Exception as error:
                raise PrintingFailed(error) from error

        return write


def amount(progress: SourceProgress) -> str:
    """How much has been read.

    >>> amount(SourceProgress(2_500_000, 10_000_000))
    '2.5 of 10.0 MB'
    >>> amount(SourceProgress(1200, None, "rows"))
    '1,200 rows'
    >>> amount(SourceProgress(1200, None, "rows", is_held=True))
    '1,200 rows, held back'
    """
    held = ", held back" if progress.is_held else ""
    if progress.unit == "bytes":
        total = "" if progress.total is None else f" of {progress.total / 1e6:.1f}"
        return f"{progress.done / 1e6:.1f}{total} MB{held}"
    total = "" if progress.total is None else f" of {progress.total:,}"
    return f"{progress.done:,}{total} {progress.unit}{held}"


def _updating(bars: Progress) -> ShowProgress:
    tasks: dict[str, TaskID] = {}

    def update(name: str, progress: SourceProgress) -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(name, total=progress.total, amount="")
        done, total = progress.done, progress.total
        bars.update(tasks[name], completed=done, total=total, amount=amount(progress))

    return update
