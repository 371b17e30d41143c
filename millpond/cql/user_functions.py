"""What functions of the user may be called in CQL, and take and give."""

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from millpond.cql.aggregates import AGGREGATE_ALIASES, AGGREGATES
from millpond.cql.functions import ALIASES, FUNCTIONS, OPERATORS, REWRITTEN
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import CreateQueryStatement
from millpond.cql.type_names import named_type
from millpond.errors import StateError
from millpond.schema import FAMILIES, NESTED, Type

_TAKEN = {*FUNCTIONS, *ALIASES, *REWRITTEN, *OPERATORS, *AGGREGATES, *AGGREGATE_ALIASES}
_TAKEN |= {"attempt", "succeeds"}


def checked_name(name: Any) -> str:
    """The name of a function, in lower case; raises if CQL would not read it as one."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise StateError(f"a function's name is a word, not {name!r}")
    if name.lower() in _TAKEN:
        raise StateError(f"{name} is a function of CQL already; choose another name")
    if not _reads_as_call(name):
        raise StateError(f"{name} is a word of CQL; choose another name")
    return name.lower()


def _reads_as_call(name: str) -> bool:
    try:
        syntax = parse_statement("SELECT f(a) FROM S WHERE f(a)".replace("f(", f"{name}("))
    except StatementError:
        return False
    calls = syntax.query.find_all(exp.Anonymous) if isinstance(syntax, CreateQueryStatement) else ()
    return [call.name for call in calls] == [name, name]


_PARTS = {Type.ARRAY: "elements, a[1]", Type.STRUCT: "fields, s.a", Type.MAP: "values, m['k']"}


def checked_types(name: str, parameters: Any, result: Any) -> tuple[tuple[Type, ...], Type]:
    """The types of a function's parameters and of its result, from types or their names."""
    if isinstance(parameters, str) or not isinstance(parameters, Sequence) or not parameters:
        raise StateError(
            f"function {name}: parameters are a list of one or more types, not {parameters!r}"
        )
    return tuple(_type(name, each) for each in parameters), _type(name, result)


def _type(name: str, given: Any) -> Type:
    try:
        is_type = isinstance(given, Type) and given is not Type.NULL
        found = given if is_type else named_type(given if isinstance(given, str) else "", None)
    except StatementError:
        known = ", ".join(str(each) for each in FAMILIES if each not in NESTED)
        raise StateError(f"function {name}: no type {given!r}; known: {known}") from None
    if found.is_nested:
        raise StateError(
            f"function {name}: functions of your own take and give no {found.family}s; call it "
            f"with {_PARTS[found.family]}, or with its JSON, CAST(a AS STRING)"
        )
    return found
