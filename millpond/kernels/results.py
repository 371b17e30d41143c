"""Result pages as people read them: equal rows in one, in order of time, under their names."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import integers, marked, with_first, with_last
from millpond.kernels.counts import net_of
from millpond.kernels.groups import Bools, Ints, encode, first_rows
from millpond.kernels.hash_index import hashes_of
from millpond.kernels.timeline import Changes, order_of
from millpond.schema import BEGINNING


def summed(page: pa.Table) -> pa.Table:
    """Equal rows of one instant in one, in order of time.

    Few rows have an equal, so those that may have one are found by a hash and only they compared.
    """
    columns = page.column_names[2:]
    doubtful = _repeated(hashes_of([page["_ts"], *(page[name] for name in columns)]))
    weights = integers(page["_w"])
    single = page.filter(pa.array(~doubtful & (weights != 0)))
    parts = [single]
    if doubtful.any():
        some = page.filter(pa.array(doubtful))
        codes = encode([some[name] for name in columns], some.num_rows)
        times, weights = integers(some["_ts"]), integers(some["_w"])
        changes = Changes.ordered(np.arange(some.num_rows), codes, times, weights)
        parts.append(net_of(changes, some, columns).cast(page.schema))
    whole = pa.concat_tables(parts)
    return whole.take(pa.array(order_of(integers(whole["_ts"]), integers(whole["_w"]))))


def netted(page: pa.Table, keeps_zeros: bool = False) -> pa.Table:
    """Equal rows of all times in one, with the time of its last change: what changes come to.

    ``keeps_zeros``: also rows that come to nothing, as something came before these changes.

    >>> page = pa.table({"_ts": [1, 2, 3, 4], "_w": [1, 1, -1, 1], "c0": [7, 8, 7, 8]})
    >>> netted(page).to_pylist()
    [{'_ts': 4, '_w': 2, 'c0': 8}]
    """
    codes = encode([page[name] for name in page.column_names[2:]], page.num_rows)
    groups = int(codes.max(initial=-1)) + 1
    weights, times = np.zeros(groups, np.int64), np.full(groups, np.iinfo(np.int64).min)
    np.add.at(weights, codes, integers(page["_w"]))
    np.maximum.at(times, codes, integers(page["_ts"]))
    chosen = np.arange(groups) if keeps_zeros else marked(weights)
    rows = page.take(pa.array(first_rows(codes)[chosen]))
    arrays = [pa.array(times[chosen]), pa.array(weights[chosen]), *rows.columns[2:]]
    return pa.Table.from_arrays(arrays, schema=page.schema)


def _repeated(hashes: Ints) -> Bools:
    """Whether a number is there more than once, for each."""
    ordered_hashes = np.sort(hashes)
    several = ordered_hashes[1:][ordered_hashes[1:] == ordered_hashes[:-1]]
    return np.isin(hashes, several) if len(several) else np.zeros(len(hashes), dtype=np.bool_)


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
    follows = with_first(False, (times[1:] == times[:-1]) & (weights[1:] == weights[:-1]))
    follows = follows[: page.num_rows]
    tied = marked(follows | with_last(follows[1:], False)[: page.num_rows])
    if len(tied) == 0:
        return page
    keys = [(name, "ascending") for name in page.column_names]
    among = np.asarray(pc.sort_indices(page.take(pa.array(tied)), sort_keys=keys))
    order = np.arange(page.num_rows)
    order[tied] = tied[among]
    return page.take(pa.array(order))
