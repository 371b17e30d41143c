"""Streams and relations: declared, listed, fed, dropped."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from millpond.catalog import RelationEntry, StreamEntry, kind_of
from millpond.cql.statements import Create
from millpond.entities.catalogued import quoted
from millpond.server.faults import RequestError, not_found
from millpond.server.ingest import rows_of_body
from millpond.server.misshapen import Body
from millpond.server.replies import table_json
from millpond.server.routes.common import FAULTS, CqlText, Done, Name, Serving
from millpond.server.service import Service

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


def described(service: Service, entry: StreamEntry | RelationEntry) -> dict[str, Any]:
    """A stream or relation with its control table."""
    values = service.engine.entities().get(kind_of(entry), entry.name).values()
    columns = [{"name": f.name, "type": str(f.type)} for f in entry.schema.fields]
    return {"name": entry.name, **values, "columns": columns}


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
    return await run_in_threadpool(_push, service, name, body, kind, key)


# -- streams -------------------------------------------------------------------------------


@router.get("/streams")
def list_streams(service: Serving) -> list[dict[str, Any]]:
    """All streams."""
    return [described(service, each) for each in service.engine.catalog.of_kind(StreamEntry)]


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
    """The last tuples that broke a constraint, as they came, with its name."""
    return table_json(service.engine.violating(service.stream(name).name, last_rows=1_000))


# -- relations -----------------------------------------------------------------------------


@router.get("/relations")
def list_relations(service: Serving) -> list[dict[str, Any]]:
    """All relations."""
    return [described(service, each) for each in service.engine.catalog.of_kind(RelationEntry)]


@router.post("/relations", status_code=201)
def create_relation(body: CqlText, service: Serving) -> dict[str, Any]:
    """Declares a relation: ``CREATE RELATION …``."""
    return _create(service, body.text, "relation")


@router.get("/relations/{name}")
def show_relation(name: Name, service: Serving) -> dict[str, Any]:
    """One relation with its control table."""
    return described(service, service.relation(name))


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
