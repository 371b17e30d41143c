"""What each aggregate function keeps for a group, and its value at every instant."""

import numpy as np
import pyarrow as pa

from millpond.cql.expressions import JOINING
from millpond.kernels import exact_sum
from millpond.kernels.bags import Bag
from millpond.kernels.columns import (
    Values,
    doubles_of,
    flat,
    integers_of,
    marked,
    mask_of,
    of_numbers,
    sortable,
)
from millpond.kernels.decimals import (
    LIMBS,
    Wholes,
    column_of,
    joined,
    limbs,
    mean_of,
    normalised,
    within,
)
from millpond.kernels.extremes import (
    NOTHING,
    greatest_of_counts,
    greatest_of_intervals,
    still_eligible,
)
from millpond.kernels.grouped import AggregateSpec, Group
from millpond.kernels.groups import Bools, Floats, Ints, distinct, encode
from millpond.kernels.kept_rows import joined_rows, row_values
from millpond.kernels.ranked import (
    ORDERED,
    Ranked,
    different_values,
    is_of_different,
    is_ranked,
    ranked_values,
)
from millpond.kernels.timeline import Changes, Timeline, order_of
from millpond.kernels.user_aggregates import user_values

_LOW = np.int64(2**32 - 1)


def state_fields(index: int, spec: AggregateSpec, is_append_only: bool) -> list[pa.Field]:
    """The state columns of one aggregate."""
    name = f"s{index}_"
    number, numbers = pa.int64(), pa.list_(pa.int64())
    values = pa.list_(spec.argument_type or number)
    bag = [pa.field(name + "v", values), pa.field(name + "n", numbers)]
    is_in_order = is_ranked(spec, is_append_only)
    if spec.definition is not None and not is_in_order:
        return [pa.field(name + "count", number), pa.field(name + "state", pa.binary())]
    if spec.keeps_rows:
        return [pa.field(name + "count", number)]
    if spec.function in ORDERED:
        return [pa.field(name + "count", number)] if is_in_order else bag
    distinct = bag if is_of_different(spec) and not is_in_order else []
    return distinct + [pa.field(name + part, number) for part in _parts(spec)]


def _parts(spec: AggregateSpec) -> list[str]:
    if spec.function in ("count", "approx_count_distinct"):
        return ["count"]
    if pa.types.is_decimal(spec.argument_type):
        return ["count", *(f"sum{i}" for i in range(LIMBS))]
    sums = [f"sum{i}" for i in range(exact_sum.LIMBS)]
    if spec.function in ("stddev", "variance"):
        return ["count", *sums, *(f"square{i}" for i in range(exact_sum.LIMBS))]
    if pa.types.is_floating(spec.argument_type):
        return ["count", *sums]
    return ["count", "low", "high"] if spec.function == "avg" else ["count", "sum"]


def accumulate(
    index: int,
    spec: AggregateSpec,
    group: Group,
    is_append_only: bool,
    ranked: Ranked | None = None,
) -> Values:
    """The aggregate's value at every instant; leaves its new state in the group."""
    name = f"s{index}_"
    column = None if spec.argument is None else group.events[f"a{spec.argument}"]
    order = ranked if is_ranked(spec, is_append_only) else None
    if spec.definition is not None:
        return user_values(name, spec, spec.definition, group, order, slot_of(index))
    if order is not None and spec.keeps_rows:
        return _of_rows(name, spec, group, order, slot_of(index))
    if spec.function in ORDERED:
        if order is None or column is None:
            return _extreme(name, spec, group, is_append_only)
        return ranked_values(name, spec, group, order, column)
    if column is None or not is_of_different(spec):
        return _sums(name, spec, group, column, group.timeline.changes, None)
    if order is None:
        changes = _distinct(name, spec.argument_type, column, group)
    else:
        changes = different_values(spec, group, order, column)
    return _sums(name, spec, group, column, changes, changes)


def slot_of(index: int) -> int:
    """The number under which an aggregate keeps its rows."""
    return -1 - index


