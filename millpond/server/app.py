"""The application: addresses, what goes wrong, the page, and what happens every second."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

import millpond
from millpond.errors import MillpondError
from millpond.server.faults import RequestError, of_engine
from millpond.server.misshapen import in_words, refuse_unknown_parameters
from millpond.server.replies import Json
from millpond.server.routes import control, inputs, operations, queries, statements
from millpond.server.service import Service
from millpond.server.upkeep import Upkeep

STATIC = Path(__file__).parent / "static"
DRAIN_SECONDS = 3.0
"""How long a server that ends works on what has come."""

logger = logging.getLogger("millpond")


def make_app(service: Service, plan_file: Path | None = None) -> FastAPI:
    """The application in front of an engine; it starts and stops the engine's work."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        upkeep = Upkeep(service, plan_file)
        await asyncio.to_thread(upkeep.begin)
        task = asyncio.create_task(upkeep.run())
        try:
            yield
        finally:
            service.is_ready = False
            service.feeds.close()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(upkeep.end, DRAIN_SECONDS)

    app = FastAPI(
        title="Millpond",
        version=millpond.__version__,
        description="Continuous queries in CQL over streams and relations.",
        lifespan=lifespan,
        default_response_class=Json,
        dependencies=[Depends(refuse_unknown_parameters)],
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    for module in (operations, statements, queries, inputs, control):
        app.include_router(module.router)
    _add_faults(app)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    async def documentation() -> FileResponse:
        return FileResponse(STATIC / "docs.html", headers={"cache-control": "no-cache"})

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _add_faults(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> Response:
        return Json(error.body(), error.status)

    @app.exception_handler(MillpondError)
    async def of_millpond(_: Request, error: MillpondError) -> Response:
        fault = of_engine(error)
        return Json(fault.body(), fault.status)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, error: RequestValidationError) -> Response:
        return Json({"error": in_words(error.errors())}, 422)
