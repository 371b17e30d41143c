"""A source of evenly spaced rows whose integer columns count them."""

import math
from typing import Any

from millpond.connectors.generated import Extent, GeneratedSource, value_generator
from millpond.connectors.sources import Declaration
from millpond.errors import InputError
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
    is_number = isinstance(rows_per_second, int | float) and not isinstance(rows_per_second, bool)
    if not is_number or not 0 < rows_per_second < math.inf:
        raise InputError(
            f"{declaration.name}: rate({rows_per_second!r}): rows per second are a number above "
            "zero, such as 10 or 0.5; for a stream without rows leave FROM out"
        )
    values = value_generator(declaration, seed, keys)
    extent = Extent(start, rows, seconds)
    return GeneratedSource(declaration, Constant(rows_per_second), values, extent, counting=True)
