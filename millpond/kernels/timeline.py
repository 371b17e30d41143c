"""The events of one step in order: running sums at every instant; step functions as elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millpond.kernels.columns import marked, with_first, with_last
from millpond.kernels.groups import Bools, Ints, stable_order
from millpond.schema import BEGINNING, FOREVER


@dataclass(frozen=True)
class Elements:
    """What a step puts in: row number, group, start, end and weight of each element."""

    row: Ints
    code: Ints
    start: Ints
    end: Ints
    weight: Ints

    def changes(self, until: int, marks: Marks | None = None) -> Changes:
        """Starts and the ends that fall into the step, in order of group and time."""
        ending = marked(self.end <= until)
        mark_code, mark_time = marks or (_NONE, _NONE)
        nothing = np.zeros(len(mark_code), dtype=np.int64)
        return Changes.ordered(
            np.concatenate([nothing - 1, self.row, self.row[ending]]),
            np.concatenate([mark_code, self.code, self.code[ending]]),
            np.concatenate([mark_time, self.start, self.end[ending]]),
            np.concatenate([nothing, self.weight, -self.weight[ending]]),
        )


Marks = tuple[Ints, Ints]
"""Group and time of weightless changes, made to see the value a group has there."""

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Changes:
    """Signed changes ordered by group and time."""

    row: Ints
    code: Ints
    time: Ints
    weight: Ints

    @staticmethod
    def ordered(row: Ints, code: Ints, time: Ints, weight: Ints) -> Changes:
        """The changes, sorted."""
        order = order_of(code, time)
        return Changes(row[order], code[order], time[order], weight[order])


def order_of(first: Ints, then: Ints) -> Ints:
    """The stable order by one number, usually the group, then by another, usually the time."""
    if len(first) == 0:
        return np.zeros(0, dtype=np.int64)
    low, high = int(first.min()), int(first.max())
    then_low, then_high = int(then.min()), int(then.max())
    span = then_high - then_low + 1
    if (high - low + 1) * span < 2**62:
        return stable_order((first - low) * span + (then - then_low))
    return np.lexsort((then, first))


@dataclass(frozen=True)
class Timeline:
    """The distinct (group, time) pairs of a step, and how to sum changes up to each of them."""

    changes: Changes
    last: Ints
    """For each instant, the position of its last change."""
    code: Ints
    time: Ints
    is_first: Bools
    """Whether the instant is the first of its group in this step."""

    @staticmethod
    def of(changes: Changes) -> Timeline:
        """The instants of these changes."""
        size = len(changes.code)
        if size == 0:
            empty = np.zeros(0, dtype=np.int64)
            return Timeline(changes, empty, empty, empty, np.zeros(0, dtype=np.bool_))
        differs = (changes.code[1:] != changes.code[:-1]) | (changes.time[1:] != changes.time[:-1])
        last = with_last(marked(differs), size - 1)
        code = changes.code[last]
        is_first = with_first(True, code[1:] != code[:-1])
        return Timeline(changes, last, code, changes.time[last], is_first)

    def running(self, amounts: Ints, initial: Ints) -> Ints:
        """The sum of the amounts (one a change) up to each instant, from each group's initial."""
        if len(self.last) == 0:
            return np.zeros(0, dtype=np.int64)
        total = np.cumsum(amounts)
        at_instants = total[self.last]
        before = np.where(self.is_first, with_first(0, at_instants[:-1]), 0)
        starts = marked(self.is_first)
        before = np.repeat(before[starts], np.diff(with_last(starts, len(self.last))))
        result: Ints = at_instants - before + initial[self.code]
        return result

    def running_of(self, other: Changes, amounts: Ints, initial: Ints) -> Ints:
        """Like ``running`` for changes that only happen at some of the instants."""
        if len(self.last) == 0:
            return np.zeros(0, dtype=np.int64)
        dense = np.zeros(len(self.last), dtype=np.int64)
        np.add.at(dense, self.locate(other.code, other.time), amounts)
        own = Changes(self.last, self.code, self.time, dense)
        return Timeline.of(own).running(dense, initial)

    def locate(self, code: Ints, time: Ints) -> Ints:
        """The instant at which each of the given (group, time) pairs stands."""
        own = np.concatenate([self.code, code])
        times = np.concatenate([self.time, time])
        is_query = np.zeros(len(own), dtype=np.bool_)
        is_query[len(self.code) :] = True
        order = order_of(own, times)
        index = np.cumsum(~is_query[order]) - 1
        found = np.empty(len(own), dtype=np.int64)
        found[order] = index
        result: Ints = found[len(self.code) :]
        return result

    @property
    def is_last(self) -> Bools:
        """Whether the instant is the last of its group in this step."""
        return with_last(self.is_first[1:], True) if len(self.is_first) else self.is_first

    def previous(self, values: Ints, initial: Ints) -> Ints:
        """The value one instant earlier, or the group's initial one."""
        if len(values) == 0:
            return values
        return np.where(
            self.is_first, initial[self.code], np.concatenate((values[:1], values[:-1]))
        )


def spans(timeline: Timeline, changed: Bools) -> tuple[Ints, Ints]:
    """The instants with a change, and until when the value taken there holds within the step."""
    at = marked(changed)
    code, time = timeline.code[at], timeline.time[at]
    end = np.full(len(at), FOREVER, dtype=np.int64)
    same = code[1:] == code[:-1]
    end[:-1][same] = time[1:][same]
    return at, end


def marks_at(after: int, groups: int, is_global: bool = False) -> Marks:
    """A mark for each group at the step's beginning.

    A global aggregate also holds at the very beginning, before anything has happened.
    """
    codes, times = np.arange(groups), np.full(groups, after)
    if is_global and after < BEGINNING:
        return with_last(codes, 0), with_last(times, BEGINNING)
    return codes, times
