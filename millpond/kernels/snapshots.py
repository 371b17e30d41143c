"""Rstream: a relation's whole content at given instants."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import integers
from millpond.kernels.counts import net_of
from millpond.kernels.groups import Ints, encode
from millpond.kernels.timeline import Changes, order_of


def contents(elements: pa.Table, columns: list[str], instants: Ints) -> pa.Table:
    """The rows whose elements cover each instant, with their summed weight."""
    start = np.searchsorted(instants, integers(elements["_ts"]))
    end = np.searchsorted(instants, integers(elements["_te"]))
    counts = np.maximum(end - start, 0)
    rows = np.repeat(np.arange(elements.num_rows), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    time = instants[start[rows] + within]
    codes = encode([elements[name] for name in columns], elements.num_rows)
    weight = integers(elements["_w"])[rows]
    return net_of(Changes.ordered(rows, codes[rows], time, weight), elements, columns)


def still_open(elements: pa.Table, columns: list[str], until: int) -> pa.Table:
    """The elements that last beyond the step; those that cancel are dropped."""
    lasting = elements.filter(pa.array(integers(elements["_te"]) > until))
    codes = encode([lasting[name] for name in (*columns, "_te")], lasting.num_rows)
    order = order_of(codes, np.zeros(len(codes), dtype=np.int64))
    if len(order) == 0:
        return lasting
    ordered = codes[order]
    starts = np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
    weight = np.add.reduceat(integers(lasting["_w"])[order], starts)
    some = weight != 0
    kept = lasting.take(pa.array(order[starts[some]]))
    at = kept.schema.get_field_index("_w")
    return kept.set_column(at, "_w", pa.array(weight[some]))


def slide_instants(start: Ints, end: Ints, slide: int, after: int, until: int) -> Ints:
    """The multiples of the slide within the step at which one of the intervals is open."""
    first = -(-np.maximum(start, after + 1) // slide)
    last = np.minimum(end - 1, until) // slide
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    told = np.maximum.accumulate(np.append(first[:1] - 1, last))[: len(last)]
    first = np.maximum(first, told + 1)
    counts = np.maximum(last - first + 1, 0)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Ints = (np.repeat(first, counts) + within) * slide
    return found
