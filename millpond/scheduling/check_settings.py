"""Refuses settings of a strategy that it does not have, or that are of another kind than it says.

A wrong kind would otherwise come to light steps later, inside a decision.
"""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from millpond.errors import StrategyError

_KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a name",
    NoneType: "none",
}


def check_settings(
    name: str, factory: Callable[..., object], settings: Mapping[str, object]
) -> None:
    """Raise `StrategyError` unless a strategy's factory takes these settings."""
    parameters = inspect.signature(factory).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    kinds = _kinds(factory)
    for key, value in settings.items():
        if key not in parameters and not takes_any:
            near = get_close_matches(key, parameters, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            known = ", ".join(parameters) or "none"
            raise StrategyError(
                f'strategy "{name}" has no setting "{key}"; {hint}its settings: {known}'
            )
        if not any(_fits(value, kind) for kind in kinds.get(key, (object,))):
            asked = " or ".join(_said(kind) for kind in kinds[key])
            raise StrategyError(f'strategy "{name}": {key} is {value!r}; give {asked}')


@cache
def _kinds(factory: Callable[..., object]) -> Mapping[str, tuple[Any, ...]]:
    """The kinds that each setting may have; one that says nothing, or nothing known, has none."""
    function = factory.__init__ if inspect.isclass(factory) else factory
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):
        return {}
    parameters = inspect.signature(factory).parameters.values()
    named = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    return {key: _alternatives(hints[key]) for key in named if key in hints}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return (hint,) if get_origin(hint) is Literal or not get_args(hint) else get_args(hint)


def _fits(value: object, kind: Any) -> bool:
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    try:
        return not inspect.isclass(kind) or isinstance(value, kind)
    except TypeError:  # a protocol that cannot be asked
        return True


def _said(kind: Any) -> str:
    return _KINDS.get(kind, f"a {getattr(kind, '__name__', kind)}")
