"""Requests that have not the form of their address, told in words: the field, its value, a way out.

A field or parameter that is not known is refused by its name; whoever has misspelt one would
otherwise be told that all is well.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, model_validator
from pydantic_core import PydanticCustomError

from millpond.arguments import shown_value
from millpond.server.faults import RequestError
from millpond.spelling import suggestion

MOST_FAULTS = 5
"""So many are told at once."""


class Body(BaseModel):
    """The body of a request: it has no field but its own."""

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown(cls, given: Any) -> Any:
        """Refuses a field that it has not."""
        if isinstance(given, Mapping):
            for name in given:
                if name not in cls.model_fields:
                    known = suggestion(str(name), cls.model_fields)
                    told = f'no field "{str(name)[:100]}"{known}'
                    raise PydanticCustomError("unknown_field", "{told}", {"told": told})
        return given


def refuse_unknown_parameters(request: Request) -> None:
    """Refuses a parameter in the address that what is asked for has not."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    known = list(_parameters(route.dependant))
    for name in request.query_params:
        if name not in known:
            raise RequestError(400, f'no parameter "{name[:100]}"{suggestion(name, known)}')


def _parameters(part: Dependant) -> Iterator[str]:
    """The parameters of an address, also those that it shares with others."""
    yield from (field.alias for field in part.query_params)
    for each in part.dependencies:
        yield from _parameters(each)


def in_words(faults: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with a request."""
    return "; ".join(dict.fromkeys(_words(fault) for fault in faults[:MOST_FAULTS]))[:1_000]


def _words(fault: Mapping[str, Any]) -> str:
    """One fault of a request.

    >>> _words({"loc": ("body", "weight"), "type": "greater_than", "input": 0, "ctx": {"gt": 0}})
    'weight: 0 will not do; it must be above 0'
    """
    place = ".".join(str(part) for part in fault["loc"][1:]) or "the " + str(fault["loc"][0])
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "missing":
        return f"{place} is missing"
    if kind == "unknown_field":
        return str(context["told"])
    if kind in ("json_invalid", "model_attributes_type"):
        return "the body is no JSON object"
    wanted = _wanted(kind, context) or fault["msg"].removeprefix("Input should be ")
    return f"{place}: {shown_value(fault.get('input'))} will not do; it must be {wanted}"


def _wanted(kind: str, context: Mapping[str, Any]) -> str:
    """What a value must be; empty where the checker's own words will do."""
    bounds = {
        "greater_than": "above {gt:g}",
        "less_than": "below {lt:g}",
        "greater_than_equal": "{ge:g} or more",
        "less_than_equal": "{le:g} or less",
        "string_too_long": "of {max_length} characters at most",
        "string_too_short": "of {min_length} characters or more",
        "string_pattern_mismatch": "a letter or _, then letters, digits and _, 100 at most",
        "literal_error": "one of {expected}",
        "enum": "one of {expected}",
    }
    plain = {
        "float_parsing": "a number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "int_parsing": "a whole number",
        "int_from_float": "a whole number",
        "int_type": "a whole number",
        "bool_parsing": "true or false",
        "bool_type": "true or false",
        "string_type": "a text",
    }
    return plain.get(kind) or bounds.get(kind, "").format(**context)
