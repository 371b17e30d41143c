"""What all addresses share: the service behind them, and what goes wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, Field

from millpond.cql.text.parameters import with_parameters
from millpond.server.misshapen import Body
from millpond.server.service import Service


def service_of(request: Request) -> Service:
    """The service of the server."""
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(service_of)]

Name = Annotated[str, Path(min_length=1, max_length=200, description="a declared name")]


Item = TypeVar("Item")


@dataclass(frozen=True)
class Paging:
    """Which part of a list is asked for; where the rest is, is told in the head of the answer."""

    request: Request
    response: Response
    limit: Annotated[int, Query(ge=1, le=10_000, description="how many at most")] = 1_000
    offset: Annotated[int, Query(ge=0, le=2**53, description="how many are passed over")] = 0

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """The part of a list; ``Link`` has the address of the next one, if there is one."""
        self.response.headers["X-Total-Count"] = str(len(items))
        following = self.offset + self.limit
        if following < len(items):
            url = self.request.url.include_query_params(limit=self.limit, offset=following)
            self.response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        return items[self.offset : following]


Paged = Annotated[Paging, Depends()]

Find = Annotated[
    str, Query(max_length=200, description="only what has this in it, in whatever case")
]
Descending = Annotated[bool, Query(description="the largest first")]


class Fault(BaseModel):
    """Why a request is refused."""

    error: str
    line: int | None = None
    column: int | None = None


class CqlText(Body):
    """A text in CQL."""

    text: str = Field(max_length=100_000, examples=["SHOW QUERIES"])
    parameters: dict[str, bool | int | float | str | None] = Field(default={})

    @property
    def script(self) -> str:
        """The text with the values of its parameters."""
        return with_parameters(self.text, self.parameters)


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
