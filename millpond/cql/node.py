"""What all nodes of a checked query share.

Apart from ``algebra``, because expressions hold the plans of subqueries and plans hold expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from millpond.schema import Schema


@dataclass(frozen=True)
class Node:
    """What all plan nodes share."""

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        raise NotImplementedError

    @property
    def is_stream(self) -> bool:
        """Whether the result is a stream; otherwise it is a relation."""
        return False

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes this one reads, in order."""
        return tuple(
            value
            for value in (getattr(self, f.name) for f in fields(self))
            if isinstance(value, Node)
        )

    def with_inputs(self, new: tuple[Node, ...]) -> Node:
        """The same node over other inputs."""
        names = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Node)]
        return replace(self, **dict(zip(names, new, strict=True))) if names else self

    def label(self) -> str:
        """One line that tells the node from others of its kind."""
        return type(self).__name__

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for node in self.inputs:
            yield from node.walk()

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        yield "  " * depth + self.label()
        for node in self.inputs:
            yield from node._lines(depth + 1)
