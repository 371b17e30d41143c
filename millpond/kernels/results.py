"""Result pages as people read them: equal rows in one, in order of time, under their names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import integers
from millpond.kernels.counts import net_of
from millpond.kernels.groups import encode
from millpond.kernels.timeline import Changes
from millpond.schema import BEGINNING


def summed(page: pa.Table) -> pa.Table:
    """Equal rows of one instant in one, in order of time."""
    columns = page.column_names[2:]
    codes = encode([page[name] for name in columns], page.num_rows)
    rows = np.arange(page.num_rows)
    changes = Changes.ordered(rows, codes, integers(page["_ts"]), integers(page["_w"]))
    return net_of(changes, page, columns)


def named(page: pa.Table, names: list[str]) -> pa.Table:
    """The rows summed up: time (NULL at the beginning), weight and data under these names."""
    page = ordered(summed(page))
    times = integers(page["_ts"])
    ts = pa.array(times, mask=times == BEGINNING)
    return pa.Table.from_arrays([ts, page["_w"], *page.columns[2:]], names=names)


def ordered(page: pa.Table) -> pa.Table:
    """The rows of one instant and weight in the order of their values.

    Results are the same to the byte then, however their rows were computed.
    """
    times, weights = integers(page["_ts"]), integers(page["_w"])
    follows = np.append(False, (times[1:] == times[:-1]) & (weights[1:] == weights[:-1]))
    follows = follows[: page.num_rows]
    tied = np.flatnonzero(follows | np.append(follows[1:], False)[: page.num_rows])
    if len(tied) == 0:
        return page
    keys = [(name, "ascending") for name in page.column_names]
    among = np.asarray(pc.sort_indices(page.take(pa.array(tied)), sort_keys=keys))
    order = np.arange(page.num_rows)
    order[tied] = tied[among]
    return page.take(pa.array(order))
