"""A function that the user gives for CQL: its name, its types, and its code as bytes."""

from dataclasses import dataclass, field

from millpond.functions.processes import FunctionProcesses
from millpond.schema import Type


@dataclass(frozen=True)
class UserFunction:
    """A function of Arrow arrays. Two are the same if their names, types and digests are."""

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

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))}) {self.result}"
