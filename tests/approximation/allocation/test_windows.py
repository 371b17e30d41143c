"""Memory for windows is allotted as an exhaustive search would, and by increments."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.allocation.windows import WindowAllocation, WindowNeed
from tests.drawn_examples import examples

NEEDS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1,
    max_size=3,
)


def needs_of(drawn):
    return [
        WindowNeed(f"w{n}", units, least, weight) for n, (units, least, weight) in enumerate(drawn)
    ]


def score(needs, units):
    return sum(each.weight * units[each.name] / each.units for each in needs)


def best(needs, room):
    """The best score of all ways to divide the room."""
    choices = [range(min(e.least_units, e.units), e.units + 1) if e.weight else [0] for e in needs]
    names = [each.name for each in needs]
    ways = (dict(zip(names, each, strict=True)) for each in product(*choices))
    return max(score(needs, each) for each in ways if sum(each.values()) <= room)


@examples(60)
@given(NEEDS, st.integers(0, 20))
def test_it_is_the_best_division_and_nobody_who_is_inactive_gets_any(drawn, room):
    needs = needs_of(drawn)
    found = WindowAllocation().allot(needs, room)
    if sum(each.units for each in needs) <= room:
        assert found == {}
        return
    least = {e.name: min(e.least_units, e.units) if e.weight else 0 for e in needs}
    if sum(least.values()) >= room:
        assert found == least
        return
    assert sum(found.values()) <= room
    assert all(found[each.name] >= least[each.name] for each in needs)
    assert score(needs, found) > best(needs, room) - 1e-9
    assert not any(found[each.name] for each in needs if not each.weight)


def test_only_what_has_changed_is_computed_again():
    allocation = WindowAllocation()
    needs = [WindowNeed(f"w{n}", 20, 2, 1.0 + n) for n in range(5)]
    allocation.allot(needs, 50)
    first = allocation.computed_fronts
    allocation.allot(list(needs), 50)
    assert allocation.computed_fronts == first == 5
    changed = [*needs[:4], WindowNeed("w4", 30, 2, 5.0)]
    allocation.allot(changed, 50)
    assert allocation.computed_fronts == first + 1
