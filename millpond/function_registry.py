"""The functions of the user in a catalog: which there are, and which are in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from millpond.catalog import Catalog, QueryEntry, ViewEntry
from millpond.cql.needed_functions import needed_functions
from millpond.cql.statements import Action, Create
from millpond.cql.user_functions import checked_name, checked_types
from millpond.errors import StateError
from millpond.schema import Type
from millpond.user_function import UserFunction

FunctionGiven: TypeAlias = "tuple[str, Callable[..., Any], Sequence[Type | str], Type | str]"
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
    function: Callable[..., Any],
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


def functions_in_use(catalog: Catalog) -> list[UserFunction]:
    """The functions of the user that views and queries call."""
    if not catalog.functions:
        return []
    plans = [entry.plan for kind in (ViewEntry, QueryEntry) for entry in catalog.of_kind(kind)]
    return list(dict.fromkeys(each for plan in plans for each in needed_functions(plan)))


def functions_of(action: Action) -> list[UserFunction]:
    """The functions of the user that a statement declares something with."""
    match action:
        case Create(ViewEntry(plan=plan) | QueryEntry(plan=plan)):
            return needed_functions(plan)
    return []
