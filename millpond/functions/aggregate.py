"""An aggregate that the user gives for CQL, as its functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Aggregate:
    """An aggregate in Python: ``init()`` gives the state of nothing, ``add(state, x, …)`` that with
    a row more, ``value(state)`` the answer.

    ``remove(state, x, …)`` takes a row back; without it the rows of a group are kept, and added up
    again when one goes. ``merge(state, state)`` puts two states together, of which the second one's
    rows come later: with it only some of the rows are added again. States are plain data, which
    can be pickled.
    """

    init: Callable[[], Any]
    add: Callable[..., Any]
    value: Callable[[Any], Any]
    remove: Callable[..., Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None

    @property
    def functions(self) -> tuple[Callable[..., Any] | None, ...]:
        """What it is made of."""
        return (self.init, self.add, self.value, self.remove, self.merge)
