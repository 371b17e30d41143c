"""A source of evenly spaced rows whose integer columns count them."""

from __future__ import annotations

from typing import Any

from millpond.connectors.generated import Extent, GeneratedSource, value_generator
from millpond.connectors.sources import Declaration
from millpond.workloads import Constant


def source(
    declaration: Declaration,
    rows_per_second: float = 1.0,
    *,
    rows: int | None = None,
    seconds: float | None = None,
    start: Any = None,
    keys: int = 1000,
    seed: int | None = None,
) -> GeneratedSource:
    """So many rows a second, until there are ``rows`` of them or ``seconds`` have passed."""
    values = value_generator(declaration, seed, keys)
    extent = Extent(start, rows, seconds)
    return GeneratedSource(declaration, Constant(rows_per_second), values, extent, counting=True)
