"""One step of grouped aggregation, as the aggregates see it."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millpond.functions.user_function import UserFunction
from millpond.kernels.bags import Bag
from millpond.kernels.groups import Ints
from millpond.kernels.timeline import Changes, Elements, Timeline

IN_ORDER = ("max_by", "min_by", "first", "last", "string_agg", "array_agg")
"""Aggregates that keep rows."""


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate: its function, the number of its argument column (None for count(*))."""

    function: str
    argument: int | None
    type: pa.DataType
    argument_type: pa.DataType | None = None
    distinct: bool = False
    parameter: float | str | None = None
    more: tuple[int, ...] = ()
    """The numbers of further columns that it reads."""
    more_types: tuple[pa.DataType, ...] = ()
    definition: UserFunction | None = None
    """The user's, if it is one."""
    only_come: bool = False
    """Whether no row ever goes."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The numbers of all columns that it reads."""
        return self.more if self.argument is None else (self.argument, *self.more)

    @property
    def column_types(self) -> tuple[pa.DataType, ...]:
        """Their types."""
        return (self.argument_type, *self.more_types)

    @property
    def keeps_rows(self) -> bool:
        """Whether it keeps the rows of a group.

        An aggregate of the user keeps a state instead, if it can take rows back from it, or if none
        ever goes and those that come are in order.
        """
        if self.definition is None:
            return self.function in IN_ORDER
        is_in_order = len(self.columns) > len(self.definition.parameters)
        return not (self.definition.can_remove or (self.only_come and is_in_order))


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
    raised: dict[int, str] = field(default_factory=dict)
    """The groups of which an aggregate of the user has raised an error, and its words."""

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