def _of_rows(name: str, spec: AggregateSpec, group: Group, ranked: Ranked, slot: int) -> Values:
    if spec.function in JOINING:
        return joined_rows(name, spec, group, ranked, slot)
    return row_values(name, spec, group, ranked, slot)


def _sums(
    name: str,
    spec: AggregateSpec,
    group: Group,
    column: pa.ChunkedArray | None,
    changes: Changes,
    of: Changes | None,
) -> Values:
    """Counts, sums and what follows from them."""
    if column is None:
        count = group.total(name + "count", changes.weight, of)
        return of_numbers(count, np.ones(len(count), dtype=np.bool_), spec.type)
    valid = mask_of(column)[changes.row]
    weight = np.where(valid, changes.weight, 0)
    count = group.total(name + "count", weight, of)
    if spec.function in ("count", "approx_count_distinct"):
        return of_numbers(count, np.ones(len(count), dtype=np.bool_), spec.type)
    some = count > 0
    if spec.function in ("stddev", "variance"):
        return _deviation(name, spec, group, column, changes, of, count, valid)
    if pa.types.is_decimal(column.type):
        amounts = column.take(pa.array(changes.row, mask=~valid))
        return _decimal_sums(name, spec, group, amounts, weight, of, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        if pa.types.is_floating(column.type):
            split = exact_sum.split(doubles_of(column)[changes.row], weight, valid)
            totals = _limb_totals(name + "sum", split, group, of)
            total: Ints | Floats
            total = exact_sum.as_double(totals)
        elif spec.function == "avg":
            total = _wide_total(name, group, integers_of(column)[changes.row], weight, of)
        else:
            total = _integer_total(name, group, integers_of(column)[changes.row], weight, of)
        if spec.function == "avg":
            total = np.where(some, total / np.maximum(count, 1), 0.0)
    return of_numbers(total, some, spec.type)


def _decimal_sums(
    name: str,
    spec: AggregateSpec,
    group: Group,
    amounts: pa.ChunkedArray,
    weight: Ints,
    of: Changes | None,
    count: Ints,
) -> Values:
    """Sums and means of DECIMALs, exact before they are rounded once."""
    parts = limbs(flat(amounts), weight)
    totals = normalised([group.total(f"{name}sum{i}", part, of) for i, part in enumerate(parts)])
    for i, total in enumerate(totals):
        group.kept[f"{name}sum{i}"] = pa.array(total[group.timeline.is_last])
    units: Wholes = joined(totals)
    if spec.function == "avg":
        units = mean_of(units, count, amounts.type, spec.type)
    outside = ~within(units, spec.type)
    if np.any(outside):
        group.overflown.append(np.unique(group.timeline.code[outside]))
        units = np.where(outside, 0, units)
    valid = count > 0
    numbers = np.unique(units, return_inverse=True)[1].astype(np.int64)
    return Values(numbers, valid, lambda at: column_of(units[at], spec.type, valid[at]))


def _limb_totals(name: str, limbs: list[Ints], group: Group, of: Changes | None) -> list[Ints]:
    """Running sums of limbs; what is kept is carried, so that no limb ever overflows."""
    totals = [group.total(f"{name}{i}", limb, of) for i, limb in enumerate(limbs)]
    totals = exact_sum.normalise(totals)
    for i, total in enumerate(totals):
        group.kept[f"{name}{i}"] = pa.array(total[group.timeline.is_last])
    return totals


def _integer_total(name: str, group: Group, values: Ints, weight: Ints, of: Changes | None) -> Ints:
    """The running sum: numpy wraps around, which is harmless as long as the sum is in range."""
    initial = group.initial(name + "sum")
    bound = float(np.abs(initial.astype(np.float64)).max(initial=0.0))
    bound += float(np.sum(np.abs(values.astype(np.float64) * weight)))
    if bound >= 2.0**62:
        low = group.running((values & _LOW) * weight, initial & _LOW, of)
        high = group.running((values >> 32) * weight, initial >> 32, of) + (low >> 32)
        outside = (high < -(2**31)) | (high >= 2**31)
        if np.any(outside):
            group.overflown.append(distinct(group.timeline.code[outside]))
    return group.total(name + "sum", values * weight, of)


def _wide_total(name: str, group: Group, values: Ints, weight: Ints, of: Changes | None) -> Floats:
    """The running sum as doubles, from two halves of which none leaves its range."""
    low = group.total(name + "low", (values & _LOW) * weight, of)
    high = group.total(name + "high", (values >> 32) * weight, of) + (low >> 32)
    low &= _LOW
    for part, running in (("low", low), ("high", high)):
        group.kept[name + part] = pa.array(running[group.timeline.is_last])
    total: Floats = high * 2.0**32 + low
    return total


def _deviation(
    name: str,
    spec: AggregateSpec,
    group: Group,
    column: pa.ChunkedArray,
    changes: Changes,
    of: Changes | None,
    count: Ints,
    valid: Bools,
) -> Values:
    values = doubles_of(column)[changes.row]
    weight = np.where(valid, changes.weight, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = _limb_totals(name + "sum", exact_sum.split(values, weight, valid), group, of)
        high, low = exact_sum.two_product(values, values)
        low = np.where(np.isfinite(low), low, 0.0)
        parts = zip(
            exact_sum.split(high, weight, valid), exact_sum.split(low, weight, valid), strict=True
        )
        squares = _limb_totals(name + "square", [a + b for a, b in parts], group, of)
        result = exact_sum.variance(count, sums, squares)
        if spec.function == "stddev":
            result = np.sqrt(result)
    enough = count > 1
    return of_numbers(np.where(enough, result, 0.0), enough, spec.type)


def _distinct(name: str, type_: pa.DataType, column: pa.ChunkedArray, group: Group) -> Changes:
    """The changes of the set of different values: +1 when one appears, -1 when the last goes."""
    changes, bag = group.timeline.changes, group.bag(name, type_)
    real = marked(mask_of(column)[changes.row])
    row, code = changes.row[real], changes.code[real]
    offset = len(bag.code)
    values = pa.chunked_array([*bag.values.chunks, *column.chunks], type_)
    value_codes = encode([values], len(values))
    pairs = encode(
        [
            pa.chunked_array([pa.array(np.concatenate([bag.code, code]))]),
            pa.chunked_array(
                [pa.array(np.concatenate([value_codes[:offset], value_codes[offset + row]]))]
            ),
        ],
        offset + len(real),
    )
    n_pairs = int(pairs.max(initial=-1)) + 1
    initial = np.zeros(n_pairs, dtype=np.int64)
    initial[pairs[:offset]] = bag.number
    line = Timeline.of(
        Changes.ordered(offset + row, pairs[offset:], changes.time[real], changes.weight[real])
    )
    running = line.running(line.changes.weight, initial)
    step = (running > 0).astype(np.int64) - (line.previous(running, initial) > 0)
    _keep_distinct(name, group, bag, values, pairs, line, running, code)
    at = marked(step)
    members = line.changes.row[line.last[at]] - offset
    pair_group = np.zeros(n_pairs, dtype=np.int64)
    pair_group[pairs] = np.concatenate([bag.code, code])
    return Changes(members, pair_group[line.code[at]], line.time[at], step[at])


def _keep_distinct(
    name: str,
    group: Group,
    bag: Bag,
    values: pa.ChunkedArray,
    pairs: Ints,
    line: Timeline,
    running: Ints,
    code: Ints,
) -> None:
    counts = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=np.int64)
    counts[pairs[: len(bag.code)]] = bag.number
    counts[line.code[line.is_last]] = running[line.is_last]
    example = np.zeros(len(counts), dtype=np.int64)
    example[line.code] = line.changes.row[line.last]
    example[pairs[: len(bag.code)]] = np.arange(len(bag.code))
    owner = np.zeros(len(counts), dtype=np.int64)
    owner[pairs] = np.concatenate([bag.code, code])
    alive = marked(counts > 0)
    kept = Bag(owner[alive], values.take(pa.array(example[alive])), counts[alive])
    group.keep_bag(name, kept)


def _extreme(name: str, spec: AggregateSpec, group: Group, is_append_only: bool) -> Values:
    column = group.events[f"a{spec.argument}"]
    if is_append_only:
        return _extreme_of_intervals(name, spec, group, column)
    return _extreme_of_counts(name, spec, group, column)


def _extreme_of_intervals(
    name: str, spec: AggregateSpec, group: Group, column: pa.ChunkedArray
) -> Values:
    """Where nothing is taken back: the bag holds what can still become the extreme, with its end.

    An end announced by a minus event needs no event here: the bag knows it.
    """
    elements, bag = group.elements, group.bag(name, spec.argument_type)
    usable = marked(mask_of(column)[:-1] & (elements.weight > 0))
    entered = bag.plus(elements.code[usable], column.take(pa.array(usable)), elements.end[usable])
    data, back = sortable(entered.values)
    sign = 1 if spec.function == "max" else -1
    before = np.full(len(bag.code), np.iinfo(np.int64).min // 2, dtype=np.int64)
    starts = np.concatenate([before, elements.start[usable]])
    starts = np.maximum(starts, int(group.timeline.time.min(initial=0)))
    found = greatest_of_intervals(group.timeline, entered.code, starts, entered.number, data * sign)
    keep = still_eligible(entered.code, entered.number, data * sign, group.until)
    group.keep_bag(name, entered.take(marked(keep)))
    return _decoded(found, sign, back)


def _extreme_of_counts(
    name: str, spec: AggregateSpec, group: Group, column: pa.ChunkedArray
) -> Values:
    bag, data, back, members = _counted_values(name, spec, group, column)
    sign = 1 if spec.function == "max" else -1
    changes = group.timeline.changes
    value = (
        np.where(members >= 0, data[members] * sign, NOTHING)
        if len(data)
        else np.full(len(changes.row), NOTHING, dtype=np.int64)
    )
    found = greatest_of_counts(
        group.timeline, changes, value, bag.code, data[: len(bag.code)] * sign, bag.number
    )
    return _decoded(found, sign, back)


def _decoded(found: Ints, sign: int, back: object) -> Values:
    valid = found != NOTHING
    plain = np.where(valid, found, 0) * sign

    def to_arrow(at: Ints) -> pa.Array:
        some = valid[at]
        values = back(plain[at][some])  # type: ignore[operator]
        places = np.cumsum(some) - 1
        return values.take(pa.array(places, mask=~some))

    return Values(plain, valid, to_arrow)


def _counted_values(
    name: str, spec: AggregateSpec, group: Group, column: pa.ChunkedArray
) -> tuple[Bag, Ints, object, Ints]:
    """The kept bag by count (ordered by group), numbers for its values and for each change.

    Leaves the bag as it is after the step. ``members`` is -1 for a change without value.
    """
    bag = group.bag(name, spec.argument_type)
    bag = bag.take(order_of(bag.code, np.zeros(len(bag.code), dtype=np.int64)))
    usable = marked(mask_of(column)[:-1])
    place = np.full(len(column) + 1, -1, dtype=np.int64)
    place[usable] = len(bag.code) + np.arange(len(usable))
    entered = bag.plus(group.elements.code[usable], column.take(pa.array(usable)), usable * 0)
    data, back = sortable(entered.values)
    changes = group.timeline.changes
    members = place[changes.row]
    _keep_counts(name, group, bag, entered, data, members)
    return bag, data, back, members


def _keep_counts(
    name: str, group: Group, bag: Bag, entered: Bag, data: Ints, members: Ints
) -> None:
    pairs = encode(
        [pa.chunked_array([pa.array(entered.code)]), pa.chunked_array([pa.array(data)])], len(data)
    )
    counts = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(counts, pairs[: len(bag.code)], bag.number)
    real = members >= 0
    np.add.at(counts, pairs[members[real]], group.timeline.changes.weight[real])
    example = np.zeros(len(counts), dtype=np.int64)
    example[pairs[::-1]] = np.arange(len(pairs) - 1, -1, -1)
    alive = marked(counts != 0)
    kept = entered.take(example[alive])
    group.keep_bag(name, Bag(kept.code, kept.values, counts[alive]))
