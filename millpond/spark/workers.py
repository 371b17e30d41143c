"""Kernels in Spark's Python workers: a shuffle by key, then the same function as in the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millpond.kernels.groups import encode
from millpond.spark.frames import Frame
from millpond.spark.surroundings import Surroundings
from millpond.spark.types import spark_schema, spark_type

STATE = "z_"
"""Prefix of state columns where events and state travel in one frame."""


class Kernel(Protocol):
    """A keyed operator as a function of tables; see ``kernels``."""

    @property
    def keys(self) -> list[str]:
        """The names of its key columns."""
        ...

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of its state."""
        ...

    @property
    def output_schema(self) -> pa.Schema:
        """The columns it puts out."""
        ...

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The output of a step and the new state of the keys it touched."""
        ...


class InWorkers:
    """A kernel that runs in parallel, its keys divided among Spark's workers."""

    def __init__(self, kernel: Kernel, event_schema: pa.Schema, around: Surroundings) -> None:
        self._kernel = kernel
        self._event_schema = event_schema
        self._partitions = around.limits.partitions
        fields = zip(_travelling_names(kernel), kernel.state_schema, strict=True)
        self._slot = around.frames.slot(pa.schema([f.with_name(name) for name, f in fields]))

    def run(
        self, events: Frame, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The output and the new state of a step."""
        kernel = self._kernel
        shuffled = self._with_state(events, state).repartition(self._partitions, *kernel.keys)
        schema = _output_schema(kernel)
        work = _worker(kernel, self._event_schema, (after, until))
        table = shuffled.mapInArrow(work, spark_schema(schema)).toArrow().cast(schema)
        is_state = table["_state"]
        output = table.filter(_inverted(is_state)).select(kernel.output_schema.names)
        return output, _state_rows(table.filter(is_state), kernel)

    def _with_state(self, events: Frame, state: pa.Table) -> DataFrame:
        """Events and state rows in one frame, each with nothing in the other's columns."""
        keys, schema = self._kernel.keys, self._kernel.state_schema
        names = _state_names(self._kernel)
        marked = events.build().select("*", *(_nothing(schema.field(n), STATE + n) for n in names))
        stored = self._slot.table(state.rename_columns(_travelling_names(self._kernel)))
        if stored is None:
            return marked
        absent = [_nothing(f, f.name) for f in self._event_schema if f.name not in keys]
        return marked.unionByName(stored.build().select("*", *absent))

    def close(self) -> None:
        """Gives up the place of the state."""
        self._slot.close()


def _nothing(field: pa.Field, name: str) -> Column:
    """No value: NULL or, because Spark is slow at writing those, an empty list."""
    empty = F.array() if pa.types.is_list(field.type) else F.lit(None)
    return empty.cast(spark_type(field.type)).alias(name)


def _inverted(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pc.invert(chunk) for chunk in mask.chunks], pa.bool_())


def _state_names(kernel: Kernel) -> list[str]:
    return [name for name in kernel.state_schema.names if name not in kernel.keys]


def _travelling_names(kernel: Kernel) -> list[str]:
    return [name if name in kernel.keys else STATE + name for name in kernel.state_schema.names]


def _state_rows(table: pa.Table, kernel: Kernel) -> pa.Table:
    return table.select(_travelling_names(kernel)).rename_columns(kernel.state_schema.names)


def _output_schema(kernel: Kernel) -> pa.Schema:
    fields = list(kernel.output_schema)
    fields += [kernel.state_schema.field(name) for name in kernel.keys]
    fields += [kernel.state_schema.field(n).with_name(STATE + n) for n in _state_names(kernel)]
    return pa.schema([*fields, pa.field("_state", pa.bool_())])


def _worker(
    kernel: Kernel, event_schema: pa.Schema, step: tuple[int, int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = _output_schema(kernel)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        if not received:
            return
        table = pa.Table.from_batches(received)
        is_state = table[STATE + "_n"].is_valid()
        events = table.filter(_inverted(is_state)).select(event_schema.names).cast(event_schema)
        state = _state_rows(table.filter(is_state), kernel).cast(kernel.state_schema)
        state = _touched(kernel, events, state)
        output, new_state = kernel.run(events, state, *step)
        for part, flag in ((output, False), (new_state, True)):
            yield from _padded(part, flag, kernel, schema).to_batches()

    return work


def _touched(kernel: Kernel, events: pa.Table, state: pa.Table) -> pa.Table:
    """The state of the keys that occur in the events; the rest stays as it is."""
    if state.num_rows == 0 or events.num_rows == 0:
        return state.slice(0, 0)
    both = pa.concat_tables([events.select(kernel.keys), state.select(kernel.keys)])
    codes = encode([both[name] for name in kernel.keys], both.num_rows)
    seen = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    seen[codes[: events.num_rows]] = True
    return state.filter(pa.array(seen[codes[events.num_rows :]]))


def _padded(part: pa.Table, is_state: bool, kernel: Kernel, schema: pa.Schema) -> pa.Table:
    if is_state:
        part = part.rename_columns(_travelling_names(kernel))
    columns = [
        part[field.name] if field.name in part.column_names else pa.nulls(part.num_rows, field.type)
        for field in schema
        if field.name != "_state"
    ]
    flags = pa.array(np.full(part.num_rows, is_state))
    return pa.Table.from_arrays([*columns, flags], schema=schema)
