"""REDUCED TO: which windows of a query are shorter, and which of its streams are sampled."""

from dataclasses import dataclass

from sqlglot import exp

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.from_clause import FromItem, Window
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import CreateQueryStatement, Reduction

KINDS = ("WINDOW", "SAMPLE")


def reduced_clause(cursor: Cursor) -> tuple[Reduction, ...]:
    """REDUCED TO (WINDOW OF s = RANGE l | ROWS n, SAMPLE OF s = n PERCENT | PUSHED TO t, …)."""
    cursor.expect("REDUCED", "TO", "(")
    found = cursor.several(lambda: _reduction(cursor))
    cursor.expect(")")
    seen = set[tuple[str, str]]()
    for each in found:
        key = (each.kind, each.source.text.lower())
        if key in seen:
            raise StatementError(f"{each.kind} OF {each.source.text} is said twice", each.offset)
        seen.add(key)
    return found


def _reduction(cursor: Cursor) -> Reduction:
    offset = cursor.offset
    kind = cursor.choice("WINDOW or SAMPLE", *KINDS)
    cursor.expect("OF")
    source = cursor.name("the name or alias of a stream in FROM")
    if kind == "SAMPLE" and cursor.accept("PUSHED", "TO"):
        target = cursor.name("the name or alias of a stream in the FROM of the subquery")
        return Reduction(kind, source, "", offset, target)
    cursor.expect("=")
    if kind == "SAMPLE":
        return Reduction(kind, source, _percent(cursor), offset)
    word = cursor.choice("RANGE or ROWS", "RANGE", "ROWS")
    length = cursor.duration("a length")
    unit = "" if length.unit is None else f" {length.unit.text}"
    return Reduction(kind, source, f"{word} {length.number}{unit}", offset)


def _percent(cursor: Cursor) -> str:
    offset = cursor.offset
    number = cursor.number("a number of percent")
    cursor.expect("PERCENT")
    if not 0 < float(number) <= 100:
        raise StatementError(f"{number} PERCENT: it is more than 0 and at most 100", offset)
    return number


@dataclass(frozen=True)
class Splice:
    """A piece of a text, and what stands there instead."""

    first: int
    last: int
    text: str


def _at(place: tuple[int, int], text: str) -> Splice:
    return Splice(place[0], place[1], text)


def spliced(syntax: CreateQueryStatement, splices: list[Splice]) -> str:
    """The text of a query with other pieces; offsets are those of its statement."""
    text = syntax.text
    for each in sorted(splices, key=lambda one: one.first, reverse=True):
        first, last = each.first - syntax.offset, each.last - syntax.offset
        text = text[:first] + each.text + text[last:]
    return text


def from_items(query: exp.Expr) -> list[FromItem]:
    """What stands in the FROMs of a query, its subqueries too, in an order that their windows and
    samples do not change."""
    return [node for node in query.walk() if isinstance(node, FromItem)]


def source_name(item: FromItem) -> str:
    """What an item of FROM is called in its query; nothing if it has no name."""
    alias = item.args.get("alias")
    named = item.this if alias is None else alias
    return str(named.name) if isinstance(named, exp.Identifier) else ""


def window_splice(item: FromItem, length: str) -> Splice:
    """Has an item have a window of a length, which is of the kind it has already, if it has one."""
    window, end = item.args.get("window"), item.meta["end"]
    if window is None:
        return Splice(end, end, f" [{length}]")
    if window.args["kind"] == "UNBOUNDED":
        return _at(window.meta["kind_text"], length)
    return _at(window.args["length"].meta["text"], length.partition(" ")[2])


def window_kind(item: FromItem) -> str:
    """The kind of window that an item has; UNBOUNDED if it says none."""
    window: Window | None = item.args.get("window")
    return "UNBOUNDED" if window is None else str(window.args["kind"])


def sample_splice(item: FromItem, percent: str) -> Splice:
    """Has an item be a sample, which is smaller than the one it is already, if it is one."""
    sample, end = item.args.get("sample"), item.meta["end"]
    if sample is None:
        return Splice(end, end, f" SAMPLE({percent})")
    return _at(item.meta["sample_text"], f"SAMPLE({percent})")


def no_sample(item: FromItem) -> Splice:
    """Has an item be no sample, and a stream as before."""
    is_windowed = item.args.get("window") is not None
    return _at(item.meta["sample_text"], "" if is_windowed else "[UNBOUNDED]")


def sample_percent(item: FromItem) -> str | None:
    """How many percent an item is a sample of, as written; None if it is none."""
    sample = item.args.get("sample")
    return None if sample is None else str(sample.this)
