"""Patterns of MATCH_RECOGNIZE: what is refused of them, and for how long they last."""

from dataclasses import dataclass

from sqlglot import exp

from millpond.cql.row_patterns import (
    Absence,
    InTurn,
    Occurrence,
    Repeated,
    RowPattern,
    Skip,
    instructions,
    least_rows,
    pieces,
)
from millpond.cql.text.lengths import ticks_of
from millpond.cql.text.match_recognize import MatchRecognizeText
from millpond.cql.text.places import StatementError

MOST_PLACES = 1_000
"""So many variables may a pattern have with its repetitions written out."""


@dataclass(frozen=True)
class NamedPattern:
    """A pattern with its variables, and those that rows of a match stand for."""

    pattern: RowPattern
    variables: tuple[str, ...]
    matched: frozenset[str]


def checked_pattern(
    clause: MatchRecognizeText, tick_microseconds: int
) -> tuple[NamedPattern, int | None, Skip]:
    """The pattern, how many ticks it lasts, and where the search goes on behind a match."""
    pattern: RowPattern = clause.args["pattern"]
    length = clause.args.get("within")
    within = None if length is None else ticks_of(length, tick_microseconds)
    if within is not None and within <= 0:
        raise StatementError("WITHIN takes a length above zero", length)
    _check_absence(pattern, within, clause)
    if least_rows(pattern) == 0:
        raise StatementError(
            "the pattern would match no row at all; it needs a row that must be there: A+ for A*",
            clause,
        )
    _check_repetitions(pattern, clause)
    names = tuple(dict.fromkeys(place.name.upper() for place in clause.args["places"]))
    matched = frozenset(p.variable for p in pieces(pattern) if isinstance(p, Occurrence))
    return NamedPattern(pattern, names, matched), within, _skip(clause, matched)


def _check_absence(pattern: RowPattern, within: int | None, clause: exp.Expr) -> None:
    absent = [piece for piece in pieces(pattern) if isinstance(piece, Absence)]
    is_last = isinstance(pattern, InTurn) and isinstance(pattern.parts[-1], Absence)
    if absent and (len(absent) > 1 or not is_last):
        raise StatementError(
            "NOT A stands at the end of a PATTERN, once: PATTERN (A NOT B) WITHIN 5 MINUTES; for "
            "rows between others name those that may stand there: PATTERN (A X* C) DEFINE X AS "
            "NOT (…)",
            clause,
        )
    if absent and within is None:
        raise StatementError(
            "NOT at the end of a PATTERN needs the time until which nothing comes: "
            "PATTERN (A NOT B) WITHIN 5 MINUTES",
            clause,
        )


def _check_repetitions(pattern: RowPattern, clause: exp.Expr) -> None:
    for piece in pieces(pattern):
        if isinstance(piece, Repeated) and piece.most != 1 and least_rows(piece.part) == 0:
            raise StatementError(
                "what is repeated must take a row each time: (A B?)* for (A? B?)*", clause
            )
    if instructions(pattern) > MOST_PLACES:
        raise StatementError(
            f"the pattern has more than {MOST_PLACES:,} places with its repetitions written out; "
            "use A+ and compare count(A.*) in DEFINE",
            clause,
        )


def _skip(clause: MatchRecognizeText, matched: frozenset[str]) -> Skip:
    node = clause.args.get("skip")
    if node is None:
        return Skip("past")
    variable = node.args.get("variable")
    if variable is None:
        return Skip(node.args["to"])
    if variable.name.upper() not in matched:
        raise StatementError(
            f'no row of a match stands for "{variable.name}"; SKIP goes to a variable of the '
            "PATTERN that is not behind NOT",
            variable,
        )
    return Skip(node.args["to"], variable.name.upper())
