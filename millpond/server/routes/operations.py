"""How the server is: alive, ready, measured; what failed, what is the bottleneck."""

import time
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

import millpond
from millpond.catalog import KINDS, QueryEntry
from millpond.connectors import registry
from millpond.cql import functions
from millpond.cql.keywords import KEYWORDS
from millpond.entities.catalogued import quoted
from millpond.facade.engine import Engine
from millpond.failures import Failure
from millpond.insight.bottleneck import bottleneck, operator_views
from millpond.intake.intake import END
from millpond.scheduling.strategy_text import driving_spark
from millpond.schema import BEGINNING
from millpond.server.comparing import Comparing
from millpond.server.faults import RequestError
from millpond.server.logs import KEPT_LINES, last_lines
from millpond.server.metrics import exposition
from millpond.server.routes.common import FAULTS, Done, Serving
from millpond.server.service import Service

router = APIRouter(tags=["operations"])

NO_DEMO = "this is no demo: `millpond demo` starts one"


@router.get("/ping", response_class=PlainTextResponse)
async def ping() -> str:
    """Whether the process answers."""
    return "pong"


@router.get("/ready", responses=FAULTS | {503: {"description": "not yet, or no more"}})
async def ready(service: Serving, response: Response) -> dict[str, Any]:
    """Whether queries are worked on."""
    is_ready = service.is_ready and service.engine.operation.is_started
    response.status_code = 200 if is_ready else 503
    return {"ready": is_ready}


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(service: Serving) -> Response:
    """Every number in the control tables, for Prometheus."""
    return Response(exposition(service), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/api/status", responses=FAULTS)
def status(service: Serving) -> dict[str, Any]:
    """What the page shows at the top."""
    engine = service.engine
    with engine.held():
        words = bottleneck(list(operator_views(engine.queries, engine.entities())))
        failures = len(engine.failures())
        queries = len(service.registered())
        strategy, mode = engine.settings.strategy, engine.settings.mode
        spark = engine.ground.lazy_spark.is_started
    return {
        "version": millpond.__version__,
        "started_seconds": service.started_seconds,
        "now_seconds": time.time(),
        "bottleneck": words,
        "waiting": service.waiting(),
        "failures": failures,
        "queries": queries,
        "strategy": strategy,
        "mode": mode,
        "spark": spark,
        "readers": service.feeds.readers,
        "demo": service.burst is not None,
        "trouble": service.trouble,
    }


@router.get("/api/history", responses=FAULTS)
def history(
    service: Serving,
    since: Annotated[float, Query(description="seconds since 1970", allow_inf_nan=False)] = 0.0,
    points: Annotated[int | None, Query(ge=10, le=2_000, description="so many samples")] = None,
) -> dict[str, Any]:
    """What was measured, and marks of changes: a sample a second over the last half hour.

    With ``points`` at most so many samples, which reach back to ``since`` or to the start.
    """
    return service.history.since(since, points)


@router.get("/api/statistics", responses=FAULTS)
def statistics(service: Serving) -> dict[str, Any]:
    """The running plan as it was measured, for `millpond simulate`."""
    return service.engine.statistics()


@router.get("/api/log", responses=FAULTS)
def log(lines: Annotated[int, Query(ge=1, le=KEPT_LINES)] = 100) -> dict[str, Any]:
    """The last lines of the server's log."""
    return {"lines": list(last_lines.lines)[-lines:]}


@router.get("/api/plane", responses=FAULTS)
def plane(service: Serving) -> dict[str, Any]:
    """Where each strategy would lie in the plane of memory against latency, as predicted."""
    return service.plane.predicted()


@router.get("/api/failures", responses=FAULTS)
def failures(service: Serving) -> list[dict[str, Any]]:
    """The queries that have failed: why, when, on which rows, and what can be done."""
    return [_told(service.engine, each) for each in service.engine.failures()]


def _told(engine: Engine, failure: Failure) -> dict[str, Any]:
    """A failure as plain data; ``until_time`` is as people read it, and empty at no time."""
    log = engine.deliveries.of(failure.query)
    is_timed = BEGINNING < failure.until < END
    name = quoted(failure.query)
    return asdict(failure) | {
        "after": str(failure.after),
        "until": str(failure.until),
        "until_time": str(log.format_time(failure.until)) if is_timed else "",
        "way_out": "restart it, and it goes on from now on; after "
        f"ALTER QUERY {name} ON ERROR SKIP it leaves such rows out",
    }


@router.get("/api/vocabulary", responses=FAULTS)
def vocabulary(service: Serving) -> dict[str, Any]:
    """The words an editor may offer."""
    engine = service.engine
    with engine.held():
        names = {
            entry.name: [f.name for f in _schema(entry).fields]
            for kind in KINDS.values()
            for entry in engine.catalog.of_kind(kind)
        }
        settings = [key for key, *_ in engine.settings_now.listing()]
    return {
        "keywords": KEYWORDS,
        "names": names,
        "functions": sorted(functions.FUNCTIONS),
        "connectors": sorted({*registry.names("source"), *registry.names("sink")}),
        "settings": settings,
        "strategies": list(driving_spark()),
        "modes": ["free", "direct", "di", "gts", "ots", "hmts"],
    }


def _schema(entry: Any) -> Any:
    return entry.plan.schema if isinstance(entry, QueryEntry) else entry.schema


@router.post("/api/demo/burst", responses=FAULTS)
def burst(service: Serving) -> Done:
    """Has the demo's traffic burst for some seconds."""
    if service.burst is None:
        raise RequestError(404, NO_DEMO)
    service.burst()
    service.history.mark("burst")
    return Done(done="burst")


@router.post("/api/demo/comparison", responses=FAULTS)
def compare(service: Serving) -> Done:
    """Has FIFO and Chain work on the same burst, side by side, each in a process of its own."""
    _comparing(service).begin()
    return Done(done="comparison")


@router.get("/api/demo/comparison", responses=FAULTS)
def comparison(service: Serving) -> dict[str, Any]:
    """What has waited under each of them so far."""
    return _comparing(service).told()


def _comparing(service: Service) -> Comparing:
    if service.comparing is None:
        raise RequestError(404, NO_DEMO)
    return service.comparing
