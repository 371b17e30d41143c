"""Transitions: each change of an engine is a small record that is done in one way.

Whoever changes something decides first, without changing anything, what is to happen: some
transitions. These are in the log, and then they are done. After a restart they are only done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self

from millpond import version
from millpond.cql.node import Node
from millpond.errors import StateError
from millpond.planning.graph import Addition
from millpond.planning.identified import identified
from millpond.planning.nodes import InList
from millpond.planning.physical import Operator
from millpond.planning.plan_data import ENTRIES, EXPRESSIONS, Functions, from_data, to_data
from millpond.storage.formats import Record
from millpond.storage.pages import Page
from millpond.storage.store import Store

KINDS: dict[str, type[Transition]] = {}
"""All transitions, by the kinds of their records."""

_PLANNED = (Node, Operator, Addition, InList, *EXPRESSIONS, *ENTRIES)


UNLOGGED = {"unlogged": True}
"""Of a field that only those have who have just decided."""


class Noted(ABC):
    """What says itself how the log has it; whoever reads the log makes it anew."""

    @abstractmethod
    def to_data(self) -> Any:
        """As plain data."""


@dataclass(frozen=True)
class Transition:
    """A change of an engine: ``apply`` does it to the part that ``to`` names."""

    kind: ClassVar[str]
    to: ClassVar[str]

    def __init_subclass__(cls, kind: str, to: str) -> None:
        cls.kind, cls.to = kind, to
        KINDS[kind] = cls

    def apply(self, part: Any) -> None:
        """Does it; nothing can go wrong any more."""
        raise NotImplementedError

    def record(self) -> Record:
        """What the log says of it, but for what has its default; pages are written by then."""
        told: Record = {"kind": self.kind}
        for each in fields(self):
            value = getattr(self, each.name)
            if not each.metadata.get("unlogged") and value != _default(each):
                told[each.name] = _told(value)
        return told

    @classmethod
    def read(cls, facts: Mapping[str, Any], store: Store, functions: Functions) -> Self:
        """The transition that a record says."""
        read = {name: _read(each, store, functions) for name, each in facts.items()}
        return cls(**identified(cls, read))

    @property
    def carried(self) -> list[Page]:
        """The pages that come with it."""
        found: list[Page] = []
        stack = [getattr(self, each.name) for each in fields(self)]
        while stack:
            value = stack.pop()
            if isinstance(value, Page):
                found.append(value)
            elif isinstance(value, tuple):
                stack += value
        return found


def transition_of(record: Record, store: Store, functions: Functions) -> Transition:
    """The transition that a record of the log says."""
    facts = dict(record)
    kind = facts.pop("kind")
    if kind not in KINDS or not facts.keys() <= _names(kind):
        raise StateError(
            f"store {store.directory}: its log has a record ({kind}) that Millpond "
            f"{version.VERSION} does not know: a later version wrote it; open it with that one"
        )
    return KINDS[kind].read(facts, store, functions)


@cache
def _names(kind: str) -> frozenset[str]:
    """The fields that a record of a kind may have."""
    return frozenset(each.name for each in fields(KINDS[kind]))


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _told(value: Any) -> Any:
    if isinstance(value, Page):
        return {"~page": value.reference()}
    if isinstance(value, _PLANNED):
        return {"~plan": to_data(value)}
    if isinstance(value, Noted):
        return _told(value.to_data())
    if isinstance(value, dict):
        return {key: _told(each) for key, each in value.items()}
    return [_told(each) for each in value] if isinstance(value, tuple | list) else value


def _read(data: Any, store: Store, functions: Functions) -> Any:
    if isinstance(data, list):
        return tuple(_read(each, store, functions) for each in data)
    if not isinstance(data, dict):
        return data
    if "~page" in data:
        return Page.referred(store, data["~page"])
    if "~plan" in data:
        return from_data(data["~plan"], functions)
    return {key: _read(each, store, functions) for key, each in data.items()}


@dataclass(frozen=True)
class FilesNoted(Transition, kind="files", to="store"):
    """Files were made, with their checksums, and others are gone."""

    made: tuple[tuple[Any, ...], ...]
    gone: tuple[str, ...]

    def apply(self, part: Store) -> None:
        """Takes what the log says of files."""
        part.replay(self.made, self.gone)
