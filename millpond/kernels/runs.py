"""One side of a join, indexed: sorted runs, probed by the keys of the other side's new elements.

A run is a table sorted by a 64-bit hash of the keys. New elements make a new run; runs of similar
size are merged, which drops what has ended and sums up what is equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import integers, with_first, with_last
from millpond.kernels.groups import Ints
from millpond.kernels.hash_index import hashes_of
from millpond.kernels.run_list import RunList, VersionedRun
from millpond.kernels.snapshots import still_open
from millpond.schema import BEGINNING, FOREVER

HASH = "_h"
ELEMENT = ("_ts", "_te", "_w")


def run_schema(key_types: Sequence[pa.DataType], types: Sequence[pa.DataType]) -> pa.Schema:
    """Hash, times, weight, keys ``k0…`` and row ``c0…``."""
    numbers = [pa.field(name, pa.int64()) for name in (HASH, *ELEMENT)]
    keys = [pa.field(f"k{i}", t) for i, t in enumerate(key_types)]
    return pa.schema(numbers + keys + [pa.field(f"c{i}", t) for i, t in enumerate(types)])


def as_run(elements: pa.Table, key_count: int) -> pa.Table:
    """The elements that can meet others, sorted by the hash of their keys.

    A NULL is equal to nothing, so an element with one in its keys is left out.
    """
    keys = [elements[f"k{i}"] for i in range(key_count)]
    if any(column.null_count for column in keys):
        known = np.logical_and.reduce([np.asarray(column.is_valid()) for column in keys])
        elements = elements.filter(pa.array(known))
        keys = [elements[f"k{i}"] for i in range(key_count)]
    if not keys:
        hashes = np.zeros(elements.num_rows, dtype=np.int64)
        return elements.add_column(0, HASH, pa.array(hashes))
    hashes = hashes_of(keys)
    order = np.argsort(hashes, kind="stable")
    return elements.take(pa.array(order)).add_column(0, HASH, pa.array(hashes[order]))


def merged_runs(runs: Sequence[pa.Table], until: int) -> pa.Table:
    """One run that means the same after a time: without what has ended, equal ones summed up."""
    together = pa.concat_tables(runs)
    hashes, lasting = integers(together[HASH]), integers(together["_te"]) > until
    order = np.argsort(hashes, kind="stable")
    order = order[lasting[order]]
    hashes = hashes[order]
    follows = with_first(False, hashes[1:] == hashes[:-1])[: len(hashes)]
    alike = follows | with_last(follows[1:], False)[: len(hashes)]
    if not alike.any():
        return together.take(pa.array(order)).combine_chunks()
    some = together.take(pa.array(order[alike]))
    if not _gains_by_sums(some):
        return together.take(pa.array(order)).combine_chunks()
    names = [name for name in together.column_names if name[0] in "kc"]
    summed = still_open(some, names, until)
    merged = pa.concat_tables([together.take(pa.array(order[~alike])), summed])
    order = np.argsort(integers(merged[HASH]), kind="stable")
    return merged.take(pa.array(order)).combine_chunks()


def _gains_by_sums(elements: pa.Table) -> bool:
    """Whether some may cancel, or stay for ever; those that only come soon end by themselves."""
    is_lasting = integers(elements["_te"]) == FOREVER
    return bool(np.any(is_lasting | (integers(elements["_w"]) < 0)))


@dataclass(frozen=True)
class Run(VersionedRun):
    """A run of elements, with what is looked at first as numbers."""

    hashes: Ints
    start: Ints
    end: Ints
    weight: Ints
    numbers: Mapping[str, np.ndarray[Any, Any]]
    """The keys and columns that are numbers without a NULL: taking some is quick there."""
    last_end: int
    directory: Ints
    """Where the hashes begin that have the same first bits."""

    @staticmethod
    def of(table: pa.Table, first: int = 0, last: int = 0) -> Run:
        """The run of a table that ``as_run`` or ``merged_runs`` made."""
        table = table.combine_chunks()
        hashes, start, end, weight = (integers(table[name]) for name in (HASH, *ELEMENT))
        numbers = {
            field.name: table[field.name].to_numpy()
            for field in table.schema
            if field.name[0] in "kc" and _is_numbers(field.type, table[field.name])
        }
        bits = max(len(hashes).bit_length() - 1, 1)
        sizes = np.bincount(_first_bits(hashes, bits), minlength=2**bits)
        directory = with_first(0, np.cumsum(sizes))
        last_end = int(end.max(initial=BEGINNING))
        versions = first, last, table.nbytes
        return Run(table, *versions, hashes, start, end, weight, numbers, last_end, directory)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether rows of one hash are in order of their starts, and of their ends."""
        goes_on = self.hashes[1:] == self.hashes[:-1]
        rises = (self.start[1:] >= self.start[:-1]) & (self.end[1:] >= self.end[:-1])
        return bool(np.all(rises | ~goes_on))

    def places(self, hashes: Ints) -> tuple[Ints, Ints]:
        """For each hash, where those with the same first bits begin and end."""
        bits = (len(self.directory) - 1).bit_length() - 1
        page = _first_bits(hashes, bits)
        return self.directory[page], self.directory[page + 1]


def _is_numbers(type_: pa.DataType, column: pa.ChunkedArray) -> bool:
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return bool(is_number) and column.null_count == 0


def _first_bits(hashes: Ints, bits: int) -> Ints:
    """From zero for the least hash there can be."""
    return (hashes >> np.int64(64 - bits)) + np.int64(1 << (bits - 1))


class RunIndex(RunList[Run]):
    """The runs of one side of a join."""

    def run_of(self, table: pa.Table, first: int, last: int) -> Run:
        return Run.of(table, first, last)

    def together(self, others: Sequence[RunIndex]) -> RunIndex:
        """The runs of this index and of others, to be probed at once."""
        return RunIndex(self.schema, sum((other.runs for other in others), self.runs))
