"""What all addresses share: the service behind them, and what goes wrong."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import BaseModel, Field

from millpond.server.service import Service


def service_of(request: Request) -> Service:
    """The service of the server."""
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(service_of)]

Name = Annotated[str, Path(min_length=1, max_length=200, description="a declared name")]


class Fault(BaseModel):
    """Why a request is refused."""

    error: str
    line: int | None = None
    column: int | None = None


class CqlText(BaseModel):
    """A text in CQL."""

    text: str = Field(max_length=100_000, examples=["SHOW QUERIES"])


class Done(BaseModel):
    """Something was done."""

    done: str


FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"model": Fault, "description": "it can not be done, and why"},
    401: {"model": Fault, "description": "a token is needed"},
    403: {"model": Fault, "description": "the token does not allow this"},
    404: {"model": Fault, "description": "nothing has this name"},
    409: {"model": Fault, "description": "it is in the way of something else"},
    413: {"model": Fault, "description": "too large"},
    415: {"model": Fault, "description": "another form of data is expected"},
    429: {"model": Fault, "description": "too much at once"},
    503: {"model": Fault, "description": "the store cannot be written now"},
}
