"""Entities and their control tables, the plan, queues that are watched."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import Field

from millpond.entities import Entity
from millpond.errors import MillpondError, StateError
from millpond.server import plan_xml
from millpond.server.faults import RequestError, not_found
from millpond.server.formats import dumps
from millpond.server.misshapen import Body
from millpond.server.plan_folding import Wish
from millpond.server.plan_graph import dot, plan_graph, queries_of_box, svg
from millpond.server.replies import Json
from millpond.server.routes.common import FAULTS, Done, Find, Paged, Serving
from millpond.server.service import Service
from millpond.server.watching import Watcher

router = APIRouter(prefix="/api", tags=["control"], responses=FAULTS)

Kind = Annotated[str, Path(max_length=50, examples=["query"])]
EntityName = Annotated[str, Path(max_length=200)]
AttributeName = Annotated[str, Path(max_length=100)]

Fold = Annotated[bool, Query(description="operators that do the same are one box")]
Opened = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Query(alias="open", max_length=200, description="boxes that are not folded all the same"),
]

WATCH_SECONDS = 0.5
LONGEST_WATCH_SECONDS = 300.0


class Value(Body):
    """A value for a knob."""

    value: bool | int | float | Annotated[str, Field(max_length=1_000)]


def _entity(service: Service, kind: str, name: str) -> Entity:
    try:
        return service.engine.entities().get(kind, name)
    except StateError as error:
        raise not_found(str(error)) from None


@router.get("/kinds")
def list_kinds(service: Serving) -> list[dict[str, Any]]:
    """The kinds of entities and their attributes."""
    kinds = service.engine.entities().kinds.values()
    return [
        {
            "kind": kind.name,
            "meaning": kind.meaning,
            "attributes": [attribute.declared() for attribute in kind.attributes],
        }
        for kind in kinds
    ]


@router.get("/entities")
def list_entities(
    service: Serving, paged: Paged, kind: Annotated[str | None, Query(max_length=50)] = None
) -> list[dict[str, Any]]:
    """All entities, or those of a kind, each with its values; in pages."""
    entities = service.engine.entities()
    try:
        found = list(entities) if kind is None else entities.of_kind(kind)
    except StateError as error:
        raise not_found(str(error)) from None
    listed = []
    for each in paged.of(found):
        try:
            listed.append({"kind": each.kind.name, "name": each.name, "values": each.values()})
        except (KeyError, MillpondError):
            continue  # gone since it was found
    return listed


@router.get("/entities/{kind}/{name}")
def control_table(kind: Kind, name: EntityName, service: Serving) -> dict[str, Any]:
    """The control table of an entity: each attribute with its value and what it means."""
    entity = _entity(service, kind, name)
    values = entity.values()
    table = [{**a.declared(), "value": values[a.name]} for a in entity.kind.attributes]
    return {"kind": entity.kind.name, "name": entity.name, "attributes": table}


@router.get("/entities/{kind}/{name}/{attribute}")
def get_attribute(
    kind: Kind, name: EntityName, attribute: AttributeName, service: Serving
) -> dict[str, Any]:
    """The value of an attribute."""
    entity = _entity(service, kind, name)
    try:
        return {"value": entity.get(attribute)}
    except StateError as error:
        raise not_found(str(error)) from None


@router.put("/entities/{kind}/{name}/{attribute}")
def set_attribute(
    kind: Kind, name: EntityName, attribute: AttributeName, body: Value, service: Serving
) -> dict[str, Any]:
    """Sets a knob."""
    entity = _entity(service, kind, name)
    entity.set(attribute, body.value)
    if entity.kind.name in ("engine", "scheduler"):
        service.history.mark(f"{attribute} = {body.value}")
    service.changed.set()
    return {"value": entity.get(attribute)}


@router.get("/entities/{kind}/{name}/{attribute}/watch", response_class=StreamingResponse)
async def watch_attribute(
    kind: Kind,
    name: EntityName,
    attribute: AttributeName,
    service: Serving,
    seconds: Annotated[float, Query(gt=0, le=LONGEST_WATCH_SECONDS)] = 60.0,
) -> StreamingResponse:
    """The value of an attribute whenever it changes, as JSON lines."""
    entity = await run_in_threadpool(_entity, service, kind, name)
    try:
        await run_in_threadpool(entity.get, attribute)
    except StateError as error:
        raise not_found(str(error)) from None
    return StreamingResponse(_values(entity, attribute, seconds), media_type="application/x-ndjson")


async def _values(entity: Entity, attribute: str, seconds: float) -> AsyncIterator[bytes]:
    last: Any = object()
    for _ in range(max(1, int(seconds / WATCH_SECONDS))):
        try:
            value = await asyncio.to_thread(entity.get, attribute)
        except (KeyError, MillpondError):
            return
        if value != last:
            last = value
            yield (dumps({"value": value}) + "\n").encode()
        await asyncio.sleep(min(seconds, WATCH_SECONDS))


# -- the plan ------------------------------------------------------------------------------


@router.get(
    "/plan",
    responses={
        200: {"content": {"application/xml": {}, "image/svg+xml": {}, "text/vnd.graphviz": {}}}
    },
)
def show_plan(
    service: Serving,
    form: Annotated[Literal["json", "xml", "svg", "dot"], Query(alias="format")] = "json",
    query: Annotated[str | None, Query(max_length=200)] = None,
    fold: Fold = False,
    opened: Opened = (),
    find: Find = "",
) -> Response:
    """The running plan; ``query``: only what works for one; at most 400 boxes of it."""
    if form == "xml":
        return Response(plan_xml.written(service.engine), media_type="application/xml")
    name = service.query(query).name if query else None
    wish = Wish(name, fold, frozenset(opened), find.strip().lower())
    graph = plan_graph(service.engine, service.folding, wish)
    if form == "svg":
        return Response(svg(graph), media_type="image/svg+xml")
    if form == "dot":
        return Response(dot(graph), media_type="text/vnd.graphviz")
    return Json(graph)


@router.get("/plan/queries")
def queries_of_plan(
    service: Serving,
    paged: Paged,
    box: Annotated[str, Query(max_length=200, description="the id of a box of the plan")],
    fold: Fold = False,
    opened: Opened = (),
    find: Find = "",
) -> list[str]:
    """The names of the queries that a box of the plan works for, in pages."""
    wish = Wish(folds=fold, opened=frozenset(opened))
    found = queries_of_box(service.engine, service.folding, wish, box)
    if found is None:
        raise not_found(f'no box "{box[:100]}" in the plan')
    return list(paged.of([name for name in found if find.strip().lower() in name.lower()]))


@router.put(
    "/plan",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/xml": {"schema": {"type": "string"}}},
        }
    },
)
async def load_plan(
    request: Request,
    service: Serving,
    replace: Annotated[bool, Query(description="drop what the plan does not have")] = False,
) -> Done:
    """Makes the running plan that of an XML document, checked as a whole before."""
    body = await request.body()
    count = await run_in_threadpool(plan_xml.load, service, body, replace)
    return Done(done=f"{count} statements")


# -- queues that are watched -----------------------------------------------------------------


@router.get("/queues/{name}/tuples", response_class=StreamingResponse)
async def watch_queue(
    name: EntityName,
    service: Serving,
    seconds: Annotated[float, Query(gt=0, le=LONGEST_WATCH_SECONDS)] = 60.0,
) -> StreamingResponse:
    """The tuples that pass a queue from now on, as JSON lines: how many, and some of them."""
    watcher = await run_in_threadpool(Watcher, service.engine, name)
    return StreamingResponse(_tuples(watcher, seconds), media_type="application/x-ndjson")


async def _tuples(watcher: Watcher, seconds: float) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    try:
        while loop.time() < ends:
            try:
                passed = await asyncio.to_thread(watcher.passed)
            except RequestError:
                return
            yield (dumps(passed) + "\n").encode()
            await asyncio.sleep(min(WATCH_SECONDS, max(0.0, ends - loop.time())))
    finally:
        loop.run_in_executor(None, watcher.close)  # not waited for: who has gone cancels this
