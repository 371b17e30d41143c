"""Functions of Python that were declared as sources, by their names.

``FROM name(argument, option = value)`` calls the function of that name. What reads them is loaded
when one is opened: it needs an event loop, which takes long to import.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from millpond.connectors.secrets import revealed
from millpond.connectors.sources import Declaration
from millpond.errors import InputError

AFTER = "after"
"""The parameter of functions that know where they are."""


@dataclass(frozen=True)
class PythonFunction:
    """A function that yields rows, under a name, and what is said of it."""

    function: Callable[..., Any]
    name: str
    gaps: bool = False
    live: bool = False
    endless: bool = False

    value = "a function of Python"

    def __post_init__(self) -> None:
        if not callable(self.function) or not self.name.isidentifier():
            raise InputError(f"a source is a function with a name, not {self.function!r}")

    @property
    def is_async(self) -> bool:
        """Whether an event loop is needed."""
        return inspect.isasyncgenfunction(self.function)

    @property
    def knows_its_place(self) -> bool:
        """Whether it can go on where it was."""
        return AFTER in inspect.signature(self.function).parameters

    def load(self) -> SimpleNamespace:
        """As a module of a connector."""

        home = importlib.import_module("millpond.connectors.python_sources")

        def opened(declaration: Declaration, *arguments: Any, **options: Any) -> Any:
            given = {key: revealed(value) for key, value in options.items()}
            return home.PythonSource(declaration, self, tuple(map(revealed, arguments)), given)

        known = inspect.signature(self.function).parameters.values()
        first = inspect.Parameter("declaration", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [first, *(each for each in known if each.name != AFTER)]
        opened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return SimpleNamespace(source=opened)


DECLARED: dict[str, PythonFunction] = {}
"""The functions, by their names in lower case."""
