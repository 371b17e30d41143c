"""REDUCED TO: a query becomes one of shorter windows and smaller samples, which is exact.

Section 5.1 of the STREAM paper. What it becomes is the query of another text, which is shown,
shared and recovered like any other. A reduction is refused where rows would come that the query as
it was written does not have (``reduced_rows``), and where it reduces nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from millpond.catalog import Catalog
from millpond.cql.check.queries import QueryAnalyser, WholeQuery
from millpond.cql.check.reduced_rows import Reducing
from millpond.cql.text.from_clause import FromItem
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.text.reducing import (
    Splice,
    from_items,
    no_sample,
    sample_percent,
    sample_splice,
    source_name,
    spliced,
    window_kind,
    window_splice,
)
from millpond.cql.text.syntax import CreateQueryStatement, Name, Reduction


@dataclass(frozen=True)
class ReducedQuery:
    """What a query is when all that was said has been done."""

    syntax: CreateQueryStatement
    whole: WholeQuery
    reduced: tuple[str, ...]
    """What was reduced, in words."""


def reduced(syntax: CreateQueryStatement, catalog: Catalog, text: StatementText) -> ReducedQuery:
    """A query as REDUCED TO says it, one reduction after another; without any it is as written."""
    made = ReducedQuery(syntax, QueryAnalyser(catalog, text).whole(syntax.query), ())
    for each in syntax.reductions:
        made = _once(made, each, catalog, text)
    return made


def _once(
    made: ReducedQuery, reduction: Reduction, catalog: Catalog, text: StatementText
) -> ReducedQuery:
    """A query with one reduction more."""
    query = made.syntax.query.copy()
    places, splices = _changes(from_items(query), reduction)
    words = spliced(made.syntax, splices)
    anew = _parsed(words, reduction)
    _grafted(query, anew.query, places, reduction.offset)
    try:
        whole = QueryAnalyser(catalog, text).whole(query)
    except StatementError as error:
        raise _refusal(reduction, error.message) from None
    reason = Reducing(reduction, catalog).refusal(made.whole.plan, whole.plan)
    if reason:
        raise _refusal(reduction, reason)
    return _with_text(made, query, anew, whole, reduction)


def _with_text(
    made: ReducedQuery,
    query: exp.Expr,
    anew: CreateQueryStatement,
    whole: WholeQuery,
    reduction: Reduction,
) -> ReducedQuery:
    """The query that was found. Places of what is spliced next are those of its new text."""
    for old, new in zip(from_items(query), from_items(anew.query), strict=True):
        old.meta.update({key: new.meta[key] for key in _PLACES if key in new.meta})
        for part in ("window", "sample"):
            _take_places(old.args.get(part), new.args.get(part))
    syntax = replace(made.syntax, query=query, text=anew.text, offset=anew.offset)
    return ReducedQuery(syntax, whole, (*made.reduced, str(reduction)))


_PLACES = ("end", "sample_text")


def _take_places(old: exp.Expr | None, new: exp.Expr | None) -> None:
    if old is None or new is None:
        return
    if "kind_text" in new.meta:
        old.meta["kind_text"] = new.meta["kind_text"]
    length = new.args.get("length")
    if length is not None and old.args.get("length") is not None:
        old.args["length"].meta["text"] = length.meta["text"]


def _refusal(reduction: Reduction, reason: str) -> StatementError:
    return StatementError(f"REDUCED TO {reduction}: {reason}", reduction.offset)


def _parsed(words: str, reduction: Reduction) -> CreateQueryStatement:
    try:
        syntax = parse_statement(words)
    except StatementError as error:
        raise _refusal(reduction, error.message) from None
    if not isinstance(syntax, CreateQueryStatement):
        raise _refusal(reduction, "this is no query any more")
    return syntax


def _grafted(query: exp.Expr, anew: exp.Expr, places: list[int], offset: int) -> None:
    """Has windows and samples of one text stand in the syntax of another; faults in them are those
    of what stands at an offset."""
    old, new = from_items(query), from_items(anew)
    for place in places:
        mine, other = old[place], new[place]
        for node in (other.args.get("window"), other.args.get("sample")):
            for each in () if node is None else node.walk():
                if "start" in each.meta:
                    each.meta["start"] = offset
        window, found = mine.args.get("window"), other.args.get("window")
        if window is None or found is None:
            mine.set("window", found)
        else:  # what it says beside its length has its own places
            window.set("kind", found.args["kind"])
            window.set("length", found.args.get("length"))
        mine.set("sample", other.args.get("sample"))


# -- what a reduction changes in the text ------------------------------------------------------


def _changes(items: list[FromItem], reduction: Reduction) -> tuple[list[int], list[Splice]]:
    """Which items a reduction changes, and how their text."""
    place = _place(items, reduction, reduction.source)
    item = items[place]
    if reduction.target is not None:
        return _pushed(items, place, reduction, reduction.target)
    if reduction.kind == "SAMPLE":
        return [place], [sample_splice(item, reduction.amount)]
    kind = window_kind(item)
    if kind not in ("UNBOUNDED", reduction.amount.partition(" ")[0]):
        raise _refusal(
            reduction, f"the window is {kind}, and a shorter one is of the same kind; {_LEAVE}"
        )
    return [place], [window_splice(item, reduction.amount)]


_LEAVE = "leave this out"


def _pushed(
    items: list[FromItem], place: int, reduction: Reduction, target: Name
) -> tuple[list[int], list[Splice]]:
    """A sample of a subquery becomes one of a stream in its FROM."""
    item, percent = items[place], sample_percent(items[place])
    if percent is None:
        raise _refusal(reduction, f'"{reduction.source.text}" has no SAMPLE that could be pushed')
    inner = from_items(item.this) if isinstance(item.this, exp.Expr) else []
    if not inner:
        raise _refusal(
            reduction,
            f'"{reduction.source.text}" is no subquery that stands here; samples are pushed into '
            "subqueries",
        )
    found = inner[_place(inner, reduction, target)]
    own = sample_percent(found)
    smaller = percent if own is None else f"{float(own) * float(percent) / 100:g}"
    number = next(at for at, each in enumerate(items) if each is found)
    return [place, number], [no_sample(item), sample_splice(found, smaller)]


def _place(items: list[FromItem], reduction: Reduction, name: Name) -> int:
    """The number of the item that a reduction names."""
    names = [source_name(item).lower() for item in items]
    count = names.count(name.text.lower())
    if count == 1:
        return names.index(name.text.lower())
    if count:
        raise StatementError(
            f'REDUCED TO {reduction}: "{name.text}" stands {count} times in FROM; give each an '
            "alias",
            name.offset,
        )
    known = ", ".join(sorted({source_name(item) for item in items} - {""})) or "none"
    raise StatementError(
        f'REDUCED TO {reduction}: no "{name.text}" in FROM; there are: {known}', name.offset
    )
