"""As small as a connector can be."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millpond.connectors import Progress, arrow_schema
from millpond.connectors.sources import Declaration


def source(declaration: Declaration, *, plus: int = 0) -> AnswerSource:
    return AnswerSource(declaration, 42 + plus)


class AnswerSource:
    ends = True

    def __init__(self, declaration: Declaration, answer: int) -> None:
        self.declaration, self.answer = declaration, answer

    def pages(self) -> Iterator[pa.Table]:
        yield pa.table([[self.answer]], schema=arrow_schema(self.declaration.schema))

    def progress(self) -> Progress:
        return Progress(0, 1, "rows")
