"""Row patterns as automata: which variables a row may stand for next, in order of preference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from millpond.cql.row_patterns import Absence, Either, InTurn, Occurrence, Repeated, RowPattern

ACCEPT = 0
"""The state of a match that is whole."""


@dataclass(frozen=True)
class Automaton:
    """``variable`` and ``is_absent`` tell of each state what a row is tried as, and whether it must
    not be that; ``first`` and ``follow`` are the states to try, the preferred ones first."""

    variable: tuple[str, ...]
    is_absent: tuple[bool, ...]
    first: tuple[int, ...]
    follow: tuple[tuple[int, ...], ...]


@cache
def automaton_of(pattern: RowPattern) -> Automaton:
    """The automaton of a pattern."""
    building = _Building()
    entry = building.add(pattern, ACCEPT)
    states = building.states
    follow = (tuple(building.reached(each.then)) for each in states)
    return Automaton(
        tuple(each.variable for each in states),
        tuple(each.is_absent for each in states),
        tuple(building.reached(entry)),
        tuple(follow),
    )


@dataclass
class _State:
    """What tries a row, or, if it has ways, the choice between other states."""

    variable: str = ""
    is_absent: bool = False
    then: int = ACCEPT
    ways: tuple[int, ...] = ()


class _Building:
    def __init__(self) -> None:
        self.states = [_State()]

    def _state(self, state: _State) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def _choice(self, *ways: int, is_reversed: bool = False) -> int:
        return self._state(_State(ways=ways[::-1] if is_reversed else ways))

    def add(self, pattern: RowPattern, then: int) -> int:
        """Where a pattern begins that goes on somewhere."""
        match pattern:
            case Occurrence():
                return self._state(_State(pattern.variable, then=then))
            case Absence():
                return self._state(_State(pattern.variable, True))
            case InTurn():
                for part in reversed(pattern.parts):
                    then = self.add(part, then)
                return then
            case Either():
                return self._choice(*[self.add(part, then) for part in pattern.parts])
            case Repeated():
                return self._repeated(pattern, then)

    def _repeated(self, pattern: Repeated, then: int) -> int:
        entry = then
        if pattern.most is None:
            entry = self._state(_State())
            ways = (self.add(pattern.part, entry), then)
            self.states[entry].ways = ways[::-1] if pattern.is_reluctant else ways
        for _ in range((pattern.most or pattern.least) - pattern.least):
            entry = self._choice(
                self.add(pattern.part, entry), then, is_reversed=pattern.is_reluctant
            )
        for _ in range(pattern.least):
            entry = self.add(pattern.part, entry)
        return entry

    def reached(self, entry: int) -> Iterator[int]:
        """The states that try a row, or accept, which are reached from one without a row."""
        seen, stack = set[int](), [entry]
        while stack:
            state = stack.pop()
            if state not in seen:
                seen.add(state)
                if self.states[state].ways:
                    stack += reversed(self.states[state].ways)
                else:
                    yield state
