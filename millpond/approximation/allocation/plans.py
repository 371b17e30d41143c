"""Plans as the allocation sees them: operators with what they would do with how much memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from millpond.approximation.checks import require
from millpond.approximation.precision import (
    EXACT,
    Composition,
    Precision,
    Projection,
    Selection,
    Union,
)


@dataclass(frozen=True)
class Option:
    """The precision of an operator with a number of units of memory, its inputs being exact."""

    units: int
    own: Precision

    def __post_init__(self) -> None:
        require(self.units >= 0, f"{self.units} units of memory")


@dataclass(frozen=True)
class Stream:
    """An input of a plan, which is exact."""

    name: str


@dataclass(frozen=True)
class Operator:
    """An operator of a plan; more memory need not be better. Equal ones are one operator."""

    name: str
    composition: Composition
    inputs: tuple[Node, ...]
    options: tuple[Option, ...] = (Option(0, EXACT),)

    def __post_init__(self) -> None:
        require(bool(self.options), f'operator "{self.name}" has no options')

    @property
    def can_be_wrong(self) -> bool:
        """Whether it may deliver wrong tuples by itself."""
        return any(option.own.wrong for option in self.options)


Node: TypeAlias = Stream | Operator


@dataclass(frozen=True)
class Query:
    """A plan with the weight that its precision has beside that of others; zero if inactive."""

    name: str
    root: Operator
    weight: float = 1.0

    def __post_init__(self) -> None:
        require(self.weight >= 0, f'query "{self.name}" has a weight of {self.weight}')
        for operator in operators_of(self.root):
            _check_independence(self.name, operator)


def operators_of(node: Node) -> list[Operator]:
    """The operators of a plan, each once, inputs first."""
    found: dict[Operator, None] = {}
    for each in _walked(node):
        found.setdefault(each)
    return list(found)


def _walked(node: Node) -> Iterator[Operator]:
    if isinstance(node, Operator):
        for each in node.inputs:
            yield from _walked(each)
        yield node


def _check_independence(query: str, operator: Operator) -> None:
    """Refuses an operator whose inputs both read an approximate one: no formula holds there."""
    if isinstance(operator.composition, Selection | Projection | Union):
        return
    seen: set[Operator] = set()
    for each in operator.inputs:
        below = {o for o in operators_of(each) if any(p.own != EXACT for p in o.options)}
        common = sorted(o.name for o in below & seen)
        require(
            not common,
            f'query "{query}": the inputs of "{operator.name}" both read {common}, so their errors '
            "are not independent; give each an operator of its own",
        )
        seen |= below
