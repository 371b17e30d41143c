"""Types, columns, schemas and the time domain: the vocabulary every layer shares."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

BEGINNING = -(2**62)
"""The instant before all instants: what holds there was never inserted (printed as ``null``)."""

FOREVER = 2**62
"""The end of an element that is not known to end; also the heartbeat of a finished source."""


class Type:
    """A value type of CQL. There is one object for each, also of those with parameters.

    What is said of all DECIMALs is in tables under ``Type.DECIMAL``, the ``family`` of each.

    >>> Type.decimal(10, 2) is Type.of("DECIMAL(10, 2)"), str(Type.decimal(10, 2))
    (True, 'DECIMAL(10, 2)')
    """

    __slots__ = (
        "element",
        "family",
        "is_array",
        "is_decimal",
        "is_number",
        "precision",
        "scale",
        "value",
    )

    value: str
    """The type as it is written."""
    family: Type
    """The type without its parameters."""
    precision: int
    scale: int
    """Of a DECIMAL: how many digits it has, and how many of them are behind the point."""
    element: Type
    """Of an ARRAY the type of its elements, of others the type itself."""
    is_decimal: bool
    """Whether it is a DECIMAL."""
    is_array: bool
    """Whether it is an ARRAY."""
    is_number: bool
    """Whether arithmetic applies."""

    BOOLEAN: ClassVar[Type]
    INT: ClassVar[Type]
    BIGINT: ClassVar[Type]
    DECIMAL: ClassVar[Type]
    """The family of decimals, and the type of none."""
    DOUBLE: ClassVar[Type]
    STRING: ClassVar[Type]
    BINARY: ClassVar[Type]
    """Any bytes."""
    ARRAY: ClassVar[Type]
    """The family of arrays, and the type of none."""
    DATE: ClassVar[Type]
    TIMESTAMP: ClassVar[Type]
    NULL: ClassVar[Type]
    """The type of a bare NULL literal, before it takes the type of its surroundings."""

    def __init__(
        self,
        value: str,
        family: Type | None = None,
        precision: int = 0,
        scale: int = 0,
        element: Type | None = None,
    ) -> None:
        self.value, self.family = value, family or self
        self.precision, self.scale, self.is_decimal = precision, scale, precision > 0
        self.element, self.is_array = element or self, element is not None
        self.is_number = value in ("INT", "BIGINT", "DOUBLE") or self.is_decimal

    @staticmethod
    def of(value: str) -> Type:
        """The type that is written so."""
        known = _TYPES.get(value)
        if known is not None:
            return known
        if value.startswith("ARRAY<"):
            return Type.array(Type.of(value.removeprefix("ARRAY<").removesuffix(">")))
        return Type.decimal(*map(int, _NUMBER.findall(value)))

    @staticmethod
    def decimal(precision: int, scale: int) -> Type:
        """Exact numbers of so many digits, some of them behind the point."""
        made = Type(f"DECIMAL({precision}, {scale})", Type.DECIMAL, precision, scale)
        return _TYPES.setdefault(made.value, made)

    @staticmethod
    def array(element: Type) -> Type:
        """Lists of values of one type.

        >>> Type.array(Type.array(Type.INT)) is Type.of("ARRAY<ARRAY<INT>>")
        True
        """
        made = Type(f"ARRAY<{element}>", Type.ARRAY, element=element)
        return _TYPES.setdefault(made.value, made)

    def __reduce__(self) -> tuple[Callable[[str], Type], tuple[str]]:
        """Sent to another process, it is the one object there."""
        return Type.of, (self.value,)

    __hash__ = object.__hash__
    """There is one of each; Enum's own hash is a call of Python's at each look into a table."""

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return f"Type.{self.value}" if self is self.family else f"Type.of({self.value!r})"


_TYPES: dict[str, Type] = {}
_NUMBER = re.compile(r"\d+")

SIMPLE_TYPES = tuple(
    _TYPES.setdefault(word, Type(word))
    for word in ("BOOLEAN", "INT", "BIGINT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP")
)
"""Those without parameters."""
Type.BOOLEAN, Type.INT, Type.BIGINT, Type.DOUBLE = SIMPLE_TYPES[:4]
Type.STRING, Type.BINARY, Type.DATE, Type.TIMESTAMP = SIMPLE_TYPES[4:]
Type.DECIMAL = _TYPES.setdefault("DECIMAL", Type("DECIMAL"))
Type.ARRAY = _TYPES.setdefault("ARRAY", Type("ARRAY"))
Type.NULL = _TYPES.setdefault("NULL", Type("NULL"))

FAMILIES = (*SIMPLE_TYPES[:3], Type.DECIMAL, *SIMPLE_TYPES[3:], Type.ARRAY)
"""All types, each DECIMAL and each ARRAY being one of them."""
MOST_DIGITS = 38
"""Of a DECIMAL."""


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

    @property
    def has_decimals(self) -> bool:
        """Whether a field is a DECIMAL or has some, of which no digit is to be lost."""
        return any("DECIMAL" in field.type.value for field in self.fields)

    @property
    def has_arrays(self) -> bool:
        """Whether a field is an ARRAY, which is another thing outside of the engine than within."""
        return any(field.type.is_array for field in self.fields)

    def position(self, name: str) -> int | None:
        """The position of the field called ``name`` (case-insensitive), or None."""
        wanted = name.lower()
        for index, field in enumerate(self.fields):
            if field.name.lower() == wanted:
                return index
        return None
