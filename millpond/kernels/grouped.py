"""One step of grouped aggregation, as the aggregates see it."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millpond.kernels.bags import Bag
from millpond.kernels.groups import Ints
from millpond.kernels.timeline import Changes, Elements, Timeline


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate: its function, the number of its argument column (None for count(*))."""

    function: str
    argument: int | None
    type: pa.DataType
    argument_type: pa.DataType | None = None
    distinct: bool = False
    parameter: float | None = None


@dataclass
class Group:
    """The step as the aggregates see it, and the new state they leave in ``kept``."""

    events: pa.Table
    elements: Elements
    timeline: Timeline
    state: pa.Table
    state_codes: Ints
    groups: int
    until: int
    kept: dict[str, pa.Array] = field(default_factory=dict)
    overflown: list[Ints] = field(default_factory=list)
    """The groups of which a sum has left its range."""

    def initial(self, name: str) -> Ints:
        """A kept number of each group before the step."""
        values = np.zeros(self.groups, dtype=np.int64)
        values[self.state_codes] = np.asarray(self.state[name]).astype(np.int64)
        return values

    def total(self, name: str, amounts: Ints, of: Changes | None = None) -> Ints:
        """A running sum under a name; ``of`` names changes other than the timeline's own."""
        running = self.running(amounts, self.initial(name), of)
        self.kept[name] = pa.array(running[self.timeline.is_last])
        return running

    def running(self, amounts: Ints, initial: Ints, of: Changes | None) -> Ints:
        """A running sum of which nothing is kept."""
        if of is None:
            return self.timeline.running(amounts, initial)
        return self.timeline.running_of(of, amounts, initial)

    def bag(self, name: str, type_: pa.DataType) -> Bag:
        """A kept bag of the touched groups."""
        if self.state.num_rows == 0:
            return Bag.empty(type_)
        return Bag.of_lists(self.state_codes, self.state[name + "v"], self.state[name + "n"])

    def keep_bag(self, name: str, bag: Bag) -> None:
        """Leaves a bag for the next step."""
        lists = bag.to_lists(self.timeline.code[self.timeline.is_last])
        self.kept[name + "v"], self.kept[name + "n"] = lists
