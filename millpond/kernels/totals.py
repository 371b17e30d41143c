"""Rows of one tick in few rows that counts and sums cannot tell from them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import integers, integers_of
from millpond.kernels.groups import Ints, encode, first_rows, stable_order

MOST_SHARE = 0.5
"""What is left of the rows may be so much of them; otherwise they stay what they are."""

_LARGEST = 2**62
"""Sums are not computed where they could leave this range."""


def totals(rows: pa.Table, sums: Sequence[str]) -> pa.Table:
    """Rows of a stream, in order of time; those of one tick that differ in ``sums`` only in two.

    Of n rows that sum up to s all but one have the n-th part of s, rounded down, and one has what
    is left. So there are as many as before, with the same sum, and their values are hardly larger.
    Rows in which a value is NULL are apart from those in which it is not. Where few would be saved,
    or numbers are too large, rows stay what they are.
    """
    rows = rows.take(pa.array(stable_order(integers(rows["_ts"]))))
    count, weights = rows.num_rows, integers(rows["_w"])
    codes = encode([*_keys(rows, sums)], count)
    firsts = first_rows(codes)
    if len(firsts) > MOST_SHARE * count or not _is_small(rows, sums, weights):
        return rows
    order = stable_order(codes)
    starts = np.searchsorted(codes[order], np.arange(len(firsts)))
    numbers = np.add.reduceat(weights[order], starts)
    shares = {}
    rest = np.zeros(len(firsts), dtype=np.bool_)
    for name in sums:
        whole = np.add.reduceat((integers_of(rows[name])[:count] * weights)[order], starts)
        share, left = np.divmod(whole, numbers)
        shares[name] = share, share + left
        rest |= left != 0
    usual = _with(rows.take(pa.array(firsts)), {n: each[0] for n, each in shares.items()})
    usual = usual.set_column(1, "_w", pa.array(numbers - rest))
    some = rows.take(pa.array(firsts[rest]))
    other = _with(some, {n: each[1][rest] for n, each in shares.items()})
    other = other.set_column(1, "_w", pa.array(np.ones(other.num_rows, dtype=np.int64)))
    made = pa.concat_tables([usual, other])
    if made.num_rows > MOST_SHARE * count:
        return rows
    return made.take(pa.array(stable_order(integers(made["_ts"]))))


def _keys(rows: pa.Table, sums: Sequence[str]) -> list[pa.ChunkedArray]:
    """What rows have in common that become one: all but the sums, and which of these are NULL."""
    same = [rows[name] for name in rows.column_names if name != "_w" and name not in sums]
    return same + [pc.is_null(rows[name]) for name in sums if rows[name].null_count]


def _is_small(rows: pa.Table, sums: Sequence[str], weights: Ints) -> bool:
    """Whether rows come in, rather than go, and neither a sum nor what is left can overflow."""
    if int(weights.min(initial=1)) < 1:
        return False
    most = int(weights.sum())
    for name in sums:
        values = integers_of(rows[name])
        largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        limit = min(_LARGEST, int(np.iinfo(rows.schema.field(name).type.to_pandas_dtype()).max))
        if most >= _LARGEST or largest * most > _LARGEST or largest + most > limit:
            return False
    return True


def _with(rows: pa.Table, values: dict[str, Ints]) -> pa.Table:
    """Rows with other numbers in some columns, NULL where they were."""
    for name, numbers in values.items():
        position, field = rows.schema.get_field_index(name), rows.schema.field(name)
        mask = np.asarray(pc.is_null(rows[name]))
        column = pa.array(numbers, mask=mask).cast(field.type)
        rows = rows.set_column(position, field, pa.chunked_array([column]))
    return rows
