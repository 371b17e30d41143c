"""Templates: plans that differ in compared constants only are rewritten and lifted once.

Of the first query with a skeleton nothing is kept but that there was one. With the second a
template is made: the plan is rewritten with two other sets of constants. Where all have one shape,
and the constants of the shape are those of the plan in the same positions, further ones have theirs
without being rewritten. Where they differ, nobody with that skeleton has.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Union

from millpond.cql.expressions import Literal
from millpond.cql.node import Node
from millpond.kernels.expressions import can_lower
from millpond.planning.nodes import Constant, InList
from millpond.planning.optimise import optimise
from millpond.planning.shapes import Lifted, lift, outline
from millpond.planning.skeletons import Skeleton, skeleton, with_constants

MOST_TEMPLATES = 1_000
"""So many skeletons are known, the latest."""

ConstantOrigin = Union[int, Literal]
"""Which of the constants of a plan one is, or one that is the same in all."""


@dataclass(frozen=True)
class Shaped:
    """What is asked of a rewritten plan before it is known whether it runs by itself."""

    plan: Node
    """It, or one that reads the same."""
    outline: int
    usual: Lifted | None
    late: Lifted | None


def shaped(plan: Node) -> Shaped:
    """The shapes of a rewritten plan."""
    return Shaped(plan, outline(plan), lift(plan, can_lower), lift(plan, can_lower, is_late=True))


@dataclass(frozen=True)
class _Recipe:
    """A shape, and how its constants are made of those of a plan."""

    lifted: Lifted
    origins: tuple[ConstantOrigin | tuple[ConstantOrigin, ...], ...]

    def filled(self, constants: tuple[Literal, ...]) -> Lifted:
        return replace(self.lifted, constants=tuple(self._made(constants)))

    def _made(self, constants: tuple[Literal, ...]) -> list[Constant]:
        def at(origin: ConstantOrigin) -> Literal:
            return constants[origin] if isinstance(origin, int) else origin

        made: list[Constant] = []
        for old, origin in zip(self.lifted.constants, self.origins, strict=True):
            if isinstance(origin, tuple):
                made.append(InList(tuple(at(each).value for each in origin), old.type))
            else:
                made.append(at(origin))
        return made


@dataclass(frozen=True)
class _Template:
    """The plan that queries of one skeleton have in common."""

    plan: Node
    outline: int
    usual: _Recipe | None
    late: _Recipe | None

    def filled(self, constants: tuple[Literal, ...]) -> Shaped:
        """What rewriting a plan with these constants gives."""
        usual = None if self.usual is None else self.usual.filled(constants)
        late = None if self.late is None else self.late.filled(constants)
        return Shaped(self.plan, self.outline, usual, late)


class Templates:
    """The templates of the queries that were registered."""

    def __init__(self) -> None:
        self._known: dict[str, _Template | None] = {}
        """By their skeletons; None where there is none, or one query had it so far."""
        self._seen_once: set[str] = set()

    def shaped(self, checked: Node) -> Shaped | None:
        """What rewriting a checked plan would give, if that is known."""
        bones = skeleton(checked)
        if bones is None:
            return None
        if bones.key not in self._known:
            self._forget()
            self._known[bones.key] = None
            self._seen_once.add(bones.key)
            return None
        if bones.key in self._seen_once:
            self._seen_once.remove(bones.key)
            self._known[bones.key] = template(checked, bones)
        found = self._known[bones.key]
        return None if found is None else found.filled(bones.constants)

    def _forget(self) -> None:
        if len(self._known) >= MOST_TEMPLATES:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._seen_once.discard(oldest)


def template(checked: Node, bones: Skeleton) -> _Template | None:
    """The template of plans like one; None if they are not all rewritten alike."""
    own = shaped(optimise(checked))
    made: _Template | None = None
    for stand_in in (_rising, _falling):
        others = tuple(stand_in(each, position) for position, each in enumerate(bones.constants))
        plan = with_constants(checked, dict(zip(bones.constants, others, strict=True)))
        found = shaped(optimise(plan))
        if made is None:
            made = _template(own.plan, found, others)
        if made is None or not are_alike(made.filled(others), found):
            return None
    return made if made is not None and are_alike(made.filled(bones.constants), own) else None


def _rising(literal: Literal, position: int) -> Literal:
    return _other(literal, 1_000_003 + 17 * position)


def _falling(literal: Literal, position: int) -> Literal:
    return _other(literal, 2_000_003 - 19 * position)


def _other(literal: Literal, number: int) -> Literal:
    """A constant of the same type that no query has but by chance."""
    makes: dict[type, Callable[[int], int | float | str | bytes]] = {
        int: int,
        float: lambda n: n + 0.25,
        str: lambda n: f"~{n}",
        bytes: lambda n: b"~%d" % n,
    }
    return replace(literal, value=makes[type(literal.value)](number))


def _template(plan: Node, found: Shaped, constants: tuple[Literal, ...]) -> _Template:
    origin = {literal: at for at, literal in enumerate(constants)}
    usual, late = _recipe(found.usual, origin), _recipe(found.late, origin)
    return _Template(plan, found.outline, usual, late)


def _recipe(lifted: Lifted | None, origin: dict[Literal, int]) -> _Recipe | None:
    if lifted is None:
        return None
    origins: list[ConstantOrigin | tuple[ConstantOrigin, ...]] = []
    for constant in lifted.constants:
        if isinstance(constant, InList):
            values = (Literal(value, constant.type) for value in constant.values)
            origins.append(tuple(origin.get(each, each) for each in values))
        else:
            origins.append(origin.get(constant, constant))
    return _Recipe(lifted, tuple(origins))


def are_alike(one: Shaped, other: Shaped) -> bool:
    """Whether what is known of two plans is the same."""
    shapes = ((one.usual, other.usual), (one.late, other.late))
    return one.outline == other.outline and all(_is_same(*each) for each in shapes)


def _is_same(one: Lifted | None, other: Lifted | None) -> bool:
    if one is None or other is None:
        return one is other
    kinds = (one.shape, one.streams, one.is_of_windows) == (
        other.shape,
        other.streams,
        other.is_of_windows,
    )
    return kinds and [*map(repr, one.constants)] == [*map(repr, other.constants)]
