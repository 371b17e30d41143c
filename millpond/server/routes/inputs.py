"""Streams and relations: declared, listed, fed, dropped."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from millpond.catalog import RelationEntry, StreamEntry, kind_of
from millpond.cql.statements import Create
from millpond.entities.catalogued import quoted
from millpond.server.faults import RequestError, not_found
from millpond.server.formats import json_rows
from millpond.server.ingest import rows_of_body
from millpond.server.looking_in import content, last_tuples, readers
from millpond.server.misshapen import Body
from millpond.server.replies import table_json
from millpond.server.routes.common import (
    FAULTS,
    CqlText,
    Descending,
    Done,
    Find,
    Name,
    Paged,
    Serving,
)
from millpond.server.service import Service
from millpond.server.tables import in_order, with_text

router = APIRouter(prefix="/api", tags=["inputs"], responses=FAULTS)

BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string"}},
        },
    }
}

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", description="a repeated request with the same key is done once"
    ),
]


class Pushed(BaseModel):
    """How many rows were taken, and how many of them were too late."""

    rows: int
    late: int = Field(default=0, description="how many came behind the heartbeat; see …/late")
    repeated: bool = Field(default=False, description="whether a request before has brought them")


class Promise(Body):
    """A heartbeat."""

    time: int | str = Field(examples=["2026-01-01T00:00:00"])


class Punctuation(Body):
    """What will not follow in a stream."""

    where: str = Field(examples=["order_id <= 7 AND region IN ('a', 'b')"])
    on_violation: Literal["stop", "count"] = Field(
        default="stop", description="what becomes of queries that rely on it if a tuple does follow"
    )


def described(service: Service, entry: StreamEntry | RelationEntry) -> dict[str, Any]:
    """A stream or relation with its control table."""
    values = service.engine.entities().get(kind_of(entry), entry.name).values()
    return {"kind": kind_of(entry), "name": entry.name, **values, "columns": _columns(entry)}


def _columns(entry: StreamEntry | RelationEntry) -> list[dict[str, str]]:
    """The columns of an input: their names, types, and what they are there for."""
    is_stream = isinstance(entry, StreamEntry)
    special = (entry.timestamp_column,) if isinstance(entry, StreamEntry) else entry.key
    role = "time" if is_stream else "key"
    return [
        {"name": f.name, "type": str(f.type), "role": role if place in special else ""}
        for place, f in enumerate(entry.schema.fields)
    ]


def _create(service: Service, text: str, kind: str) -> dict[str, Any]:
    statements = list(service.checked(text))
    entry = getattr(statements[0].action, "entry", None) if len(statements) == 1 else None
    if len(statements) != 1 or not isinstance(statements[0].action, Create):
        raise RequestError(400, f"give one CREATE {kind.upper()}")
    if entry is None or kind_of(entry) != kind:
        raise RequestError(400, f"give one CREATE {kind.upper()}")
    service.execute(text)
    return described(service, service.entry(entry.name, kind))


def _push(service: Service, name: str, body: bytes, kind: str, key: str | None) -> Pushed:
    """Takes the rows of a body, all or none."""
    entry = service.engine.catalog.get(name)
    if not isinstance(entry, StreamEntry | RelationEntry):
        raise not_found(f'"{name}" was dropped')
    rows = rows_of_body(body, kind, entry.schema, service.limits.unpacked_bytes)
    count = rows.num_rows if hasattr(rows, "num_rows") else len(rows)
    if key is None:
        return Pushed(rows=count, late=service.engine.push(name, rows))
    with service.keys.used(name, key, body) as whole:
        is_new = service.engine.inputs.is_new(name, whole)
        late = service.engine.push(name, rows, key=whole)
    return Pushed(rows=count, late=late, repeated=not is_new)


async def _pushed(request: Request, service: Service, name: str, key: str | None) -> Pushed:
    body = await request.body()
    kind = request.headers.get("content-type", "")
    with service.engine.traced(request.headers):
        return await run_in_threadpool(_push, service, name, body, kind, key)


# -- both ----------------------------------------------------------------------------------


@router.get("/inputs")
def list_inputs(
    service: Serving,
    paged: Paged,
    find: Find = "",
    sort: Annotated[Literal["declared", "name", "rate"], Query()] = "declared",
    descending: Descending = False,
) -> list[dict[str, Any]]:
    """Streams and relations, in pages; ``find`` looks at their names and columns."""
    engine, wanted = service.engine, find.lower()
    with engine.held():
        entries = [
            entry
            for kind in (StreamEntry, RelationEntry)
            for entry in engine.catalog.of_kind(kind)
            if any(wanted in name.lower() for name in (entry.name, *entry.schema.names))
        ]
        orders: dict[str, Callable[[Any], Any]] = {
            "name": lambda entry: entry.name.lower(),
            "rate": lambda entry: engine.inputs.queues_of(entry.name)[0].arrivals.per_second(),
        }
        if sort in orders:
            entries.sort(key=orders[sort])
        if descending:
            entries.reverse()
        return [described(service, entry) for entry in paged.of(entries)]


@router.get("/inputs/{name}/readers")
def list_readers(
    name: Name, service: Serving, paged: Paged, find: Find = ""
) -> list[dict[str, str]]:
    """Who reads a stream or relation: views and queries, in pages."""
    found = readers(service.engine, _input(service, name).name)
    return list(paged.of([each for each in found if find.lower() in each["name"].lower()]))


def _input(service: Service, name: str) -> StreamEntry | RelationEntry:
    entry = service.engine.catalog.get(name)
    if not isinstance(entry, StreamEntry | RelationEntry) or name.lower() != entry.name.lower():
        raise not_found(f'no stream or relation "{name[:100]}"')
    return entry


# -- streams -------------------------------------------------------------------------------


@router.get("/streams")
def list_streams(service: Serving, paged: Paged) -> list[dict[str, Any]]:
    """The streams, in pages."""
    entries = list(service.engine.catalog.of_kind(StreamEntry))
    return [described(service, each) for each in paged.of(entries)]


@router.post("/streams", status_code=201)
def create_stream(body: CqlText, service: Serving) -> dict[str, Any]:
    """Declares a stream: ``CREATE STREAM …``."""
    return _create(service, body.text, "stream")


@router.get("/streams/{name}")
def show_stream(name: Name, service: Serving) -> dict[str, Any]:
    """One stream with its control table."""
    return described(service, service.stream(name))


@router.delete("/streams/{name}")
def drop_stream(name: Name, service: Serving) -> Done:
    """Drops a stream that nobody reads."""
    entry = service.stream(name)
    service.execute(f"DROP STREAM {quoted(entry.name)}")
    return Done(done=f"stream {entry.name} dropped")


@router.post("/streams/{name}/tuples", openapi_extra=BODY)
async def push_tuples(request: Request, name: Name, service: Serving, key: Key = None) -> Pushed:
    """Takes tuples: JSON lines, a JSON list, CSV or Arrow; all of a body or nothing."""
    return await _pushed(request, service, service.stream(name).name, key)


@router.post("/streams/{name}/advance")
def advance(name: Name, body: Promise, service: Serving) -> Done:
    """Promises that nothing at or before a time will follow."""
    entry = service.stream(name)
    service.engine.advance(entry.name, body.time)
    return Done(done=f"stream {entry.name} is complete up to {body.time}")


@router.post("/streams/{name}/punctuate")
def punctuate(name: Name, body: Punctuation, service: Serving) -> Done:
    """Promises that no tuple that comes later matches a pattern."""
    entry = service.stream(name)
    service.engine.punctuate(entry.name, body.where, on_violation=body.on_violation)
    return Done(done=f"nothing follows in stream {entry.name} with {body.where}")


@router.get("/streams/{name}/last")
def last_of_stream(
    name: Name, service: Serving, limit: Annotated[int, Query(ge=1, le=100)] = 50
) -> dict[str, Any]:
    """The tuples that came last, the last one first, whether or not they are still retained."""
    entry = service.stream(name)
    return {"columns": _columns(entry), "rows": last_tuples(service.engine, entry, limit)}


@router.get("/streams/{name}/late")
def late_tuples(name: Name, service: Serving) -> dict[str, Any]:
    """The last tuples that came too late, as they came."""
    return table_json(service.engine.late(service.stream(name).name, last_rows=1_000))


@router.get("/streams/{name}/bad_rows")
def bad_rows(name: Name, service: Serving) -> dict[str, Any]:
    """The last rows that the stream's source could not read, where ON BAD ROW puts them aside."""
    return table_json(service.engine.bad_rows(service.stream(name).name, last_rows=1_000))


