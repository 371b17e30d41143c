"""Queries: registered, listed, altered, dropped; and their results, endlessly."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from millpond.catalog import QueryEntry
from millpond.cql.text.split import split_statements
from millpond.entities.catalogued import quoted
from millpond.errors import CqlError, Position, StateError
from millpond.server.editing import LINES_ABOVE, Edit, edit, edited
from millpond.server.faults import RequestError
from millpond.server.formats import format_name, json_rows
from millpond.server.misshapen import Body
from millpond.server.progress import progress_charts
from millpond.server.replies import table_json
from millpond.server.result_columns import result_columns
from millpond.server.routes.common import (
    FAULTS,
    Descending,
    Done,
    Find,
    Name,
    Paged,
    Serving,
)
from millpond.server.service import Service
from millpond.server.streaming import ResultStream, Wish
from millpond.server.tables import (
    MEDIA_TYPES,
    FileFormat,
    as_rows,
    file_name,
    in_order,
    with_text,
    written,
)

router = APIRouter(prefix="/api/queries", tags=["queries"], responses=FAULTS)

TOLERANCE = r'^(EXACT|TOLERATE \([A-Za-z0-9_" .,]{1,200}\))$'
SEARCHED_RESULTS = 10_000
"""So many results are looked at when a text is looked for."""

MOST_EXPORTED = 1_000_000
"""So many elements of a stream are exported at most, the last ones."""

Sort = Annotated[str, Query(max_length=200, description="the column by which rows are ordered")]
Order = Literal["registered", "name", "results", "weight", "state"]
QUERY_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"


class NewQuery(Body):
    """A query to be registered."""

    name: str = Field(pattern=QUERY_NAME, examples=["big"])
    text: str = Field(max_length=100_000, examples=["SELECT a FROM S WHERE a > 1"])
    weight: float = Field(1.0, gt=0, lt=1e9, allow_inf_nan=False)
    active: bool = True
    on_error: Literal["stop", "skip"] = "stop"
    tolerates: str = Field(
        "EXACT", pattern=TOLERANCE, examples=["TOLERATE (CONFIDENCE 95 PERCENT)"]
    )


class EditedText(Body):
    """Another text of a query."""

    text: str = Field(max_length=100_000, examples=["SELECT a FROM S WHERE a > 2"])
    replace: bool = Field(False, description="replace the query, also where it could be altered")


class Changes(Body):
    """What is to change of a query."""

    weight: Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)] | None = None
    active: bool | None = None
    on_error: Literal["stop", "skip"] | None = None
    tolerates: Annotated[str, Field(pattern=TOLERANCE)] | None = None


def described(service: Service, entry: QueryEntry) -> dict[str, Any]:
    """A query with its control table."""
    values = service.engine.entities().get("query", entry.name).values()
    told = {
        "name": entry.name,
        "output": "stream" if entry.plan.is_stream else "relation",
        "columns": result_columns(entry),
        "warnings": [each.message for each in entry.warnings],
    }
    return told | values


@router.get("")
def list_queries(
    service: Serving,
    paged: Paged,
    find: Find = "",
    state: Annotated[Literal["active", "inactive", "failed", "waiting"] | None, Query()] = None,
    sort: Annotated[Order, Query(description="by what they are ordered")] = "registered",
    descending: Descending = False,
) -> list[dict[str, Any]]:
    """The registered queries, in pages; a short line each. ``find`` looks at names and texts."""
    engine = service.engine
    waiting = {each["query"] for each in service.waiting()} if state == "waiting" else set()
    with engine.held():
        failed = {failure.query: failure.error for failure in engine.failures()}

        def is_wanted(entry: QueryEntry) -> bool:
            is_in = state is None or state in (_state(entry, failed), _waits(entry, waiting))
            wanted = find.lower()
            return is_in and (wanted in entry.name.lower() or wanted in entry.text.lower())

        orders: dict[str, Callable[[QueryEntry], Any]] = {
            "name": lambda entry: entry.name.lower(),
            "results": lambda entry: engine.result_count(entry.name),
            "weight": lambda entry: entry.weight,
            "state": lambda entry: _state(entry, failed),
        }
        entries = [entry for entry in service.registered() if is_wanted(entry)]
        if sort in orders:
            entries.sort(key=orders[sort])
        if descending:
            entries.reverse()
        return [
            {
                "name": entry.name,
                "text": entry.text,
                "output": "stream" if entry.plan.is_stream else "relation",
                "state": _state(entry, failed),
                "error": failed.get(entry.name, ""),
                "weight": entry.weight,
                "results": engine.result_count(entry.name),
            }
            for entry in paged.of(entries)
        ]


def _waits(entry: QueryEntry, waiting: set[str]) -> str:
    return "waiting" if entry.name in waiting else ""


def _state(entry: QueryEntry, failed: dict[str, str]) -> str:
    return "failed" if entry.name in failed else "active" if entry.active else "inactive"


@router.post("", status_code=201)
def create_query(body: NewQuery, service: Serving) -> dict[str, Any]:
    """Registers a query; its results begin with what comes from now on."""
    parts = [f"CREATE QUERY {quoted(body.name)} WEIGHT {body.weight!r}"]
    parts += [] if body.active else ["INACTIVE"]
    parts += ["ON ERROR SKIP"] if body.on_error == "skip" else []
    parts += [body.tolerates] if "tolerates" in body.model_fields_set else []
    head = " ".join(parts) + " AS "
    if len(split_statements(body.text)) != 1:
        raise RequestError(400, "text is one SELECT, and nothing behind it")
    try:
        service.execute(head + body.text.strip().rstrip(";"))
    except CqlError as error:
        raise _moved(error, len(head)) from None
    return described(service, service.query(body.name))


def _moved(error: CqlError, columns: int) -> CqlError:
    """The error with its position in the text that was sent."""
    position = error.position
    if position is None or position.line != 1 or position.column <= columns:
        return error
    return CqlError(error.message, Position(1, position.column - columns))


@router.get("/{name}")
def show_query(name: Name, service: Serving) -> dict[str, Any]:
    """One query with its control table."""
    return described(service, service.query(name))


@router.patch("/{name}")
def alter_query(name: Name, body: Changes, service: Serving) -> dict[str, Any]:
    """Changes the weight, the activity, the error policy or the tolerance of a query."""
    entry = service.query(name)
    if body.weight is not None:
        service.execute(f"ALTER QUERY {quoted(entry.name)} SET WEIGHT {body.weight!r}")
    if body.active is not None:
        word = "ACTIVE" if body.active else "INACTIVE"
        service.execute(f"ALTER QUERY {quoted(entry.name)} SET {word}")
    if body.on_error is not None:
        service.execute(f"ALTER QUERY {quoted(entry.name)} ON ERROR {body.on_error.upper()}")
    if body.tolerates is not None:
        service.execute(f"ALTER QUERY {quoted(entry.name)} {body.tolerates}")
    return described(service, service.query(name))


@router.delete("/{name}")
def drop_query(name: Name, service: Serving) -> Done:
    """Drops a query; its readers are told that it ends."""
    entry = service.query(name)
    service.execute(f"DROP QUERY {quoted(entry.name)}")
    return Done(done=f"query {entry.name} dropped")


@router.post("/{name}/restart")
def restart_query(name: Name, service: Serving) -> Done:
    """Runs a query that has failed again, from now on."""
    entry = service.query(name)
    try:
        service.engine.restart(entry.name)
    except StateError as error:
        raise RequestError(409, str(error)) from None
    return Done(done=f"query {entry.name} restarted")


@router.get("/{name}/explain")
def explain_query(
    name: Name,
    service: Serving,
    stage: Literal["logical", "physical", "analyze", "reductions"] = "physical",
) -> dict[str, Any]:
    """The plan of a query; ``analyze``: with what was measured; ``reductions``: by what it could
    be reduced."""
    plan = service.engine.explain(service.query(name).name, stage)
    return {"query": plan.query, "stage": plan.stage, "plan": plan.text}


@router.get("/{name}/chart")
def chart_of_query(name: Name, service: Serving) -> dict[str, Any]:
    """The measured progress charts of a query, with their lower envelopes."""
    return {"charts": progress_charts(service.engine, service.query(name).name)}


@router.post("/{name}/difference")
def difference(name: Name, body: EditedText, service: Serving) -> dict[str, Any]:
    """How a query would become one of another text, and what differs; nothing is changed."""
    entry = service.query(name)
    with _about_text():
        return _told(edited(service, entry, body.text, body.replace))


@router.put("/{name}")
def edit_query(name: Name, body: EditedText, service: Serving) -> dict[str, Any]:
    """Makes a query one of another text: alters it where that will do, or replaces it."""
    entry = service.query(name)
    with _about_text():
        return _told(edit(service, entry, body.text, body.replace))


def _told(found: Edit) -> dict[str, Any]:
    return {
        "how": found.how,
        "meaning": found.meaning,
        "statements": list(found.statements),
        "difference": list(found.difference),
    }


@contextmanager
def _about_text() -> Iterator[None]:
    """Faults of the statements that replace a query are at their places in its text."""
    try:
        yield
    except CqlError as error:
        if error.position is None or error.position.line <= LINES_ABOVE:
            raise
        place = Position(error.position.line - LINES_ABOVE, error.position.column)
        raise CqlError(error.message, place) from None


@router.get("/{name}/present")
def present_content(
    name: Name,
    service: Serving,
    limit: Annotated[int, Query(ge=0, description="how many rows at most; 0: all of them")] = 0,
    offset: Annotated[int, Query(ge=0, le=2**53, description="how many are passed over")] = 0,
    find: Find = "",
    sort: Sort = "",
    descending: Descending = False,
) -> dict[str, Any]:
    """The content of a relation now, in order of its columns, and how many rows it has."""
    log = service.log(name)
    table, end = service.feeds.content(log.entry.name)
    found = with_text(table, find, first=2)
    if sort:
        found = in_order(found, sort, descending, first=2)
    part = found.slice(offset, limit or None)
    if part.num_rows > service.limits.answer_rows:
        raise RequestError(
            413, f"the relation has {part.num_rows:,} rows; give a limit, or follow its changes"
        )
    rows = list(json_rows(part, log.format_time))
    return {"id": str(end), "total": table.num_rows, "found": found.num_rows, "rows": rows}


@router.get("/{name}/latest")
def latest_results(
    name: Name,
    service: Serving,
    limit: Annotated[int, Query(ge=1, le=1_000, description="how many at most")] = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="only what is behind this id")] = 0,
    find: Find = "",
) -> dict[str, Any]:
    """The last results of a query, at most so many, in the order in which they came.

    With ``find`` those of the last 10,000 results that have this text in them.
    """
    log = service.log(name)
    table, end = service.feeds.latest(log, SEARCHED_RESULTS if find else limit, after)
    found = with_text(table, find, first=2)
    part = found.slice(max(0, found.num_rows - limit))
    return {"id": str(end), "rows": list(json_rows(part, log.format_time))}


@router.get(
    "/{name}/export",
    response_class=Response,
    responses={200: {"content": {media: {} for media in MEDIA_TYPES.values()}}},
)
def export(
    name: Name,
    service: Serving,
    form: Annotated[FileFormat, Query(alias="format")] = "csv",
    find: Find = "",
    sort: Sort = "",
    descending: Descending = False,
) -> Response:
    """The content of a relation, or the results of a stream that are kept, as a file."""
    log = service.log(name)
    if log.entry.plan.is_stream:
        table, _ = service.feeds.latest(log, MOST_EXPORTED, 0)
    else:
        table, _ = service.feeds.content(log.entry.name)
    found = with_text(table, find, first=2)
    if sort:
        found = in_order(found, sort, descending, first=2)
    headers = {"content-disposition": f'attachment; filename="{file_name(log.entry.name, form)}"'}
    data = written(as_rows(found, log), form)
    return Response(data, media_type=MEDIA_TYPES[form], headers=headers)


@router.get("/{name}/left_out")
def left_out(name: Name, service: Serving) -> dict[str, Any]:
    """What a query with ON ERROR SKIP has left out, with the reasons."""
    return table_json(service.engine.left_out(service.query(name).name, last_rows=1_000))


@router.get(
    "/{name}/results",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "results as they come",
            "content": {
                "application/x-ndjson": {},
                "text/event-stream": {},
                "application/xml": {},
                "application/vnd.apache.arrow.stream": {},
            },
        }
    },
)
async def results(
    request: Request,
    name: Name,
    service: Serving,
    form: Annotated[Literal["ndjson", "sse", "xml", "arrow"] | None, Query(alias="format")] = None,
    start: Annotated[
        str, Query(alias="from", max_length=64, description="now, oldest, present, or a time")
    ] = "now",
    follow: Annotated[bool, Query(description="go on as results come")] = True,
    hold: Annotated[bool, Query(description="have the engine wait for this reader")] = False,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> Response:
    """The results of a query: an endless response, or what is kept with follow=false."""
    wanted = format_name(form, request.headers.get("accept", ""))
    begin = f"id:{last_event_id}" if last_event_id else start
    log = service.log(name)
    service.feeds.refuse_too_many()
    stream = await asyncio.to_thread(
        ResultStream, service.feeds, log, Wish(wanted, begin, follow, hold)
    )
    return StreamingResponse(
        stream.body(), media_type=stream.media_type, headers={"cache-control": "no-store"}
    )
