"""One line of a control table: what it is called, what it means, how it is read and set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from millpond.arguments import shown_value
from millpond.entities.controlled import Controlled
from millpond.errors import StateError

Read: TypeAlias = "Callable[[Controlled, str], Any]"
Write: TypeAlias = "Callable[[Controlled, str, Any], None]"

TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "text": str,
    "boolean": bool,
}


@dataclass(frozen=True)
class Attribute:
    """A typed attribute of all entities of a kind: a statistic, or a knob if it can be written."""

    name: str
    type: str
    """``integer``, ``number``, ``text`` or ``boolean``."""
    meaning: str
    read: Read
    unit: str = ""
    write: Write | None = None
    above: float | None = None
    """A number must be larger."""
    choices: tuple[str, ...] = ()

    @property
    def is_knob(self) -> bool:
        """Whether it can be set."""
        return self.write is not None

    @property
    def limits(self) -> str:
        """What a value must be, in words; empty if there is nothing to say."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return "" if self.above is None else f"above {self.above:g}"

    def declared(self) -> dict[str, Any]:
        """The declaration as plain data."""
        return {
            "name": self.name,
            "type": self.type,
            "unit": self.unit,
            "meaning": self.meaning,
            "knob": self.is_knob,
            "limits": self.limits,
            "choices": list(self.choices),
        }

    def checked(self, value: Any) -> Any:
        """A value that may be written, from text too; raises ``StateError``."""
        value = self._converted(value)
        if self.choices and value not in self.choices:
            raise self._refusal(value)
        if self.above is not None and not self.above < value < math.inf:
            raise self._refusal(value)
        return value

    def _converted(self, value: Any) -> Any:
        if isinstance(value, str) and self.type != "text":
            value = self._read_text(value)
        if self.type == "text" and isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        is_kind = isinstance(value, TYPES[self.type])
        if not is_kind or (isinstance(value, bool) and self.type != "boolean"):
            raise self._refusal(value)
        return value

    def _read_text(self, text: str) -> Any:
        words = {"true": True, "yes": True, "false": False, "no": False}
        try:
            match self.type:
                case "boolean":
                    return words[text.strip().lower()]
                case "integer":
                    return int(text)
                case _:
                    return float(text)
        except (KeyError, ValueError):
            raise self._refusal(text) from None

    def _refusal(self, value: Any) -> StateError:
        wanted = self.limits or f"of type {self.type}"
        return StateError(f"{self.name}: {shown_value(value)} will not do; it must be {wanted}")


def statistic(type_: str, name: str, meaning: str, read: Read, unit: str = "") -> Attribute:
    """An attribute that is measured."""
    return Attribute(name, type_, meaning, read, unit)


boolean = partial(statistic, "boolean")
integer = partial(statistic, "integer")
number = partial(statistic, "number")
text = partial(statistic, "text")


def knob(
    name: str,
    type_: str,
    meaning: str,
    read: Read,
    write: Write,
    *,
    unit: str = "",
    above: float | None = None,
    choices: Sequence[str] = (),
) -> Attribute:
    """An attribute that can be set."""
    return Attribute(name, type_, meaning, read, unit, write, above, tuple(choices))
