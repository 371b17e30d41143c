"""EXACT and TOLERATE: whether a query may be answered from a sample, and how small that may be."""

from dataclasses import replace

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import Tolerating
from millpond.cql.text.tokens import tokenize
from millpond.settings import parse_bytes

_MEMORY = "an amount of memory such as 512 KB or 4 MB"


def tolerating_clause(cursor: Cursor) -> Tolerating:
    """EXACT, or TOLERATE (SAMPLE AT LEAST n PERCENT, ERROR n [PERCENT], CONFIDENCE n PERCENT, FALSE
    NEGATIVES n PERCENT, FALSE POSITIVES n PERCENT, SHED BY column, WINDOW AT LEAST RANGE length,
    MEMORY amount), each at most once."""
    offset = cursor.offset
    if cursor.accept("EXACT"):
        return Tolerating(True, offset)
    cursor.expect("TOLERATE", "(")
    said, seen = Tolerating(False, offset), set[str]()
    while True:
        said = _with_part(cursor, said, seen)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    if said.window_bytes is not None and said.shortest is None:
        raise StatementError(
            "MEMORY is that of a window which may be shortened: write WINDOW AT LEAST RANGE length "
            "beside it, or leave it out",
            offset,
        )
    return said


def tolerating_by_default(words: str, offset: int) -> Tolerating:
    """What a query tolerates that does not say so itself, by the words of a setting."""
    text = f"TOLERATE ({words})"
    said = tolerating_clause(Cursor(tokenize(text), text))
    return replace(said, offset=offset, is_unsaid=True)


def _with_part(cursor: Cursor, said: Tolerating, seen: set[str]) -> Tolerating:
    offset = cursor.offset
    words = ("SAMPLE", "ERROR", "CONFIDENCE", "FALSE", "SHED", "WINDOW", "MEMORY")
    wanted = (
        "SAMPLE AT LEAST, ERROR, CONFIDENCE, FALSE NEGATIVES or POSITIVES, SHED BY, WINDOW AT "
        "LEAST or MEMORY"
    )
    kind = cursor.choice(wanted, *words)
    if kind == "FALSE":
        kind = cursor.choice("NEGATIVES or POSITIVES", "NEGATIVES", "POSITIVES")
    if kind in seen:
        raise StatementError("this is said twice", offset)
    seen.add(kind)
    if kind == "ERROR":
        error = _error(cursor)
        is_relative = cursor.accept("PERCENT")
        return replace(said, error=error, is_relative=is_relative, is_of_samples=True)
    if kind == "SHED":
        cursor.expect("BY")
        return replace(said, shed_by=cursor.name("a column of the stream"))
    if kind == "NEGATIVES":
        return replace(said, false_negatives=_false_percent(cursor, "NEGATIVES"))
    if kind == "POSITIVES":
        return replace(said, false_positives=_false_percent(cursor, "POSITIVES"))
    if kind == "CONFIDENCE":
        return replace(said, confidence_percent=percent(cursor, below=100))
    if kind == "MEMORY":
        return replace(said, window_bytes=_bytes(cursor))
    cursor.expect("AT", "LEAST")
    if kind == "WINDOW":
        cursor.expect("RANGE")
        return replace(said, shortest=cursor.duration("a length"))
    return replace(said, least_percent=percent(cursor), is_of_samples=True)


def _bytes(cursor: Cursor) -> int:
    """An amount of memory."""
    offset = cursor.offset
    number = cursor.number(_MEMORY)
    unit = cursor.name("a unit of memory").text if cursor.word() not in (",", ")") else ""
    try:
        return parse_bytes(f"{number} {unit}")
    except ValueError as error:
        raise StatementError(f"MEMORY {number} {unit}: it is {error}", offset) from None


def _error(cursor: Cursor) -> float:
    offset = cursor.offset
    number = float(cursor.number("how far bounds may be from answers"))
    if not 0 < number < float("inf"):
        raise StatementError(f"ERROR {number:g}: it is more than 0; or write EXACT", offset)
    return number


def _false_percent(cursor: Cursor, kind: str) -> float:
    """How many rows may be missing, or wrong, for each hundred that are delivered and right, or
    that are delivered."""
    offset = cursor.offset
    number = float(cursor.number("a number of percent"))
    cursor.expect("PERCENT")
    if kind == "NEGATIVES" and not 0 < number < float("inf"):
        said = "it is more than 0, for each hundred that are delivered; or write EXACT"
        raise StatementError(f"FALSE NEGATIVES {number:g} PERCENT: {said}", offset)
    if kind == "POSITIVES" and not 0 <= number < 100:
        said = "it is from 0 to less than 100, of what is delivered"
        raise StatementError(f"FALSE POSITIVES {number:g} PERCENT: {said}", offset)
    return number


def percent(cursor: Cursor, below: float | None = None) -> float:
    """A number of PERCENT: more than 0, and at most 100 or less than a limit."""
    offset = cursor.offset
    number = float(cursor.number("a number of percent"))
    cursor.expect("PERCENT")
    if not 0 < number <= 100 or number == below:
        most = "at most 100" if below is None else f"less than {below:g}"
        raise StatementError(f"{number:g} PERCENT: it is more than 0 and {most}", offset)
    return number
