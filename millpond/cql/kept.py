"""What is found once and kept with an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Found = TypeVar("Found")


class kept(Generic[Found]):  # noqa: N801 (it is written like property)
    """``functools.cached_property`` without its lock, which takes longer than what is kept here:
    plans are made of thousands of nodes. Who finds the same twice at once finds the same."""

    def __init__(self, find: Callable[[Any], Found]) -> None:
        self._find, self.__doc__ = find, find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, one: None, owner: type) -> kept[Found]: ...

    @overload
    def __get__(self, one: object, owner: type) -> Found: ...

    def __get__(self, one: object | None, owner: type) -> kept[Found] | Found:
        if one is None:
            return self
        found = one.__dict__[self._name] = self._find(one)
        return found
