"""How operators describe the work of a step, for whoever executes it.

In the driver an operator works on rows that are brought to it (`Rows`). For the executors it says
what each task is to do (`Job`), and what their answers mean. Where that is done, and in which way,
is not its business (`executor.py`).
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import pyarrow as pa

from millpond.execution.answers import Answer
from millpond.execution.fragments import Reading
from millpond.execution.pair_output import PairOutput
from millpond.execution.steps import Outcome, Runner
from millpond.execution.work import Work
from millpond.storage.portions import Portion

MOST_READERS = 8
"""Up to so many tasks read a page each for itself; for more of them Spark shuffles it."""

Parts: TypeAlias = Sequence[tuple[Reading, Sequence[str]]]
"""What is read: some readings, each in some modes."""


class Rows(Protocol):
    """Brings an operator the rows that it works on in the driver."""

    def gathered(self, running: Runner, parts: Parts, schema: pa.Schema) -> pa.Table:
        """The rows of some parts, with their expressions evaluated."""

    def put_out(
        self, running: Runner, output: PairOutput, pairs: pa.Table, schema: pa.Schema
    ) -> pa.Table:
        """What becomes of the pairs of a join."""


@dataclass(frozen=True)
class Pairs:
    """The pairs of a join as tasks write them that cannot say what becomes of them."""

    schema: pa.Schema
    output: PairOutput


@dataclass(frozen=True)
class Job:
    """What the executors do in a step, and what their answers mean."""

    parts: Parts
    work: Work
    keys: Sequence[str]
    """Rows with equal keys are worked on together; without keys any rows are."""
    buckets: int
    outcome: Callable[[list[Answer]], Outcome]
    is_for_all: bool = False
    """Whether buckets to which nothing came work too."""
    pairs: Pairs | None = None
    """What it writes, if something is still to be made of that."""

    @cached_property
    def portions(self) -> list[Portion] | None:
        """What tasks must know to read the parts themselves; None if they can not."""
        return portions_of(self.parts)

    @cached_property
    def rows(self) -> int:
        """About how many rows it reads."""
        return sum(reading.rows(*modes) for reading, modes in self.parts)


Jobs: TypeAlias = Generator[Job, list[Answer], Outcome]
"""The jobs of a step one after the other: each is answered before the next one is known."""


def evaluated(parts: Parts, schema: pa.Schema) -> pa.Table | None:
    """The rows of some parts in the driver; None if an expression needs Spark."""
    tables = [reading.evaluated(modes) for reading, modes in parts]
    found = [table for table in tables if table is not None]
    if len(found) < len(tables):
        return None
    full = [table for table in found if table.num_rows]
    if not full:
        return schema.empty_table()
    return pa.concat_tables(
        [table if table.schema == schema else table.cast(schema) for table in full]
    )


def portions_of(parts: Parts) -> list[Portion] | None:
    """What tasks must know to read some parts themselves; None if they can not."""
    found = [reading.portions(modes) for reading, modes in parts]
    known = [portions for portions in found if portions is not None]
    if len(known) < len(found):
        return None
    return [portion for portions in known for portion in portions if portion.spans]
