"""The allocation equals exhaustive search on small plans, and beats simple ones on larger ones."""

from itertools import product

import numpy as np
import pytest

from millpond.approximation.allocation import Allocator, Operator, Option, Query, Stream
from millpond.approximation.precision import (
    EXACT,
    Difference,
    Distinct,
    Intersection,
    Join,
    Partners,
    Precision,
    Projection,
    Selection,
    Semijoin,
    Union,
    precision,
)

PARTNERS = Partners((0.6, 0.3, 0.1))
ONE_INPUT = [Selection(0.4), Projection(), Distinct(PARTNERS), Distinct()]
TWO_INPUTS = [
    Join(), Union((0.3, 0.7)), Semijoin(0.4, PARTNERS), Difference(0.5, PARTNERS),
    Intersection(0.4), Difference(0.3),
]  # fmt: skip


def options(random, most, monotone=False):
    """A curve: mostly better with more memory, now and then worse."""
    units = np.sort(random.choice(most + 1, size=random.integers(2, 5), replace=False))
    fps, fns = random.uniform(0, 0.4, len(units)), random.uniform(0, 2, len(units))
    if monotone or random.uniform() < 0.7:
        fps, fns = np.sort(fps)[::-1], np.sort(fns)[::-1]
    if random.uniform() < 0.4:
        fps = fps * 0
    pairs = zip(units.tolist(), fps.tolist(), fns.tolist(), strict=True)
    return tuple(Option(number, precision(fp, fn)) for number, fp, fn in pairs)


def plan(random, size, name, most=4, below=None, monotone=False):
    """A random plan of so many operators, over streams and perhaps an operator that there is."""
    if size == 0:
        return below if below is not None else Stream(f"s{name}")
    if size == 1 or random.uniform() < 0.4:
        composition = ONE_INPUT[random.integers(len(ONE_INPUT))]
        inputs = (plan(random, size - 1, name + "a", most, below, monotone),)
    else:
        composition = TWO_INPUTS[random.integers(len(TWO_INPUTS))]
        left = int(random.integers(0, size))
        inputs = (
            plan(random, left, name + "a", most, below, monotone),
            plan(random, size - 1 - left, name + "b", most, None, monotone),
        )
    return Operator(name, composition, inputs, options(random, most, monotone))


def composed(node, chosen):
    """The precision of a plan, one operator after another."""
    if isinstance(node, Stream):
        return EXACT
    inputs = [composed(each, chosen) for each in node.inputs]
    return node.composition.compose(inputs, chosen[node.name].own)


def operators(node, found=None):
    found = {} if found is None else found
    if isinstance(node, Operator):
        found[node.name] = node
        for each in node.inputs:
            operators(each, found)
    return found


def score(queries, chosen):
    return sum(q.weight * float(composed(q.root, chosen).score) for q in queries)


def exhaustive(queries, budget):
    """The best score of all combinations that can be paid, each operator paid once."""
    there = {name: o for q in queries for name, o in operators(q.root).items()}
    best = None
    for combination in product(*(operator.options for operator in there.values())):
        if sum(option.units for option in combination) <= budget:
            found = score(queries, dict(zip(there, combination, strict=True)))
            best = found if best is None else max(best, found)
    return best


def chosen_by(allocation, queries):
    """The option of each operator with the units it got: each has its own number."""
    there = {name: o for q in queries for name, o in operators(q.root).items()}
    units = allocation.units
    return {n: next(x for x in o.options if x.units == units[n]) for n, o in there.items()}


def check(queries, budget):
    best = exhaustive(queries, budget)
    if best is None:
        with pytest.raises(ValueError, match="at least"):
            Allocator(budget).allocate(queries)
        return
    found = Allocator(budget).allocate(queries)
    assert found.score == pytest.approx(best, rel=1e-9)
    assert sum(found.units.values()) <= budget
    assert score(queries, chosen_by(found, queries)) == pytest.approx(best, rel=1e-9)


def test_one_plan_equals_exhaustive_search():
    random = np.random.default_rng(1)
    for number in range(60):
        root = plan(random, 1 + number % 5, "o")
        check([Query("q", root)], int(random.integers(0, 11)))


