"""Texts in CQL: executed, checked, explained, asked once, tried on live data."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from millpond.catalog import QueryEntry, kind_of
from millpond.cql.statements import Create, Statement
from millpond.cql.text.parse import syntax_tree
from millpond.errors import CqlError, CqlWarning
from millpond.insight.query_plans import plan_text
from millpond.server.faults import RequestError
from millpond.server.formats import dumps
from millpond.server.limits import Limits
from millpond.server.one_time import answer
from millpond.server.replies import answer_json, table_json
from millpond.server.routes.common import FAULTS, CqlText, Serving
from millpond.server.service import Service
from millpond.server.streaming import ResultStream, Wish

router = APIRouter(prefix="/api", tags=["CQL"], responses=FAULTS)


class ExplainText(CqlText):
    """A text whose queries are explained."""

    stage: Literal["syntax", "logical", "physical", "reductions"] = "physical"


class PreviewText(CqlText):
    """A query to be tried."""

    seconds: Annotated[float, Field(ge=0.1, le=30)] = 10.0


class Problem(BaseModel):
    """Something that is wrong with a text."""

    message: str
    line: int
    column: int


@router.post("/execute")
def execute(body: CqlText, service: Serving) -> dict[str, Any]:
    """Executes a script, once all of it was checked."""
    answers, warnings = service.execute_and_warn(body.script)
    return {"answers": [answer_json(each) for each in answers], "warnings": _told(warnings)}


@router.post("/check")
def check(body: CqlText, service: Serving) -> dict[str, Any]:
    """What is wrong with a text, and what its statements do; nothing is executed."""
    statements: list[dict[str, Any]] = []
    warnings: list[dict[str, Any]] = []
    try:
        for statement in service.checked(body.script):
            warnings += _told(statement.warnings)
            action = statement.action
            entry = action.entry if isinstance(action, Create) else None
            statements.append(
                {
                    "does": type(action).__name__.lower(),
                    "kind": kind_of(entry) if entry is not None else None,
                    "name": getattr(entry, "name", None),
                    "columns": _columns(entry),
                    "line": statement.position.line,
                }
            )
    except CqlError as error:
        line = error.position.line if error.position else 1
        column = error.position.column if error.position else 1
        problem = Problem(message=error.message, line=line, column=column)
        problems = [problem.model_dump()]
        return _checked(problems, warnings, statements)
    return _checked([], warnings, statements)


def _checked(
    problems: list[dict[str, Any]], warnings: list[dict[str, Any]], statements: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "ok": not problems,
        "problems": problems,
        "warnings": warnings,
        "statements": statements,
    }


def _told(warnings: Iterable[CqlWarning]) -> list[dict[str, Any]]:
    return [
        Problem(message=w.message, line=w.position.line, column=w.position.column).model_dump()
        for w in warnings
    ]


def _columns(entry: Any) -> list[str]:
    """The columns of what a statement declares, if it has any."""
    schema = entry.plan.schema if isinstance(entry, QueryEntry) else getattr(entry, "schema", None)
    return [] if schema is None else list(schema.names)


@router.post("/explain")
def explain(body: ExplainText, service: Serving) -> dict[str, Any]:
    """The plans of the queries in a text, and which parts of them run already."""
    plans = []
    for statement in service.checked(body.script):
        entry = _query_of(statement)
        if entry is not None:
            if body.stage == "syntax":
                text = syntax_tree(statement.text)
            else:
                with service.engine.held():
                    text = plan_text(service.engine.queries, entry, body.stage)
            plans.append({"query": entry.name, "stage": body.stage, "plan": text})
    return {"plans": plans}


def _query_of(statement: Statement) -> QueryEntry | None:
    entry = getattr(statement.action, "entry", None) or getattr(statement.action, "query", None)
    return entry if isinstance(entry, QueryEntry) else None


@router.post("/ask")
def ask(body: CqlText, service: Serving) -> dict[str, Any]:
    """Answers a SELECT once, on relations and windows as they are."""
    statement = _single(service, body.script)
    with service.asking():
        table, when = answer(service.engine, statement, service.limits)
    if table.num_rows > service.limits.answer_rows:
        raise RequestError(413, f"the answer has {table.num_rows:,} rows; ask for fewer")
    found = table_json(table.drop_columns([table.column_names[0]]))
    return {"at": when, **found}


def _single(service: Service, text: str) -> Statement:
    statements = list(service.checked(text))
    if len(statements) != 1:
        raise RequestError(400, f"{len(statements)} statements; give one SELECT")
    return statements[0]


@router.post("/preview", response_class=StreamingResponse)
async def preview(body: PreviewText, service: Serving) -> StreamingResponse:
    """Runs a query for some seconds and tells what it puts out, then forgets it."""
    statement = await asyncio.to_thread(_single, service, body.script)
    entry = _query_of(statement)
    if entry is None or not isinstance(statement.action, Create):
        raise RequestError(400, "a preview is of a SELECT or CREATE QUERY")
    name = f"preview_{secrets.token_hex(4)}"
    skip = " ON ERROR SKIP" if entry.on_error == "skip" else ""
    said = f" {'EXACT' if entry.tolerates is None else entry.tolerates}"
    service.previews.add(name)
    try:
        await asyncio.to_thread(service.execute, f"CREATE QUERY {name}{skip}{said} AS {entry.text}")
    except BaseException:
        service.previews.discard(name)
        raise
    stream = ResultStream(service.feeds, service.log(name), Wish("ndjson", "oldest"))
    heading = {"columns": list(entry.plan.schema.names), "stream": entry.plan.is_stream}
    return StreamingResponse(
        _previewed(service, name, stream, heading, body.seconds), media_type=stream.media_type
    )


async def _previewed(
    service: Service, name: str, stream: ResultStream, heading: dict[str, Any], seconds: float
) -> AsyncIterator[bytes]:
    body, bound = stream.body(), _Bound(service.limits)
    loop = asyncio.get_running_loop()
    ends = loop.time() + min(seconds, service.limits.ask_seconds)
    following: asyncio.Task[bytes] | None = None
    try:
        yield (dumps(heading) + "\n").encode()
        while not bound.hit and (left := ends - loop.time()) > 0:
            following = following or asyncio.ensure_future(anext(body))
            done, _ = await asyncio.wait({following}, timeout=left)
            if not done:
                break
            piece, following = following.result(), None
            yield bound.taken(piece)
        for failure in service.engine.failures():
            if failure.query == name:
                yield (dumps({"error": failure.error}) + "\n").encode()
        if bound.hit or seconds > service.limits.ask_seconds:
            yield (dumps({"bound": bound.hit or "seconds"}) + "\n").encode()
    except StopAsyncIteration:
        pass
    finally:
        if following is not None:
            following.cancel()
        # Whoever has gone cancels this: what is left to do is done without being waited for.
        loop.run_in_executor(None, _forget, service, name)


def _forget(service: Service, name: str) -> None:
    """Drops a query that was tried."""
    service.execute(f"DROP QUERY {name}")
    service.previews.discard(name)


class _Bound:
    """How much a preview may still put out."""

    def __init__(self, limits: Limits) -> None:
        self._rows, self._bytes = limits.ask_rows, limits.ask_bytes
        self.hit = ""
        """Which bound was hit, if one was."""

    def taken(self, piece: bytes) -> bytes:
        """The lines of a piece within the bound."""
        lines = piece.splitlines(keepends=True)
        for count, line in enumerate(lines):
            self._rows, self._bytes = self._rows - 1, self._bytes - len(line)
            if self._rows < 0 or self._bytes < 0:
                self.hit = "rows" if self._rows < 0 else "bytes"
                return b"".join(lines[:count])
        return piece
