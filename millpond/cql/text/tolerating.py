"""EXACT and TOLERATE: whether a query may be answered from a sample, and how small that may be."""

from dataclasses import replace

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import Tolerating
from millpond.cql.text.tokens import tokenize


def tolerating_clause(cursor: Cursor) -> Tolerating:
    """EXACT, or TOLERATE (SAMPLE AT LEAST n PERCENT, CONFIDENCE n PERCENT), each at most once."""
    offset = cursor.offset
    if cursor.accept("EXACT"):
        return Tolerating(True, offset)
    cursor.expect("TOLERATE", "(")
    said: dict[str, float] = {}
    cursor.several(lambda: _part(cursor, said))
    cursor.expect(")")
    least, confidence = said.get("least_percent", 0.0), said.get("confidence_percent", 95.0)
    return Tolerating(False, offset, least, confidence)


def tolerating_by_default(words: str, offset: int) -> Tolerating:
    """What a query tolerates that does not say so itself, by the words of a setting."""
    text = f"TOLERATE ({words})"
    said = tolerating_clause(Cursor(tokenize(text), text))
    return replace(said, offset=offset, is_unsaid=True)


def _part(cursor: Cursor, said: dict[str, float]) -> None:
    offset = cursor.offset
    if cursor.choice("SAMPLE AT LEAST or CONFIDENCE", "SAMPLE", "CONFIDENCE") == "SAMPLE":
        cursor.expect("AT", "LEAST")
        name = "least_percent"
    else:
        name = "confidence_percent"
    if name in said:
        raise StatementError("this is said twice", offset)
    said[name] = percent(cursor, below=100 if name == "confidence_percent" else None)


def percent(cursor: Cursor, below: float | None = None) -> float:
    """A number of PERCENT: more than 0, and at most 100 or less than a limit."""
    offset = cursor.offset
    number = float(cursor.number("a number of percent"))
    cursor.expect("PERCENT")
    if not 0 < number <= 100 or number == below:
        most = "at most 100" if below is None else f"less than {below:g}"
        raise StatementError(f"{number:g} PERCENT: it is more than 0 and {most}", offset)
    return number
