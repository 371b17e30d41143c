"""What functions OVER say of rows in order, from instant to instant, stretch by stretch.

A stretch is a piece of a partition: the rows near those that come or go. Rows are numbers, in
order; a row that is there several times stands there as often.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from operator import itemgetter

from millpond.cql.expressions import Frame
from millpond.kernels.aggregate import overflow

Told = int | float | None
"""What is said of a row: a number, or the code of a value."""

Change = tuple[int, int, int]
"""The time of a change, its row and its weight."""

Said = Counter[tuple[int, Told]]
"""How many copies of a row something is said of."""

Best = Callable[[int | None, int | None], int | None]
"""Chooses one of two codes."""

Amount = tuple[int, int, int]
"""How many values, their sum, and how many of them are no finite numbers."""

NOTHING: Amount = (0, 0, 0)
SUMS = ("count", "sum", "avg")
EXTREMES = ("min", "max")
SCALE = 1 << 96
"""Doubles are summed up as multiples of one part in so many."""
ODD_BITS = 40
"""Counts of +infinity, -infinity and NaN stand in one number, of so many bits each."""
LARGEST = 2**63 - 1
NAN = float("nan")
"""One for all, so that it equals itself where it is compared."""


@dataclass(frozen=True)
class Rows:
    """What functions look at: of each row a number that ties share, where it stands on the scale of
    a RANGE frame, what it adds to sums, and the code of its value."""

    peers: list[int]
    scale: list[float]
    amounts: list[Amount]
    codes: list[int | None]


@dataclass(frozen=True)
class Function:
    """A function over frames; ``number``: how far lag and lead look, how many parts ntile makes."""

    name: str
    frame: Frame
    number: int
    is_whole: bool
    """Whether sums are of whole numbers."""
    digits: tuple[int, int] | None = None
    """Of DECIMALs: how many digits there is room for, and how many more of them behind the point
    than numbers summed up have."""

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """From where to where it looks, seen from a row; None: to the end of its partition."""
        if self.name == "lag":
            return -self.number, -self.number
        if self.name == "lead":
            return self.number, self.number
        return (None, None) if self.name == "ntile" else (self.frame.start, self.frame.end)

    @property
    def reach(self) -> tuple[int | None, int | None]:
        """How far before and behind a row that comes or goes others are concerned."""
        start, end = self.bounds
        return (None if end is None else max(end, 0)), (None if start is None else -min(start, 0))

    @property
    def is_by_rows(self) -> bool:
        """Whether it counts rows, rather than goes by values."""
        return self.frame.unit == "rows" or self.name in ("lag", "lead", "ntile")

    @property
    def has_carry(self) -> bool:
        """Whether what lies before a stretch can be summed up."""
        start, end = self.bounds
        return self.name in SUMS and start is None and end is not None

    def summed(self, amount: Amount) -> Told:
        """What it says of a frame of such an amount."""
        count, total, odd = amount
        if self.name == "count" or count == 0:
            return count if self.name == "count" else None
        if self.digits is not None:
            return self._exact(count, total, *self.digits)
        if self.name == "sum" and self.is_whole:
            if not -LARGEST - 1 <= total <= LARGEST:
                raise overflow(())
            return total
        real = float(total) if self.is_whole else _real(total, odd)
        return real / count if self.name == "avg" and not odd else real

    def _exact(self, count: int, total: int, precision: int, more: int) -> int:
        if self.name == "avg":
            over, under = abs(total) * 10 ** max(more, 0), count * 10 ** max(-more, 0)
            mean = (2 * over + under) // (2 * under)
            total = -mean if total < 0 else mean
        if abs(total) >= 10**precision:
            raise overflow(())
        return total


def _real(total: int, odd: int) -> float:
    mask = (1 << ODD_BITS) - 1
    plus, minus, nan = odd & mask, (odd >> ODD_BITS) & mask, odd >> (2 * ODD_BITS)
    if nan or (plus and minus):
        return NAN
    if plus or minus:
        return float("inf") if plus else float("-inf")
    return total / SCALE


@dataclass
class Line:
    """The rows of a stretch, in order; ``carry``: the amount of what lies before it."""

    function: Function
    rows: Rows
    line: list[int]
    carry: Amount = NOTHING
    _sums: list[Amount] = field(default_factory=list)
    """The amounts of the first rows, as far as they are known."""
    _extremes: list[int | None] = field(default_factory=list)

    def places(self, row: int) -> tuple[int, int]:
        """From where to where a row stands, or would stand."""
        return bisect.bisect_left(self.line, row), bisect.bisect_right(self.line, row)

    def move(self, row: int, weight: int) -> None:
        """Puts in so many copies of a row, or takes them out."""
        first, last = self.places(row)
        self.line[first:last] = [row] * (last - first + weight)
        del self._sums[first + 1 :], self._extremes[first + 1 :]

    def concerned(self, row: int, slack: int) -> range:
        """Where the rows stand of which something else may be said if a row comes or goes."""
        first, last = self.places(row)
        before, behind = self.function.reach
        if not self.function.is_by_rows:
            return self._concerned_by_value(row, before, behind)
        low = 0 if before is None else max(first - before - slack, 0)
        high = len(self.line) if behind is None else min(last + behind + slack, len(self.line))
        return range(low, high)

    def _concerned_by_value(self, row: int, before: int | None, behind: int | None) -> range:
        low, high = 0, len(self.line)
        if before is not None:
            low = self._first(row, -before)
        if behind is not None:
            high = self._behind(row, behind)
        return range(low, high)

    def _first(self, row: int, offset: int) -> int:
        """Where the first row stands that is no further before a row than an offset."""
        if offset == 0 or abs(self.rows.scale[row]) == float("inf"):
            return bisect.bisect_left(self.line, self.rows.peers[row], key=self._peer)
        return bisect.bisect_left(self.line, self.rows.scale[row] + offset, key=self._scale)

    def _behind(self, row: int, offset: int) -> int:
        """Where the first row stands that is further behind a row than an offset."""
        if offset == 0 or abs(self.rows.scale[row]) == float("inf"):
            return bisect.bisect_right(self.line, self.rows.peers[row], key=self._peer)
        return bisect.bisect_right(self.line, self.rows.scale[row] + offset, key=self._scale)

    def _peer(self, row: int) -> int:
        return self.rows.peers[row]

    def _scale(self, row: int) -> float:
        return self.rows.scale[row]

    def _frame(self, at: int) -> tuple[int, int]:
        """From where to where the frame of a row reaches."""
        start, end = self.function.bounds
        size, row = len(self.line), self.line[at]
        if self.function.is_by_rows:
            first = 0 if start is None else at + start
            last = size if end is None else at + end + 1
        else:
            first = 0 if start is None else self._first(row, start)
            last = size if end is None else self._behind(row, end)
        first = min(max(first, 0), size)
        return first, min(max(last, first), size)

    # -- what is said ----------------------------------------------------------------------

    def told(self, places: Iterable[int]) -> Iterator[tuple[int, Told]]:
        """The rows at some places, and what is said of them."""
        listed = list(places)
        if self.function.name == "ntile":
            yield from ((self.line[at], self._part(at)) for at in listed)
            return
        frames = [self._frame(at) for at in listed]
        said = self._teller(frames)
        for at, (first, last) in zip(listed, frames, strict=True):
            yield self.line[at], said(first, last)

    def _part(self, at: int) -> int:
        """In which of so many parts of the same size, the first ones one larger, a row is."""
        size, larger = divmod(len(self.line), self.function.number)
        if at < larger * (size + 1):
            return at // (size + 1) + 1
        return larger + (at - larger * (size + 1)) // size + 1

    def _teller(self, frames: list[tuple[int, int]]) -> Callable[[int, int], Told]:
        name = self.function.name
        if name in SUMS:
            return self._of_sums(frames)
        if name in EXTREMES:
            return self._of_extremes(frames)
        at = -1 if name == "last_value" else 0
        return lambda first, last: self._code((first, last - 1)[at]) if first < last else None

    def _code(self, at: int) -> int | None:
        return self.rows.codes[self.line[at]]

    def _of_sums(self, frames: list[tuple[int, int]]) -> Callable[[int, int], Told]:
        if self.function.bounds[0] is None:
            known = self._sums_up_to(max((last for _, last in frames), default=0))
            return lambda first, last: self.function.summed(known[last])
        low = min((first for first, _ in frames), default=0)
        high = max((last for _, last in frames), default=0)
        sums = list(self._accumulated(NOTHING, low, high))

        def said(first: int, last: int) -> Told:
            one, other = sums[first - low], sums[last - low]
            return self.function.summed((other[0] - one[0], other[1] - one[1], other[2] - one[2]))

        return said

    def _sums_up_to(self, high: int) -> list[Amount]:
        known = self._sums or [self.carry]
        if len(known) <= high:
            more = self._accumulated(known[-1], len(known) - 1, high)
            next(more)
            known += more
        self._sums = known
        return known

    def _accumulated(self, initial: Amount, low: int, high: int) -> Iterator[Amount]:
        amounts = (self.rows.amounts[row] for row in self.line[low:high])
        return accumulate(amounts, _added, initial=initial)

    def _of_extremes(self, frames: list[tuple[int, int]]) -> Callable[[int, int], Told]:
        best = _largest if self.function.name == "max" else _smallest
        start, end = self.function.bounds
        if start is None and end is not None:
            known = self._extremes_up_to(best, max((last for _, last in frames), default=0))
            return lambda first, last: known[last]
        if end is None:
            low = min((first for first, _ in frames), default=0)
            suffix = self._extended([None], range(len(self.line) - 1, low - 1, -1), best)[::-1]
            return lambda first, last: suffix[first - low]
        found = max if self.function.name == "max" else min

        def said(first: int, last: int) -> Told:
            codes = (self.rows.codes[row] for row in self.line[first:last])
            return found((code for code in codes if code is not None), default=None)

        return said

    def _extremes_up_to(self, best: Best, high: int) -> list[int | None]:
        known = self._extremes or [None]
        self._extremes = self._extended(known, range(len(known) - 1, high), best)
        return self._extremes

    def _extended(
        self, known: list[int | None], places: Iterable[int], best: Best
    ) -> list[int | None]:
        """The best codes so far, one place after the other."""
        for at in places:
            known.append(best(known[-1], self._code(at)))
        return known


def _added(one: Amount, other: Amount) -> Amount:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _largest(one: int | None, other: int | None) -> int | None:
    return other if one is None or (other is not None and other > one) else one


def _smallest(one: int | None, other: int | None) -> int | None:
    return other if one is None or (other is not None and other < one) else one


@dataclass
class Sayings:
    """What is said of rows that was not, or no longer, with the time of each change."""

    time: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)

    def note(self, time: int, before: Said, now: Said) -> None:
        """Something else is said of rows."""
        for one, other, sign in ((before, now, -1), (now, before, 1)):
            for (row, told), copies in (one - other).items():
                self.time.append(time)
                self.row.append(row)
                self.told.append(told)
                self.weight.append(sign * copies)


def play(line: Line, changes: Iterable[Change], sayings: Sayings) -> None:
    """Notes what is said otherwise as rows come and go, in the order of time."""
    for time, of_instant in groupby(changes, itemgetter(0)):
        moved: dict[int, int] = {}
        for _, row, weight in of_instant:
            moved[row] = moved.get(row, 0) + weight
        moved = {row: weight for row, weight in moved.items() if weight}
        slack = sum(map(abs, moved.values()))
        near = {line.line[at] for row in moved for at in line.concerned(row, slack)}
        rows = sorted(near | moved.keys())
        before = _said(line, rows)
        for row, weight in moved.items():
            line.move(row, weight)
        sayings.note(time, before, _said(line, rows))


def _said(line: Line, rows: list[int]) -> Said:
    places = (at for row in rows for at in range(*line.places(row)))
    return Counter(line.told(places))
