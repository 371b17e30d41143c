"""What all running operators share: fragments, a cursor and the shape of a step.

``step(until)`` covers (cursor, until] completely and moves the cursor. Whatever is kept between
steps is in queues (windows, relations) and synopses (groups).
"""

from __future__ import annotations

import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES
from millpond.kernels.aggregate import element_schema
from millpond.planning.branches import Outputs
from millpond.planning.physical import Operator
from millpond.schema import Schema
from millpond.spark.fragments import ENDED, STARTED, Fragment
from millpond.spark.frames import Plans
from millpond.spark.surroundings import Surroundings
from millpond.storage.pages import Page
from millpond.storage.queues import Queue, Reader


class RunningOperator:
    """What all running operators share: fragments, cursor and subscriptions."""

    needs: frozenset[str] = frozenset({STARTED})

    def __init__(self, operator: Operator, around: Surroundings, cursor: int) -> None:
        self.operator = operator
        self.around = around
        self.cursor = cursor
        self.plans = Plans()
        self.fragments = [
            Fragment(node, around, self.outputs(index))
            for index, node in enumerate(operator.inputs)
        ]
        self.subscriptions: list[tuple[Queue, Reader]] = []
        for index, fragment in enumerate(self.fragments):
            self.subscriptions += fragment.subscribe(cursor, self.needs_of(index))

    def needs_of(self, index: int) -> frozenset[str]:
        """What the operator asks of its n-th fragment."""
        return self.needs

    def outputs(self, index: int) -> Outputs:
        """The columns it wants of its n-th fragment."""
        return Outputs.all_of(self.operator.inputs[index])

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return element_schema(arrow_types(self.operator.schema))

    @property
    def horizon(self) -> int:
        """How far its inputs are complete."""
        return min(queue.heartbeat for queue, _ in self.subscriptions)

    def waiting(self, after: int, until: int) -> int:
        """How many rows lie in (after, until]; about, if no step has cut the pages there."""
        return sum(fragment.waiting(after, until) for fragment in self.fragments)

    @property
    def row_bytes(self) -> float:
        """The average size of the rows held by the queues it reads; 0 if they are empty."""
        queues = [queue for queue, _ in self.subscriptions]
        return sum(queue.bytes for queue in queues) / max(1, sum(queue.rows for queue in queues))

    def has_work(self, until: int) -> bool:
        """Whether a step up to ``until`` could put anything out."""
        if until <= self.cursor:
            return False
        return any(
            fragment.waiting(self.cursor, until) or self._ends(index, until)
            for index, fragment in enumerate(self.fragments)
        )

    def _ends(self, index: int, until: int) -> int:
        if ENDED not in self.needs_of(index):
            return 0
        return self.fragments[index].ending(self.cursor, until)

    def step(self, until: int) -> pa.Table:
        """Everything the operator puts out in (cursor, until]."""
        try:
            output = (
                self.run(self.cursor, until)
                if self.has_work(until)
                else self.output_schema.empty_table()
            )
        finally:
            self.around.frames.release()
        self.skip(until)
        return output

    def skip(self, until: int) -> None:
        """Moves the cursor over a step in which nothing happens."""
        self.cursor = until
        for _, reader in self.subscriptions:
            reader.cursor = until

    def limited(self, horizon: int, most: int) -> int:
        """The latest time up to which a step reads about ``most`` rows, or the horizon."""
        if self.waiting(self.cursor, horizon) <= most:
            return horizon
        times: list[tuple[int, int, Page]] = []
        for queue in {id(queue): queue for queue, _ in self.subscriptions}.values():
            times += [
                (page.last, page.rows, page)
                for page in queue.pages
                if page.last > self.cursor and page.first <= horizon
            ]
        times.sort(key=lambda each: each[0])
        total, until = 0, self.cursor
        for last, rows, page in times:
            if total + rows > most:
                inside = page.row_time(min(most - total, page.rows - 1)) - 1
                return min(max(until, inside, self.cursor + 1), horizon)
            total, until = total + rows, last
        return horizon

    def run(self, after: int, until: int) -> pa.Table:
        """The work of a step that has any."""
        raise NotImplementedError

    def close(self) -> None:
        """Leaves its queues and gives its slots up."""
        for queue, reader in self.subscriptions:
            queue.readers = [each for each in queue.readers if each is not reader]
        for fragment in self.fragments:
            fragment.close()


def arrow_types(schema: Schema) -> tuple[pa.DataType, ...]:
    """The Arrow types of a schema's columns."""
    return tuple(ARROW_TYPES[type_] for type_ in schema.types)
