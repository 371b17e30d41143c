"""The functions that the user registers in a catalog."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from millpond.catalog import Catalog
from millpond.cql.functions_in_use import functions_in_use
from millpond.cql.user_functions import checked_name, checked_types
from millpond.errors import StateError
from millpond.functions.aggregate import Aggregate
from millpond.schema import Type

FunctionGiven: TypeAlias = (
    "tuple[str, Callable[..., Any] | Aggregate, Sequence[Type | str], Type | str]"
)
"""What ``register_function`` takes."""


def register_all(catalog: Catalog, functions: Iterable[FunctionGiven]) -> None:
    """Registers functions given to a new engine."""
    for given in functions:
        if not isinstance(given, tuple) or len(given) != 4:
            raise StateError(
                "functions are given as (name, function, parameter types, result type), "
                f"not {given!r}"
            )
        register(catalog, *given)


def register(
    catalog: Catalog,
    name: str,
    function: Callable[..., Any] | Aggregate,
    parameters: Sequence[Type | str],
    result: Type | str,
) -> bool:
    """Registers a function; whether it takes the place of another one."""
    from millpond.spark.user_functions import user_function

    key = checked_name(name)
    made = replace(
        user_function(key, function, *checked_types(key, parameters, result)),
        processes=catalog.function_processes,
    )
    before = catalog.functions.get(key)
    if before not in (None, made) and before in functions_in_use(catalog):
        raise StateError(
            f"function {key}: another one of this name is in use; DROP the views and queries "
            "that call it first, or choose another name"
        )
    catalog.functions[key] = made
    return before not in (None, made)
