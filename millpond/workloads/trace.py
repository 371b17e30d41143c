"""Recorded arrivals."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from millpond.errors import InputError
from millpond.workloads.process import CHUNK_ARRIVALS, ArrivalProcess, FloatArray


class SizedArrivals(NamedTuple):
    """Arrival times, and how large each tuple is."""

    times: FloatArray
    sizes: FloatArray


@dataclass(frozen=True)
class Trace(ArrivalProcess):
    """Recorded arrivals: a text file with columns time (seconds) and, optionally, size.

    Columns are separated by spaces or commas; a first line that is no number is a header.
    """

    file: str

    @property
    def mean_arrivals_per_second(self) -> float:
        """All arrivals over the time from the first to the last."""
        count, last = 0, 0.0
        for times in self.arrivals():
            count, last = count + len(times), float(times[-1])
        if last == 0:
            raise InputError(f"{self.file}: a trace needs arrivals at two times at least")
        return (count - 1) / last

    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The recorded times, counted from the first; ``seed`` changes nothing."""
        for times, _ in self.records():
            yield times

    def sized_until(self, seconds: float) -> SizedArrivals:
        """All recorded arrivals before ``seconds``, with their sizes."""
        chunks = []
        for times, sizes in self.records():
            end = np.searchsorted(times, seconds)
            chunks.append((times[:end], sizes[:end]))
            if times[-1] >= seconds:
                break
        columns = [np.concatenate(column) for column in zip(*chunks, strict=True)]
        return SizedArrivals(*columns) if columns else SizedArrivals(np.empty(0), np.empty(0))

    def records(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """The recorded times, counted from the first, with the sizes (1 where there is none)."""
        first = last = None
        for rows in self._rows():
            times, sizes = rows[:, 0], rows[:, 1]
            first = times[0] if first is None else first
            if np.any(np.diff(times, prepend=times[0] if last is None else last) < 0):
                raise InputError(f"{self.file}: the times of a trace must not go back")
            last = times[-1]
            yield times - first, sizes

    def _rows(self) -> Iterator[FloatArray]:
        try:
            with Path(self.file).open() as lines:
                numbered = enumerate(lines, start=1)
                while chunk := list(itertools.islice(numbered, CHUNK_ARRIVALS)):
                    rows = [row for n, line in chunk if (row := self._row(n, line)) is not None]
                    if rows:
                        yield np.array(rows, dtype=np.float64)
        except OSError as error:
            raise InputError(f"{self.file}: {error.strerror}") from None

    def _row(self, number: int, line: str) -> tuple[float, float] | None:
        cells = line.replace(",", " ").split()
        if not cells:
            return None
        try:
            return float(cells[0]), float(cells[1]) if len(cells) > 1 else 1.0
        except ValueError:
            if number == 1:
                return None
            raise InputError(
                f"{self.file}, line {number}: {line.strip()!r} is not a time and a size"
            ) from None
