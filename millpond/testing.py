"""What every connector has to keep, as checks that a package with one of its own can run.

``check_source`` and ``check_sink`` raise an ``AssertionError`` that says what is not kept. They die
and go on at every place there is, as an engine with a store does.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.sinks import Results, Sink
from millpond.connectors.sources import (
    Declaration,
    OpenPages,
    Progress,
    Source,
    SourcePage,
    Taken,
    close_source,
)
from millpond.schema import Field, Schema, Type

Row = tuple[Hashable, ...]

RESULTS = Schema((Field("id", Type.BIGINT), Field("text", Type.STRING)))
"""The columns of the results that ``check_sink`` writes."""


def check_source(
    open_source: Callable[[Declaration], Source], declaration: Declaration, rows: int
) -> list[Row]:
    """Reads so many rows of a source, bad ones counted, goes on behind each of its pages and in the
    middle of them, and compares: nothing is lost, nothing comes twice. Returns the good rows.

    ``open_source`` opens it as for the first time; what it reads stays the same meanwhile.
    """
    pages = list(_read(open_source(declaration), Taken(), rows))
    whole = _counted(pages)
    _holds(whole.total() == rows, f"the source delivers {whole.total()} rows, not {rows}")
    for page in pages:
        _check_page(page, declaration)
    taken, before = Taken(), Counter[Row]()
    for page in pages:
        for part in _beginnings(page):
            _check_rest(open_source(declaration), _after(taken, part), before, part, whole)
        taken, before = _after(taken, page), before + _counted([page])
    return [row for page in pages for row in _rows(page.rows)]


def _read(source: Source, taken: Taken, rows: int) -> Iterator[SourcePage]:
    """Pages of a source until so many rows have come, or its end."""
    _holds(isinstance(source.ends, bool), "ends says whether there is an end")
    pages, left = OpenPages.of(source, taken), rows
    try:
        while left > 0 and (page := pages.behind(taken.rows, taken.bad)) is not None:
            taken, left = _after(taken, page), left - page.rows.num_rows - len(page.bad)
            yield page
        _holds(isinstance(source.progress(), Progress), "progress() is a Progress")
    finally:
        close_source(source)


def _after(taken: Taken, page: SourcePage) -> Taken:
    """What is taken with a page, as the log of a store gives it back."""
    rows, bad = taken.rows + page.rows.num_rows, taken.bad + len(page.bad)
    return Taken(rows, bad, json.loads(json.dumps(page.position)))


def _beginnings(page: SourcePage) -> Iterator[SourcePage]:
    """The page, and its first half as a limit on rows cuts it."""
    if page.rows.num_rows > 1:
        yield page.cut(page.rows.num_rows // 2)[0]
    yield page


def _check_rest(
    source: Source, taken: Taken, before: Counter[Row], part: SourcePage, whole: Counter[Row]
) -> None:
    """Whoever goes on behind a part gets all that it and those before have not brought."""
    had = before + _counted([part])
    missing = (whole - had).total()
    came = _counted(list(_read(source, taken, missing))) if missing else Counter[Row]()
    place = f"going on behind {taken.rows} rows"
    _holds(not (had + came - whole), f"{place}, {_some(had + came - whole)} comes twice")
    _holds(not (whole - had - came), f"{place}, {_some(whole - had - came)} is lost")


def _check_page(page: SourcePage, declaration: Declaration) -> None:
    wanted = arrow_schema(declaration.schema)
    _holds(page.rows.schema.equals(wanted), f"a page has {page.rows.schema}, not {wanted}")
    most = declaration.settings.page_rows
    _holds(page.rows.num_rows <= most, f"a page has {page.rows.num_rows} rows; {most} are the most")
    for bad in page.bad:
        is_told = bool(bad.offset and bad.reason) and isinstance(bad.raw, bytes)
        _holds(is_told, f"of a bad row offset, reason and bytes are told, not {bad}")
        _holds(0 <= bad.after <= page.rows.num_rows, f"{bad} is not in its page")


def check_sink(
    open_sink: Callable[[Results], Sink], read_ids: Callable[[], list[int]], pages: int = 5
) -> None:
    """Writes pages to a sink, dies after each write, before and after it is known to have
    succeeded, and goes on: each row is there once.

    ``read_ids`` reads the column ``id`` of what is there, as readers of the sink see it.
    """
    for dies_at in range(pages):
        for is_known in (False, True):
            _write_and_die(open_sink, pages, dies_at, is_known)
            found, wanted = Counter(read_ids()), Counter(range(2 * pages))
            place = f"after page {dies_at}, {'' if is_known else 'not '}known to be written"
            _holds(not (wanted - found), f"dying {place} loses {_some(wanted - found)}")
            _holds(not (found - wanted), f"dying {place}, {_some(found - wanted)} is there twice")


def _write_and_die(
    open_sink: Callable[[Results], Sink], pages: int, dies_at: int, is_known: bool
) -> None:
    sink, number = open_sink(Results("q", RESULTS)), 0
    mark = _mark(sink)
    while number < pages:
        _write(sink, number)
        if number == dies_at and not is_known:
            sink, dies_at = open_sink(Results("q", RESULTS, resume=mark)), -1
            continue  # the page comes again, with its number
        mark, number = _mark(sink), number + 1
        if number - 1 == dies_at:
            sink, dies_at = open_sink(Results("q", RESULTS, resume=mark)), -1
    sink.close()


def _mark(sink: Sink) -> Any:
    mark = getattr(sink, "mark", lambda: None)()
    _holds(mark is not None, "a sink for stores that last says by mark() what it contains")
    return json.loads(json.dumps(mark))


def _write(sink: Sink, number: int) -> None:
    ids = [2 * number, 2 * number + 1]
    types = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), *arrow_schema(RESULTS)])
    table = pa.table([[number, number], [1, 1], ids, [f"page {number}", None]], schema=types)
    numbered = getattr(sink, "write_numbered", None)
    if numbered is None:
        sink.write(table)
    else:
        numbered(table, number)


def _counted(pages: list[SourcePage]) -> Counter[Row]:
    """How often each row comes, and each bad one."""
    bad: list[Row] = [("bad", each.offset, each.raw) for page in pages for each in page.bad]
    return Counter([*(row for page in pages for row in _rows(page.rows)), *bad])


def _rows(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def _some(rows: Counter[Any]) -> str:
    return f"{next(iter(rows), None)!r}"


def _holds(is_so: bool, complaint: str) -> None:
    if not is_so:
        raise AssertionError(complaint)
