"""Kernels in Spark's Python workers: a shuffle by key, then the same function as in the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millpond.spark.frames import Frames
from millpond.spark.kernels.groups import encode
from millpond.spark.types import spark_schema, spark_type

STATE = "z_"
"""Prefix of state columns where events and state travel in one frame."""


class Keyed(Protocol):
    """What a kernel must offer to run in workers."""

    @property
    def keys(self) -> list[str]: ...
    @property
    def state_schema(self) -> pa.Schema: ...
    @property
    def output_schema(self) -> pa.Schema: ...
    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]: ...


def run_in_workers(
    kernel: Keyed,
    events: DataFrame,
    event_schema: pa.Schema,
    state: pa.Table,
    frames: Frames,
    step: tuple[int, int],
    partitions: int,
) -> tuple[pa.Table, pa.Table]:
    """The output and the new state of a step, computed in parallel by key."""
    together = _with_state(kernel, events, event_schema, state, frames)
    shuffled = together.repartition(partitions, *kernel.keys)
    schema = _output_schema(kernel)
    result = shuffled.mapInArrow(_worker(kernel, event_schema, step), spark_schema(schema))
    table = result.toArrow().cast(schema)
    is_state = table["_state"]
    output = table.filter(_inverted(is_state)).select(kernel.output_schema.names)
    return output, _state_rows(table.filter(is_state), kernel)


def _inverted(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pc.invert(chunk) for chunk in mask.chunks], pa.bool_())


def _state_names(kernel: Keyed) -> list[str]:
    return [name for name in kernel.state_schema.names if name not in kernel.keys]


def _state_rows(table: pa.Table, kernel: Keyed) -> pa.Table:
    names = [name if name in kernel.keys else STATE + name for name in kernel.state_schema.names]
    return table.select(names).rename_columns(kernel.state_schema.names)


def _with_state(
    kernel: Keyed,
    events: DataFrame,
    event_schema: pa.Schema,
    state: pa.Table,
    frames: Frames,
) -> DataFrame:
    """Events and state rows in one frame, each with NULLs in the other's columns."""
    names = _state_names(kernel)
    nothing = [
        F.lit(None).cast(spark_type(kernel.state_schema.field(n).type)).alias(STATE + n)
        for n in names
    ]
    marked = events.select("*", *nothing)
    if state.num_rows == 0:
        return marked
    renamed = state.rename_columns(
        [n if n in kernel.keys else STATE + n for n in state.column_names]
    )
    stored = frames.of_table(f"state of {id(kernel)}", renamed)
    if stored is None:
        return marked
    empty = [
        F.lit(None).cast(spark_type(field.type)).alias(field.name)
        for field in event_schema
        if field.name not in kernel.keys
    ]
    return marked.unionByName(stored.select("*", *empty))


def _output_schema(kernel: Keyed) -> pa.Schema:
    fields = list(kernel.output_schema)
    fields += [kernel.state_schema.field(name) for name in kernel.keys]
    fields += [kernel.state_schema.field(n).with_name(STATE + n) for n in _state_names(kernel)]
    return pa.schema([*fields, pa.field("_state", pa.bool_())])


def _worker(
    kernel: Keyed, event_schema: pa.Schema, step: tuple[int, int]
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


def _touched(kernel: Keyed, events: pa.Table, state: pa.Table) -> pa.Table:
    """The state of the keys that occur in the events; the rest stays as it is."""
    if state.num_rows == 0 or events.num_rows == 0:
        return state.slice(0, 0)
    both = pa.concat_tables([events.select(kernel.keys), state.select(kernel.keys)])
    codes = encode([both[name] for name in kernel.keys], both.num_rows)
    seen = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    seen[codes[: events.num_rows]] = True
    return state.filter(pa.array(seen[codes[events.num_rows :]]))


def _padded(part: pa.Table, is_state: bool, kernel: Keyed, schema: pa.Schema) -> pa.Table:
    if is_state:
        names = [n if n in kernel.keys else STATE + n for n in part.column_names]
        part = part.rename_columns(names)
    columns = [
        part[field.name] if field.name in part.column_names else pa.nulls(part.num_rows, field.type)
        for field in schema
        if field.name != "_state"
    ]
    flags = pa.array(np.full(part.num_rows, is_state))
    return pa.Table.from_arrays([*columns, flags], schema=schema)
