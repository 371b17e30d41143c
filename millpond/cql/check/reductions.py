"""EXPLAIN REDUCTIONS: by what a query could be reduced, and why not by what else."""

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from millpond.catalog import Catalog, QueryEntry, RelationEntry, ViewEntry
from millpond.cql.check.reducing import reduced
from millpond.cql.text.from_clause import FromItem
from millpond.cql.text.lengths import number_of, ticks_of
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.text.reducing import from_items, sample_percent, source_name, window_kind
from millpond.cql.text.syntax import CreateQueryStatement, Name, Reduction
from millpond.settings import format_duration

SOME_PERCENT = "10"
"""So much of a stream is offered to be kept that is no sample."""
_TRIED = "RANGE 1"
"""A window is tried with that where there is none; how long it is to be is said by who wants it."""


def told_reductions(entry: QueryEntry, catalog: Catalog) -> Iterator[str]:
    """What EXPLAIN REDUCTIONS says of a query."""
    syntax = parse_statement(entry.text)
    if not isinstance(syntax, CreateQueryStatement):
        return
    offered, refused = list[str](), list[str]()
    for reduction, said in _candidates(syntax, catalog):
        reason = _reason(entry, syntax, reduction, catalog)
        if reason:
            refused.append(f"  {said}: {reason}")
        else:
            offered.append(f"  {said}")
    yield (
        "can be reduced, by CREATE QUERY … REDUCED TO (…) AS …, with:"
        if offered
        else ("nothing can be reduced")
    )
    yield from offered
    if refused:
        yield "cannot be reduced with:"
        yield from refused


def _reason(
    entry: QueryEntry, syntax: CreateQueryStatement, reduction: Reduction, catalog: Catalog
) -> str:
    """Why a query cannot be reduced so; nothing if it can."""
    if entry.tolerates is not None and reduction.kind == "SAMPLE":
        return "what the query TOLERATEs says how small its sample may be"
    wanted = replace(syntax, reductions=(reduction,))
    try:
        reduced(wanted, catalog, StatementText(entry.text, entry.position))
    except StatementError as error:
        return error.message.removeprefix(f"REDUCED TO {reduction}: ")
    return ""


def _candidates(syntax: CreateQueryStatement, catalog: Catalog) -> Iterator[tuple[Reduction, str]]:
    """What could be said of the streams in FROM, and how."""
    items = from_items(syntax.query)
    for item in sorted(items, key=lambda each: int(each.meta["end"])):
        if source_name(item) and not _is_relation(item, catalog):
            if window_kind(item) == "UNBOUNDED":
                name = Name(source_name(item), 0)
                yield Reduction("WINDOW", name, _TRIED, 0), f"WINDOW OF {name.text} = RANGE …"
            for each in (*_of_window(item, catalog), *_of_sample(item)):
                yield each, str(each)


def _is_relation(item: FromItem, catalog: Catalog) -> bool:
    named = item.this if isinstance(item.this, exp.Identifier) else None
    entry = None if named is None else catalog.get(named.name)
    is_view = isinstance(entry, ViewEntry) and not entry.plan.is_stream
    is_plain = named is None and not (item.args.get("window") or item.args.get("sample"))
    return is_plain or is_view or isinstance(entry, RelationEntry)


def _of_window(item: FromItem, catalog: Catalog) -> Iterator[Reduction]:
    """Half of a window."""
    kind, name = window_kind(item), Name(source_name(item), 0)
    if kind == "ROWS":
        rows = int(number_of(item.args["window"].args["length"])) // 2
        if rows:
            yield Reduction("WINDOW", name, f"ROWS {rows}", 0)
    elif kind == "RANGE":
        length, tick = item.args["window"].args["length"], catalog.tick_microseconds
        half = ticks_of(length, tick) // 2
        said = format_duration(half * tick).upper() if length.args.get("unit") else str(half)
        if half:
            yield Reduction("WINDOW", name, f"RANGE {said}", 0)


def _of_sample(item: FromItem) -> Iterator[Reduction]:
    """Half of a sample, a sample where there is none, and samples inside of it."""
    name, percent = Name(source_name(item), 0), sample_percent(item)
    smaller = SOME_PERCENT if percent is None else f"{float(percent) / 2:g}"
    yield Reduction("SAMPLE", name, smaller, 0)
    if percent is not None and not isinstance(item.this, exp.Identifier):
        for inner in from_items(item.this):
            if source_name(inner):
                yield Reduction("SAMPLE", name, "", 0, Name(source_name(inner), 0))
