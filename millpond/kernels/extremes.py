"""The greatest value of each group at every instant, while values come and go."""

import heapq

import numpy as np

from millpond.kernels.columns import marked, with_first, with_last
from millpond.kernels.groups import Bools, Ints, distinct
from millpond.kernels.timeline import Changes, Timeline, order_of

NOTHING = -(2**63)
"""Smaller than every rank: no value."""


def greatest_of_intervals(
    timeline: Timeline, code: Ints, start: Ints, end: Ints, value: Ints
) -> Ints:
    """At each instant the greatest value whose interval covers it, or NOTHING."""
    order = order_of(code, start)
    code, start, end, value = code[order], start[order], end[order], value[order]
    same = code[1:] == code[:-1]
    if not bool(np.all(end[1:][same] >= end[:-1][same])):
        return _sweep(timeline, code, start, end, value)
    high = _count_until(timeline, code, start)
    low = _count_until(timeline, code, end)
    return _range_maximum(value, low, high)


def _count_until(timeline: Timeline, code: Ints, time: Ints) -> Ints:
    """How many of the pairs, ordered by group and time, stand at or before each instant."""
    low = int(min(time.min(initial=0), timeline.time.min(initial=0)))
    high = int(timeline.time.max(initial=low)) + 1
    span = high - low + 1
    groups = int(max(code.max(initial=0), timeline.code.max(initial=0))) + 1
    if span * groups < 2**62:
        keys = code * span + (np.minimum(time, high) - low)
        return np.searchsorted(keys, timeline.code * span + (timeline.time - low), side="right")
    times = distinct(np.concatenate([time, timeline.time]))
    keys = code * len(times) + np.searchsorted(times, time)
    wanted = timeline.code * len(times) + np.searchsorted(times, timeline.time)
    return np.searchsorted(keys, wanted, side="right")


def _range_maximum(value: Ints, low: Ints, high: Ints) -> Ints:
    """The maximum of value[low:high] for each pair, by a table of maxima over powers of two."""
    result = np.full(len(low), NOTHING, dtype=np.int64)
    length = high - low
    level = np.zeros(len(low), dtype=np.int64)
    filled = length > 0
    level[filled] = np.floor(np.log2(length[filled])).astype(np.int64)
    table = value
    for step in range(int(level.max(initial=0)) + 1):
        at = marked(filled & (level == step))
        width = 1 << step
        result[at] = np.maximum(table[low[at]], table[high[at] - width])
        if len(table) <= width:
            break
        table = np.maximum(table[:-width], table[width:])
    return result


def _sweep(timeline: Timeline, code: Ints, start: Ints, end: Ints, value: Ints) -> Ints:
    """The same for intervals that end in any order: one heap, instant by instant."""
    result = np.full(len(timeline.code), NOTHING, dtype=np.int64)
    ends, values = end.tolist(), value.tolist()
    until = _count_until(timeline, code, start).tolist()
    first = np.searchsorted(code, timeline.code).tolist()
    heap: list[tuple[int, int]] = []
    position = 0
    times, is_first = timeline.time.tolist(), timeline.is_first.tolist()
    for instant, time in enumerate(times):
        if is_first[instant]:
            heap, position = [], first[instant]
        while position < until[instant]:
            heapq.heappush(heap, (-values[position], ends[position]))
            position += 1
        while heap and heap[0][1] <= time:
            heapq.heappop(heap)
        if heap:
            result[instant] = -heap[0][0]
    return result


def greatest_of_counts(
    timeline: Timeline,
    changes: Changes,
    value: Ints,
    bag_code: Ints,
    bag_value: Ints,
    bag_count: Ints,
) -> Ints:
    """The same where values are added and removed by count; the bag is what was there before."""
    result = np.full(len(timeline.code), NOTHING, dtype=np.int64)
    begins = np.searchsorted(bag_code, np.arange(int(timeline.code.max(initial=-1)) + 2)).tolist()
    bag = list(zip(bag_value.tolist(), bag_count.tolist(), strict=True))
    moves = list(zip(value.tolist(), changes.weight.tolist(), strict=True))
    codes, lasts = timeline.code.tolist(), timeline.last.tolist()
    counts: dict[int, int] = {}
    heap: list[int] = []
    position = 0
    for instant, (code, is_first) in enumerate(zip(codes, timeline.is_first.tolist(), strict=True)):
        if is_first:
            counts = dict(bag[begins[code] : begins[code + 1]])
            heap = [-v for v in counts]
            heapq.heapify(heap)
        for v, weight in moves[position : lasts[instant] + 1]:
            if v == NOTHING:
                continue
            if v not in counts:
                heapq.heappush(heap, -v)
                counts[v] = 0
            counts[v] += weight
        position = lasts[instant] + 1
        while heap and counts[-heap[0]] <= 0:
            del counts[-heapq.heappop(heap)]
        if heap:
            result[instant] = -heap[0]
    return result


def still_eligible(code: Ints, end: Ints, value: Ints, until: int) -> Bools:
    """Which intervals can still hold the greatest value after ``until``.

    One that ends no later than another of at least its value never will.
    """
    keep = np.zeros(len(code), dtype=np.bool_)
    alive = marked(end > until)
    order = alive[order_of(code[alive], end[alive])]
    codes, ends, values = code[order], end[order], value[order]
    ending_together: Ints = np.cumsum(_differs(codes) | _differs(ends), dtype=np.int64)
    best_of_later = _greatest_before(values[::-1], codes[::-1])[::-1]
    best_of_same_end = _greatest_before(values, ending_together)
    keep[order[(values > best_of_later) & (values >= best_of_same_end)]] = True
    return keep


def _differs(numbers: Ints) -> Bools:
    """Whether each number differs from the one before it; the first one does."""
    return with_first(True, numbers[1:] != numbers[:-1])[: len(numbers)]


def _greatest_before(value: Ints, run: Ints) -> Ints:
    """The greatest value before each place within its run of equal numbers, or NOTHING.

    Each turn doubles how far back every place has looked.
    """
    starts = marked(_differs(run))
    best = with_first(NOTHING, value[:-1])[: len(value)]
    best[starts] = NOTHING
    longest = int(np.diff(with_last(starts, len(run))).max(initial=0))
    reach = 1
    while reach < longest:
        same = run[reach:] == run[:-reach]
        best[reach:] = np.maximum(best[reach:], np.where(same, best[:-reach], NOTHING))
        reach *= 2
    return best
