"""Types, columns, schemas and the time domain: the vocabulary every layer shares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BEGINNING = -(2**62)
"""The instant before all instants: what holds there was never inserted (printed as ``null``)."""

FOREVER = 2**62
"""The end of an element that is not known to end; also the heartbeat of a finished source."""


class Type(Enum):
    """The value types of CQL."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    NULL = "NULL"
    """The type of a bare NULL literal, before it takes the type of its surroundings."""

    @property
    def is_number(self) -> bool:
        """Whether arithmetic applies."""
        return self in (Type.INT, Type.BIGINT, Type.DOUBLE)

    __hash__ = object.__hash__
    """There is one of each; Enum's own hash is a call of Python's at each look into a table."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Field:
    """A named, typed column. All columns are nullable."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Schema:
    """An ordered list of fields; names may repeat in intermediate results.

    >>> str(Schema((Field("a", Type.INT), Field("b", Type.STRING))))
    '(a INT, b STRING)'
    """

    fields: tuple[Field, ...]

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, position: int) -> Field:
        return self.fields[position]

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.fields)) + ")"

    @property
    def names(self) -> tuple[str, ...]:
        """The field names, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def types(self) -> tuple[Type, ...]:
        """The field types, in order."""
        return tuple(field.type for field in self.fields)

    def position(self, name: str) -> int | None:
        """The position of the field called ``name`` (case-insensitive), or None."""
        wanted = name.lower()
        for index, field in enumerate(self.fields):
            if field.name.lower() == wanted:
                return index
        return None
