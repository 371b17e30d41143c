"""Operators that free rows of their state which nothing can reach any more.

A bound of a stream is known when a step is prepared; how much of it holds depends on how far the
step comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.steps import Step
from millpond.identities import StreamId
from millpond.planning.bounded import Ageing, AnyFreeing, Freeing, Meeting, Source
from millpond.planning.punctuated import Closing, Way
from millpond.storage.bounds import Age
from millpond.storage.closed import ClosedKeys, KeyPattern
from millpond.storage.frees import Closed, Free, Frees, Over
from millpond.storage.state import COMPACT_ROWS


class FreeingOperator(RunningOperator):
    """Knows which rows of its state can go after a step."""

    freeing: tuple[AnyFreeing, ...] = ()
    """By which constraints of streams they can."""
    closing: tuple[Closing, ...] = ()
    """By which punctuations of streams they can."""
    _swept: int = 0
    _sweep: tuple[int, int] | None = None
    """How many values were closed when all rows were last looked at; and when they are next."""

    @property
    def freed_rows(self) -> int:
        """How many rows were freed so far."""
        raise NotImplementedError

    @property
    def freed_bytes(self) -> int:
        """How many bytes they had."""
        raise NotImplementedError

    def prepare(self, until: int) -> OperatorStep:
        """Looks by what rows can be freed in the step."""
        self.freeing = tuple(self.around.freeing(self.identity))
        self.closing = tuple(self.around.closing(self.identity))
        self._sweep = self._sweep_at(until)
        return super().prepare(until)

    def frees(self, side: int, until: int) -> Frees:
        """What can go, after a step, on a side of its state."""
        found: list[Free | ClosedKeys] = []
        for each in (each for each in self.freeing if each.side == side):
            match each:
                case Freeing():
                    overs = [self._over(source, until) for source in each.sources]
                    found += _free(each.column, overs)
                case Ageing():
                    ages = [self._age(*by) for by in each.by]
                    is_known = each.is_direct or all(age and age.since is None for age in ages)
                    times = [age.at(until) if age and is_known else None for age in ages]
                    found += _free("_ts", [() if over is None else (over,) for over in times])
        for closing in (each for each in self.closing if each.side == side):
            found += self._closed_keys(closing, until)
        return tuple(found)

    def _closed_keys(self, closing: Closing, until: int) -> Iterator[ClosedKeys]:
        """The keys that nothing has which begins after a time."""
        ways = tuple(tuple(self._patterns(way, until)) for way in closing.ways)
        if all(ways):
            yield ClosedKeys(ways)

    def _patterns(self, way: Way, until: int) -> Iterator[KeyPattern]:
        queue = self.around.queues.get(way.stream.queue)
        for pattern in () if queue is None else queue.closed_after(until):
            keys = way.keys_of(pattern)
            if keys is not None:
                yield tuple((f"k{key}", values) for key, values in keys)

    def _sweep_at(self, until: int) -> tuple[int, int] | None:
        """If so many values were closed that all rows are to be looked at: when, and how many."""
        sources = {s for each in self.freeing if isinstance(each, Freeing) for s in each.sources}
        count = sum(self._closed_count(each, until) for each in sources)
        self._swept = min(self._swept, count)  # with a constraint gone they begin anew
        return (until, count) if count - self._swept >= COMPACT_ROWS else None

    def commit(self, step: Step) -> None:
        """All rows were looked at, if that was to be done in the step."""
        if step.outcome is not None and self._sweep is not None and self._sweep[0] == step.until:
            self._swept, self._sweep = self._sweep[1], None
        super().commit(step)

    def once_met(self, side: int, until: int) -> Over | None:
        """Which times of rows are over that those of a side have met; None: nothing follows from
        having met one."""
        for each in self.freeing:
            if isinstance(each, Meeting) and each.side == side:
                age = self._age(each.stream, each.constraint)
                return None if age is None else age.once_met(until)
        return None

    def _age(self, stream: StreamId, constraint: str) -> Age | None:
        """How old tuples must be by a constraint; None: it is gone, with all that relied on it."""
        queue = self.around.queues.get(stream.queue)
        return None if queue is None else queue.ages.get(constraint)

    def _closed_count(self, source: Source, until: int) -> int:
        """How many values of a column of a stream are over."""
        queue, time = self.around.queues.get(source.stream.queue), self._begun(source, until)
        closings = None if queue is None else queue.closings.get(source.column)
        return 0 if closings is None or time is None else closings.count(time)

    def _over(self, source: Source, until: int) -> tuple[Over | Closed, ...]:
        """Which values of a column of a stream are over."""
        queue, time = self.around.queues.get(source.stream.queue), self._begun(source, until)
        if queue is None or time is None:
            return ()
        bounds, closings = queue.bounds.get(source.column), queue.closings.get(source.column)
        least = None if bounds is None else bounds.at(time)
        is_now = self._sweep is not None and self._sweep[0] == until
        new = self._sweep[1] - self._swept if self._sweep is not None and is_now else 0
        closed = closings.at(time, new) if closings is not None and new else None
        known = None if least is None else Over(least), closed
        return tuple(each for each in known if each is not None)

    def _begun(self, source: Source, until: int) -> int | None:
        """After which time the tuples of a stream have come that bring something new after another
        time; None: that is not known."""
        for by in source.soon:
            ages = [self._age(*each) for each in by]
            overs = [age.at(until) for age in ages if age is not None and age.since is None]
            least = [over.least for over in overs if over is not None and over.least is not None]
            if len(least) < len(ages):
                return None
            until = min([until, *(each - 1 for each in least)])
        return until


def _free(column: str, overs: Sequence[tuple[Over | Closed, ...]]) -> Iterator[Free]:
    """What can go if it is known of all sources what is over there."""
    if overs and all(overs):
        yield Free(column, tuple(overs))