def test_plans_that_share_an_operator_equal_exhaustive_search():
    random = np.random.default_rng(2)
    for _ in range(40):
        shared = plan(random, int(random.integers(1, 3)), "shared", most=3)
        first = plan(random, int(random.integers(0, 3)), "first", 3, shared)
        second = plan(random, int(random.integers(1, 3)), "second", 3, shared)
        queries = [Query("one", first, 2.0), Query("other", second, float(random.uniform(0.1, 3)))]
        check(queries, int(random.integers(2, 10)))


def test_several_plans_apart_equal_exhaustive_search():
    random = np.random.default_rng(3)
    for _ in range(15):
        queries = [Query(n, plan(random, 2, n, 3), float(random.uniform(0, 2))) for n in "ab"]
        check([*queries, Query("exact", Operator("c", Projection(), (Stream("s"),)))], 7)


FEW, MANY = Precision(0.2, 0.6), Precision(0.9, 2.7)
FEW_RIGHT, MANY_RIGHT = Precision(0.2, 0.0), Precision(0.9, 0.0)
MOSTLY_WRONG = (Option(0, Precision(1.0, 3.0)),)
WRONG_STREAM = Operator("wrong", Projection(), (Stream("w"),), MOSTLY_WRONG)


def beside_a_clean_one(node):
    return Operator("union", Union((0.3, 0.7)), (node, Stream("clean")))


@pytest.mark.parametrize(
    ("worse", "better", "above"),
    [
        (FEW, MANY, beside_a_clean_one),
        (
            Precision(0.5, 0.5), Precision(1.0, 1.0),
            lambda node: Operator("d", Distinct(Partners((0, 0, 0, 0, 1.0))), (node,)),
        ),
        (
            Precision(0.2, 1.0), Precision(0.2, 0.0),
            lambda node: Operator("s", Semijoin(0.95), (Stream("l"), node)),
        ),
        (
            Precision(0.2, 1.0), Precision(0.2, 0.0),
            lambda node: Operator("i", Intersection(0.95), (Stream("l"), node)),
        ),
        (
            FEW_RIGHT, MANY_RIGHT,
            lambda n: beside_a_clean_one(Operator("f", Selection(0.2), (n,), MOSTLY_WRONG)),
        ),
        (
            FEW_RIGHT, MANY_RIGHT,
            lambda n: beside_a_clean_one(Operator("p", Projection(), (n,), MOSTLY_WRONG)),
        ),
        (
            FEW_RIGHT, MANY_RIGHT,
            lambda n: beside_a_clean_one(Operator("d", Distinct(), (n,), MOSTLY_WRONG)),
        ),
        (
            FEW_RIGHT, MANY_RIGHT,
            lambda n: beside_a_clean_one(
                Operator("u", Union((1.0, 0.0)), (n, Stream("o")), MOSTLY_WRONG)
            ),
        ),
        (
            FEW_RIGHT, MANY_RIGHT,
            lambda n: beside_a_clean_one(Operator("j", Join(), (n, WRONG_STREAM))),
        ),
        (
            FEW_RIGHT, MANY_RIGHT,
            lambda n: beside_a_clean_one(
                Operator("d", Difference(0.2), (n, Stream("r")), MOSTLY_WRONG)
            ),
        ),
    ],
)  # fmt: skip
def test_what_is_better_below_is_not_always_better_above(worse, better, above):
    """The choice that is dearer and by itself worse makes the better answer, and is taken."""
    node = Operator("x", Projection(), (Stream("s"),), (Option(0, better), Option(1, worse)))
    query = Query("q", above(node))
    found = Allocator(1).allocate([query])
    assert found.units["x"] == 1
    assert found.score == pytest.approx(exhaustive([query], 1), rel=1e-9)