@router.get("/streams/{name}/violating")
def violating_tuples(name: Name, service: Serving) -> dict[str, Any]:
    """The last tuples that broke a constraint or contradicted a punctuation, each with its name and
    the queries that went on without the tuple."""
    return table_json(service.engine.violating(service.stream(name).name, last_rows=1_000))


# -- relations -----------------------------------------------------------------------------


@router.get("/relations")
def list_relations(service: Serving, paged: Paged) -> list[dict[str, Any]]:
    """The relations, in pages."""
    entries = list(service.engine.catalog.of_kind(RelationEntry))
    return [described(service, each) for each in paged.of(entries)]


@router.post("/relations", status_code=201)
def create_relation(body: CqlText, service: Serving) -> dict[str, Any]:
    """Declares a relation: ``CREATE RELATION …``."""
    return _create(service, body.text, "relation")


@router.get("/relations/{name}")
def show_relation(name: Name, service: Serving) -> dict[str, Any]:
    """One relation with its control table."""
    return described(service, service.relation(name))


@router.get("/relations/{name}/content")
def content_of_relation(
    name: Name,
    service: Serving,
    limit: Annotated[int, Query(ge=1, le=1_000, description="how many rows at most")] = 100,
    offset: Annotated[int, Query(ge=0, le=2**53, description="how many are passed over")] = 0,
    find: Find = "",
    sort: Annotated[str, Query(max_length=200, description="the column it is ordered by")] = "",
    descending: Descending = False,
) -> dict[str, Any]:
    """The rows of a relation now, and how many there are."""
    entry = service.relation(name)
    table = content(service.engine, entry)
    found = with_text(table, find, first=2)
    if sort:
        found = in_order(found, sort, descending, first=2)
    rows = list(json_rows(found.slice(offset, limit), lambda _: None))
    return {
        "columns": _columns(entry),
        "total": table.num_rows,
        "found": found.num_rows,
        "rows": [{"weight": each["weight"], "row": each["row"]} for each in rows],
    }


@router.delete("/relations/{name}")
def drop_relation(name: Name, service: Serving) -> Done:
    """Drops a relation that nobody reads."""
    entry = service.relation(name)
    service.execute(f"DROP RELATION {quoted(entry.name)}")
    return Done(done=f"relation {entry.name} dropped")


@router.post("/relations/{name}/rows", openapi_extra=BODY)
async def push_rows(request: Request, name: Name, service: Serving, key: Key = None) -> Pushed:
    """Puts rows into a relation, at the present time."""
    return await _pushed(request, service, service.relation(name).name, key)
