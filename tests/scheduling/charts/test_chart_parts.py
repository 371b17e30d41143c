from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.charts.chart_parts import ChartPart, absorb, merged, scaled, unfold
from millpond.scheduling.charts.progress_chart import partition

STEPS = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda step: (float(step[0]), step[1])),
    min_size=1,
    max_size=12,
)


def _normalised(steps):
    stack = None
    for place in reversed(range(len(steps))):
        seconds, fall = steps[place]
        stack = absorb(ChartPart(seconds, fall, (place,)), stack)
    return list(unfold(stack))


@given(STEPS)
def test_absorbing_from_the_end_gives_the_lower_envelope(steps):
    points, seconds, size = [(0.0, 0.0)], 0.0, 0.0
    for duration, fall in steps:
        seconds, size = seconds + duration, size - fall
        points.append((seconds, size))
    expected = [tuple(range(each.first, each.last + 1)) for each in partition(points)]
    assert [part.operators for part in _normalised(steps)] == expected


@given(STEPS)
def test_slopes_fall_and_nothing_is_lost(steps):
    parts = _normalised(steps)
    slopes = [part.slope for part in parts]
    assert slopes == sorted(slopes, reverse=True)
    assert sum(part.seconds for part in parts) == sum(seconds for seconds, _ in steps)
    assert [each for part in parts for each in part.operators] == list(range(len(steps)))


@given(STEPS, STEPS)
def test_merging_keeps_the_order_of_each_chart(one, other):
    left = _normalised(one)
    right = [
        ChartPart(part.seconds, part.fall, (100, *part.operators)) for part in _normalised(other)
    ]
    both = list(unfold(merged([_stack(left), _stack(right)])))
    assert [part for part in both if part in left] == left
    assert sorted(map(id, both)) == sorted(map(id, [*left, *right]))


def test_scaling_keeps_slopes():
    stack = absorb(ChartPart(2.0, 4.0, (1,)), None)
    (part,) = unfold(scaled(stack, 0.5))
    assert (part.seconds, part.fall, part.operators) == (1.0, 2.0, (1,))
    assert scaled(stack, 1.0) is stack


def _stack(parts):
    stack = None
    for part in reversed(parts):
        stack = part, stack
    return stack
