"""A function that the user gives for CQL: its name, its types, and its code as bytes."""

from dataclasses import dataclass, field

from millpond.functions.processes import FunctionProcesses
from millpond.schema import Type

AGGREGATE, REMOVING = "aggregate", "removing aggregate"


@dataclass(frozen=True)
class UserFunction:
    """A function of Arrow arrays, or an aggregate.

    Two are the same if their names, types, kinds and digests are.
    """

    name: str
    parameters: tuple[Type, ...]
    result: Type
    digest: str
    """What tells its code from other code, wherever that stands."""
    code: bytes = field(compare=False, repr=False)
    """The function, pickled: it runs as it was when it was registered, in every process."""
    processes: FunctionProcesses = field(
        default_factory=FunctionProcesses, compare=False, repr=False
    )
    """Where it runs apart, if its engine wants that."""
    kind: str = ""
    """Of an aggregate AGGREGATE, or REMOVING if it takes rows back itself."""

    @property
    def is_aggregate(self) -> bool:
        """Whether it is one of the rows of a group."""
        return self.kind != ""

    @property
    def can_remove(self) -> bool:
        """Whether it takes rows back from its state."""
        return self.kind == REMOVING

    def __str__(self) -> str:
        kind = f"{self.kind} " if self.kind else ""
        return f"{kind}{self.name}({', '.join(map(str, self.parameters))}) {self.result}"
