"""HAVING over numbers with bounds: a group is there if it may fulfil it, and says how sure that
is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millpond.cql.check.kept_input import NoBoundError, columns_of
from millpond.cql.check.told_apart import conjuncts, subqueries_in
from millpond.cql.coercion import widens
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.schema import Type

HOLDS = "holds"
"""Names the column that says how sure it is that a group fulfils HAVING."""

_LOW, _HIGH, _CERTAIN_LOW, _CERTAIN_HIGH = 1, 2, 3, 4
_ABOVE = {">": (_HIGH, _LOW, _CERTAIN_LOW), ">=": (_HIGH, _LOW, _CERTAIN_LOW)}
_BELOW = {"<": (_LOW, _HIGH, _CERTAIN_HIGH), "<=": (_LOW, _HIGH, _CERTAIN_HIGH)}
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


Answers = Sequence[tuple[Expression, ...]]
"""Five columns for each aggregate: the answer, and its bounds."""


@dataclass(frozen=True)
class Having:
    """What a HAVING says of rows of keys, and of five columns for each aggregate."""

    of_keys: tuple[Expression, ...]
    possibly: tuple[Expression, ...]
    confidently: tuple[Expression, ...]
    certainly: tuple[Expression, ...]

    @property
    def needed(self) -> Iterator[Expression]:
        """What a row has to fulfil to be there."""
        yield from self.of_keys
        yield from self.possibly

    @property
    def holds(self) -> Expression:
        """How sure it is that a row fulfils it all, in a word."""
        said = (self.certainly, "certainly"), (self.confidently, "confidently")
        parts = [part for tests, word in said for part in (_all(tests), _word(word))]
        return Call("case", (*parts, _word("possibly")), Type.STRING)


def having_of(
    predicate: Expression, keys: int, answers: Answers, sure: tuple[Expression, ...]
) -> Having:
    """What a HAVING over keys and aggregates says, of which there are answers with bounds.

    ``sure``: what has to be so for a group, and its numbers, to be there at all.
    """
    parts = conjuncts(predicate)
    if any(map(subqueries_in, parts)):
        raise NoBoundError("a subquery in HAVING has no bound; leave TOLERATE out")
    of_keys = [each for each in parts if _is_of_keys(each, keys)]
    others = [_compared(each, keys, answers) for each in parts if each not in of_keys]
    possibly, confidently, certainly = zip(*others, strict=True) if others else ((), (), ())
    return Having(tuple(of_keys), possibly, (*confidently, *sure), (*certainly, *sure))


def _is_of_keys(expression: Expression, keys: int) -> bool:
    return all(position < keys for position in columns_of(expression))


def _compared(part: Expression, keys: int, answers: Answers) -> tuple[Expression, ...]:
    """Whether one comparison possibly holds, confidently and certainly."""
    if isinstance(part, Call) and part.function in _TURNED:
        left, right = part.arguments
        if _is_of_keys(right, keys):
            return _sides(part.function, left, right, keys, answers)
        if _is_of_keys(left, keys):
            return _sides(_TURNED[part.function], right, left, keys, answers)
    raise NoBoundError(
        f"whether {part} holds is not known of numbers with bounds: write HAVING with <, <=, > or "
        ">= between an aggregate and what is known, and AND; or leave TOLERATE out"
    )


def _sides(
    function: str,
    number: Expression,
    known: Expression,
    keys: int,
    answers: Answers,
) -> tuple[Expression, ...]:
    ends = (_ABOVE | _BELOW)[function]
    sides = (_side(number, end, keys, answers) for end in ends)
    return tuple(Call(function, (side, known), Type.BOOLEAN) for side in sides)


def _side(number: Expression, end: int, keys: int, answers: Answers) -> Expression:
    """One end of the bounds of an aggregate."""
    if isinstance(number, Column):
        return answers[number.position - keys][end]
    if isinstance(number, Call) and widens(number):
        return Call("cast", (_side(number.arguments[0], end, keys, answers),), number.type)
    raise NoBoundError(
        f"{number} has no bound: it is computed from aggregates; compare the aggregates alone, or "
        "leave TOLERATE out"
    )


def _all(tests: tuple[Expression, ...]) -> Expression:
    return tests[0] if len(tests) == 1 else Call("and", tests, Type.BOOLEAN)


def _word(word: str) -> Literal:
    return Literal(word, Type.STRING)
