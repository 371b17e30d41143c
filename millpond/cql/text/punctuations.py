"""Punctuations: what PUNCTUATE says of a stream, and the column of one that carries them."""

from sqlglot import exp

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.syntax import PunctuatedClause, PunctuateStatement
from millpond.cql.text.tokens import tokenize

POLICIES = ("STOP", "COUNT")


def punctuate_statement(cursor: Cursor) -> PunctuateStatement:
    """PUNCTUATE stream WHERE pattern [ON VIOLATION STOP | COUNT]."""
    cursor.expect("PUNCTUATE")
    stream = cursor.name("the name of a stream")
    if not cursor.accept("WHERE"):
        raise cursor.fault(
            "expected WHERE: a punctuation says what will not follow, such as WHERE order_id <= 7"
        )
    return PunctuateStatement(stream, cursor.expression("ON"), _policy(cursor))


def punctuated_clause(cursor: Cursor) -> PunctuatedClause:
    """What comes behind PUNCTUATED: BY (column) [ON VIOLATION STOP | COUNT]."""
    cursor.expect("BY", "(")
    column = cursor.name("the column that carries punctuations")
    cursor.expect(")")
    return PunctuatedClause(column, _policy(cursor))


def _policy(cursor: Cursor) -> str:
    """What follows from a violation; the queries that rely on a punctuation stop if unsaid."""
    if not (cursor.word() == "ON" and cursor.word(1) == "VIOLATION"):
        return "stop"
    cursor.expect("ON", "VIOLATION")
    return cursor.choice("STOP or COUNT", *POLICIES).lower()


def parse_pattern(text: str) -> exp.Expr:
    """The syntax of a pattern that stands alone."""
    cursor = Cursor(tokenize(text), text)
    found = cursor.expression()
    cursor.end()
    return found
