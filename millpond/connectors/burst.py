"""A source of made-up rows that arrive as one of the processes of `millpond.workloads`."""

from typing import Any

from millpond.connectors.generated import Extent, GeneratedSource, value_generator
from millpond.connectors.sources import Declaration, files_of
from millpond.errors import InputError
from millpond.workloads import make


def source(
    declaration: Declaration,
    process: str = "selfsimilar",
    *,
    rows: int | None = None,
    seconds: float | None = None,
    start: Any = None,
    keys: int = 1000,
    seed: int | None = None,
    **parameters: Any,
) -> GeneratedSource:
    """Rows until there are ``rows`` of them or ``seconds`` have passed; the rest is the process's.

    ``rate`` is short for ``arrivals_per_second``.
    """
    if "rate" in parameters:
        parameters["arrivals_per_second"] = parameters.pop("rate")
    if "file" in parameters:
        parameters["file"] = str(files_of(declaration, parameters["file"])[0])
    try:
        arrivals = make(str(process), **parameters)
    except (InputError, TypeError) as error:
        raise InputError(f"{declaration.name}: {error}") from None
    values = value_generator(declaration, seed, keys)
    return GeneratedSource(declaration, arrivals, values, Extent(start, rows, seconds))
