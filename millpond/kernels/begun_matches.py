"""The matches that have begun in one partition, and what becomes of them row by row.

A match that begins with a row is followed on all its *ways* at once, the preferred ones first: it
is decided when the first of them is whole, or none is left. Where the search goes on depends on
the matches before, so they are told in order; those that began in rows which a match skips are
gone. With SKIP TO NEXT ROW each stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from millpond.errors import InputError
from millpond.kernels.registers import Cells, Registers
from millpond.kernels.row_automaton import ACCEPT, Automaton

MOST_WAYS = 10_000
"""A row of a match has at most so many ways: they can double with each row where a condition looks
at what has become of alternatives, and nothing bounds them then."""

Way = tuple[int, Cells]
"""A state of the automaton, and what is kept of the rows that led to it."""
Question = tuple[str, Cells]
"""Whether a row stands for a variable, with the cells as they would be."""
Verdict = Cells | int | None
"""What a row means to a way: the cells that it goes on with, the number of a question whose answer
says whether it does, or nothing."""
Asked = tuple[int, list[Question]]
"""Questions about a row."""
Playing = Generator[Asked, list[bool], None]
"""Asks questions about a row, as far as they depend on the rows of the match."""


@dataclass
class Begun:
    """A match that began at a place of its partition, with its ways."""

    place: int
    time: int
    ways: list[Way]

    @property
    def is_decided(self) -> bool:
        """Whether it is known if there is one, and which."""
        return not self.ways or self.ways[0][0] == ACCEPT


@dataclass(frozen=True)
class Rules:
    """What all partitions of a step have in common."""

    automaton: Automaton
    registers: Registers
    within: int | None
    skips: bool
    """Whether rows of a match are skipped."""
    is_past: bool
    """Whether the row from which the search goes on is skipped too."""
    compared: tuple[int, ...]
    """The cells that conditions look at: ways that differ in others alone go on alike."""
    truth: Callable[[str, int], bool | None]
    """Whether a row stands for a variable; None: that depends on the match."""
    times: Sequence[int]


@dataclass
class Partition:
    """The matches that have begun in a partition."""

    rules: Rules
    next_place: int = 0
    begun: list[Begun] = field(default_factory=list)
    found: list[tuple[int, Cells]] = field(default_factory=list)
    """The matches that were decided, and when."""

    def play(self, rows: range) -> Playing:
        """Row after row, each with all that was over by its time gone before."""
        for row in rows:
            time = self.rules.times[row]
            self.expire(time)
            self.begun.append(Begun(self.next_place, time, self._first_ways()))
            self.next_place += 1
            questions: list[Question] = []
            tried = [
                [self._verdict(way, row, questions) for way in begun.ways] for begun in self.begun
            ]
            answers = (yield row, questions) if questions else []
            for begun, verdicts in zip(self.begun, tried, strict=True):
                meant = [_meant(verdict, questions, answers) for verdict in verdicts]
                begun.ways = self._gone_on(begun.ways, meant)
            self._tell(time)

    def expire(self, time: int) -> None:
        """Decides the matches that are over by a time, in their order."""
        within = self.rules.within
        while within is not None and self.begun and self.begun[0].time + within <= time:
            deadline = self.begun[0].time + within
            for begun in self.begun:
                if begun.time + within > deadline:
                    break
                begun.ways = self._at_end(begun.ways)
            self._tell(deadline)

    def _first_ways(self) -> list[Way]:
        return [(state, self.rules.registers.empty) for state in self.rules.automaton.first]

    def _at_end(self, ways: list[Way]) -> list[Way]:
        """What is whole when the time is over: also what has waited for a row that never came."""
        is_absent = self.rules.automaton.is_absent
        for state, cells in ways:
            if state == ACCEPT or is_absent[state]:
                return [(ACCEPT, cells)]
        return []

    def _verdict(self, way: Way, row: int, questions: list[Question]) -> Verdict:
        state, cells = way
        if state == ACCEPT:
            return None
        variable = self.rules.automaton.variable[state]
        truth = self.rules.truth(variable, row)
        if truth is False:
            return None
        with_row = self.rules.registers.with_row(cells, variable, row)
        if truth:
            return with_row
        questions.append((variable, with_row))
        return len(questions) - 1

    def _gone_on(self, ways: list[Way], meant: list[Cells | None]) -> list[Way]:
        """The ways behind a row, up to the first that is whole: those behind it are not wanted.

        ``meant``: the cells with the row of those for which it stands for their variable.
        """
        automaton, compared = self.rules.automaton, self.rules.compared
        new, seen = list[Way](), set[tuple[int, ...]]()
        for (state, cells), with_row in zip(ways, meant, strict=True):
            states: tuple[int, ...]
            if state == ACCEPT or automaton.is_absent[state]:
                states, carried = (state,) if with_row is None else (), cells
            elif with_row is None:
                continue
            else:
                states, carried = automaton.follow[state], with_row
            for each in states:
                key = (each, *(carried[i] for i in compared))
                if key not in seen:
                    seen.add(key)
                    new.append((each, carried))
                if each == ACCEPT:
                    return new
        if len(new) > MOST_WAYS:
            raise InputError(
                f"a match of MATCH_RECOGNIZE has more than {MOST_WAYS:,} ways to go on: a "
                "condition of DEFINE looks at rows of variables between which PATTERN leaves the "
                "choice; have these variables exclude each other, or ask it of the last row alone"
            )
        return new

    # -- what is decided ---------------------------------------------------------------------

    def _tell(self, time: int) -> None:
        """Notes the matches that are decided at a time."""
        if not self.rules.skips:
            self.found += [(time, b.ways[0][1]) for b in self.begun if b.is_decided and b.ways]
            self.begun = [begun for begun in self.begun if not begun.is_decided]
            return
        while self.begun and self.begun[0].is_decided:
            first = self.begun.pop(0)
            if first.ways:
                cells = first.ways[0][1]
                self.found.append((time, cells))
                place = self._goes_on_at(first.place, cells)
                self.begun = [begun for begun in self.begun if begun.place >= place]

    def _goes_on_at(self, place: int, cells: Cells) -> int:
        """Where the search goes on behind a match: at the row behind its first at least."""
        told: int | None = cells[self.rules.registers.all[-1].at]
        found = -1 if told is None else told
        return max(place + 1, found + (1 if self.rules.is_past else 0))


def _meant(verdict: Verdict, questions: list[Question], answers: list[bool]) -> Cells | None:
    if not isinstance(verdict, int):
        return verdict
    return questions[verdict][1] if answers[verdict] else None
