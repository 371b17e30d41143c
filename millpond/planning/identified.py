"""Identities in what was read as plain data: a log has their texts."""

from collections.abc import Mapping
from functools import cache
from itertools import repeat
from typing import Any, get_args, get_type_hints

from millpond.identities import Identity


def identified(kind: type, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a class, with identities where it says that it has them."""
    hints = _hints(kind)
    return {
        name: _read(hints[name], value) if name in hints else value for name, value in facts.items()
    }


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields that have identities, or have them inside."""
    return {name: hint for name, hint in get_type_hints(kind).items() if _has_identity(hint)}


def _has_identity(hint: Any) -> bool:
    return _is_identity(hint) or any(map(_has_identity, get_args(hint)))


def _is_identity(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Identity)


def _read(hint: Any, value: Any) -> Any:
    of = get_args(hint)
    match value:
        case str():
            found = next(filter(_is_identity, (hint, *of)), str)
            return found(value)
        case tuple():
            return tuple(map(_read, repeat(of[0]) if of[-1] is ... else of, value))
        case dict():
            return {_read(of[0], key): _read(of[1], each) for key, each in value.items()}
    return value