def split_by(queries, budget, sizes):
    """Each operator gets its part of the budget, and does the best that costs no more."""
    there = {name: o for q in queries for name, o in operators(q.root).items()}
    whole, chosen = sum(sizes(o) for o in there.values()), {}
    for name, operator in there.items():
        part = budget * sizes(operator) / whole
        payable = [o for o in operator.options if o.units <= part] or [operator.options[0]]
        chosen[name] = max(payable, key=lambda option: float(option.own.score))
    return score(queries, chosen)


@pytest.mark.parametrize("seed", range(10))
def test_larger_plans_are_more_precise_than_by_simple_splits(seed):
    random = np.random.default_rng(seed)
    shared = plan(random, 2, "shared", 8, monotone=True)
    queries = [
        Query(name, grown(random, name, shared if name in "ab" else None), weight)
        for name, weight in (("a", 1.0), ("b", 3.0), ("c", 0.5))
    ]
    count = len({name for q in queries for name in operators(q.root)})
    budget = 4 * count
    best = Allocator(budget).allocate(queries).score
    assert count >= 8
    assert best > 1.01 * split_by(queries, budget, lambda operator: 1)
    assert best > 1.01 * split_by(queries, budget, lambda operator: operator.options[-1].units)


def grown(random, name, below):
    """Operators of which each has a curve from no memory on."""
    node = below if below is not None else Stream(name)
    for number, composition in enumerate((Selection(0.5), Join(), Distinct(PARTNERS))):
        scale, halved = random.uniform(0.1, 3), random.uniform(1, 4)
        curve = tuple(
            Option(units, precision(0.3 / (1 + units), scale * 2.0 ** (-units / halved)))
            for units in range(9)
        )
        inputs = (node, Stream(f"{name}{number}")) if isinstance(composition, Join) else (node,)
        node = Operator(f"{name}{number}", composition, inputs, curve)
    return node


def test_allocating_again_costs_what_has_changed():
    random = np.random.default_rng(7)
    queries = [Query(name, grown(random, name, None)) for name in "abc"]
    allocator = Allocator(20)
    first = allocator.allocate(queries)
    computed = allocator.computed_fronts
    assert allocator.allocate(queries) == first
    assert allocator.computed_fronts == computed
    changed = [*queries[:2], Query("c", grown(random, "c", None))]
    again = allocator.allocate(changed)
    assert allocator.computed_fronts == computed + 3
    assert again == Allocator(20).allocate(changed)
    assert allocator.allocate(queries) == first


def test_inactive_queries_get_nothing():
    random = np.random.default_rng(8)
    active, idle = Query("a", grown(random, "a", None)), Query("b", grown(random, "b", None), 0)
    assert Allocator(9).allocate([active, idle]) == Allocator(9).allocate([active])
    assert Allocator(9).allocate([idle]).units == {}


def test_what_is_not_independent_is_refused():
    shared = Operator("shared", Projection(), (Stream("s"),), (Option(0, precision(0.1, 0.1)),))
    with pytest.raises(ValueError, match=r"both read \['shared'\]"):
        Query("q", Operator("j", Join(), (shared, shared)))
    Query("q", Operator("u", Union((0.5, 0.5)), (shared, shared)))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="selectivity"):
        Selection(0)
    with pytest.raises(ValueError, match="add up to one"):
        Union((0.5, 0.6))
    with pytest.raises(ValueError, match="more wrong tuples than there are"):
        Selection(0.9).compose([EXACT], Precision(1, 0.5))
    with pytest.raises(ValueError, match="false positives"):
        precision(1.0, 0)
    with pytest.raises(ValueError, match="no options"):
        Operator("o", Projection(), (Stream("s"),), ())


@pytest.mark.parametrize("heavier", ["a", "b"])
def test_the_heavier_query_is_the_more_precise(heavier):
    """Of two queries alike the one of the higher weight gets what there is."""
    curve = tuple(Option(units, precision(0.0, 2.0 - units)) for units in range(3))
    queries = [
        Query(name, Operator(name, Projection(), (Stream(f"s{name}"),), curve), weight)
        for name, weight in (("a", 1.0 + (heavier == "a")), ("b", 1.0 + (heavier == "b")))
    ]
    units = Allocator(2).allocate(queries).units
    assert units[heavier] > units["b" if heavier == "a" else "a"]
