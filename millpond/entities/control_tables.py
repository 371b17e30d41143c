"""Entities of all kinds, found by kind and name; generic get, set and watch."""

import heapq
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from millpond.entities.attributes import Attribute
from millpond.entities.controlled import Controlled
from millpond.errors import StateError
from millpond.spelling import suggestion

WATCH_SECONDS = 0.5
"""How often a watched attribute is looked at."""


@dataclass(frozen=True)
class Kind:
    """All entities of one kind: how they are found, and their attributes."""

    name: str
    meaning: str
    names: Callable[[Controlled], Sequence[str]]
    attributes: tuple[Attribute, ...]
    activity: str = ""
    """The attribute that tells how much one does, where there may be many."""

    def attribute(self, name: str) -> Attribute:
        """The attribute of a name."""
        for each in self.attributes:
            if each.name == name.lower():
                return each
        known = [each.name for each in self.attributes]
        raise StateError(f'a {self.name} has no attribute "{name}"{suggestion(name, known)}')


@dataclass(frozen=True)
class Entity:
    """One thing that runs, with its control table."""

    view: Controlled
    kind: Kind
    name: str

    def get(self, attribute: str) -> Any:
        """The present value of an attribute."""
        return self._value(self.kind.attribute(attribute))

    def _value(self, attribute: Attribute) -> Any:
        with self.view.ground.lock:
            if self.name not in self.kind.names(self.view):
                raise StateError(f'{self.kind.name} "{self.name}" is gone')
            return plain(attribute.read(self.view, self.name))

    def set(self, attribute: str, value: Any) -> None:
        """Sets a knob; what is out of its limits, or a statistic, is refused."""
        found = self.kind.attribute(attribute)
        if found.write is None:
            knobs = ", ".join(a.name for a in self.kind.attributes if a.is_knob) or "none"
            raise StateError(
                f"{found.name} of a {self.kind.name} is measured, not set; knobs: {knobs}"
            )
        found.write(self.view, self.name, found.checked(value))

    def values(self) -> dict[str, Any]:
        """All attributes with their present values, of one moment."""
        with self.view.ground.lock:
            return {
                each.name: plain(each.read(self.view, self.name)) for each in self.kind.attributes
            }

    def watch(self, attribute: str, seconds: float = WATCH_SECONDS) -> Iterator[Any]:
        """The value now, and again whenever it has changed; ends when the entity is gone."""
        last: Any = object()
        found = self.kind.attribute(attribute)
        while True:
            try:
                value = self._value(found)
            except StateError:
                return
            if value != last:
                yield value
                last = value
            time.sleep(seconds)


class Entities:
    """Everything that runs in an engine."""

    def __init__(self, view: Controlled, kinds: tuple[Kind, ...]) -> None:
        self._view = view
        self.kinds = {kind.name: kind for kind in kinds}

    def kind(self, name: str) -> Kind:
        """A kind by its name, such as ``queue``."""
        found = self.kinds.get(name.lower())
        if found is None:
            raise StateError(f'no kind of entity "{name}"{suggestion(name, list(self.kinds))}')
        return found

    def of_kind(self, kind: str) -> list[Entity]:
        """All entities of a kind."""
        found = self.kind(kind)
        with self._view.ground.lock:
            return [Entity(self._view, found, name) for name in found.names(self._view)]

    def busiest(self, kind: str, most: int) -> tuple[list[Entity], int]:
        """The most active entities of a kind, in their order, and how many are left out."""
        found = self.kind(kind)
        with self._view.ground.lock:
            names = found.names(self._view)
            if len(names) > most:
                read = found.attribute(found.activity).read
                does = {name: plain(read(self._view, name)) or 0 for name in names}
                chosen = set(heapq.nlargest(most, names, key=does.__getitem__))
                kept = [name for name in names if name in chosen]
                return [Entity(self._view, found, name) for name in kept], len(names) - most
        return [Entity(self._view, found, name) for name in names], 0

    def values_of(self, kind: str, attribute: str) -> dict[str, Any]:
        """One attribute of all entities of a kind, by their names."""
        found = self.kind(kind)
        read = found.attribute(attribute).read
        with self._view.ground.lock:
            return {name: plain(read(self._view, name)) for name in found.names(self._view)}

    def get(self, kind: str, name: str) -> Entity:
        """One entity; names of queries and inputs in any case."""
        found = self.kind(kind)
        with self._view.ground.lock:
            names = found.names(self._view)
        if name not in names:
            known = {each.lower(): each for each in names}
            if name.lower() not in known:
                raise StateError(f'no {kind.lower()} "{name}"{suggestion(name, list(names))}')
            name = known[name.lower()]
        return Entity(self._view, found, name)

    def __iter__(self) -> Iterator[Entity]:
        for kind in self.kinds:
            yield from self.of_kind(kind)


def plain(value: Any) -> Any:
    """A value that JSON can hold: no NaN, no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
