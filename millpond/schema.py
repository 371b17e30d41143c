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
        "fields",
        "is_array",
        "is_decimal",
        "is_map",
        "is_nested",
        "is_number",
        "is_struct",
        "key",
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
    """Of an ARRAY the type of its elements, of a MAP that of its values; else the type itself."""
    key: Type
    """Of a MAP the type of its keys, of others the type itself."""
    fields: tuple[Field, ...]
    """Of a STRUCT what it has, in order; of others nothing."""
    is_decimal: bool
    """Whether it is a DECIMAL."""
    is_array: bool
    """Whether it is an ARRAY."""
    is_struct: bool
    """Whether it is a STRUCT."""
    is_map: bool
    """Whether it is a MAP."""
    is_nested: bool
    """Whether it is one of these three, whose values have values in them: another thing outside of
    the engine than within."""
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
    STRUCT: ClassVar[Type]
    """The family of structs, and the type of none."""
    MAP: ClassVar[Type]
    """The family of maps, and the type of none."""
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
        key: Type | None = None,
        fields: tuple[Field, ...] = (),
    ) -> None:
        self.value, self.family = value, family or self
        self.precision, self.scale, self.is_decimal = precision, scale, precision > 0
        self.element, self.key, self.fields = element or self, key or self, fields
        self.is_map, self.is_struct = key is not None, bool(fields)
        self.is_array = element is not None and not self.is_map
        self.is_nested = self.is_array or self.is_map or self.is_struct
        self.is_number = value in ("INT", "BIGINT", "DOUBLE") or self.is_decimal

    @staticmethod
    def of(value: str) -> Type:
        """The type that is written so."""
        known = _TYPES.get(value)
        if known is not None:
            return known
        word, inner = inside_brackets(value)
        if word == "ARRAY":
            return Type.array(Type.of(inner))
        if word == "MAP":
            return Type.map(*map(Type.of, apart(inner)))
        if word == "STRUCT":
            pairs = (part.split(" ", 1) for part in apart(inner))
            return Type.struct(tuple(Field(name, Type.of(of)) for name, of in pairs))
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

    @staticmethod
    def map(key: Type, element: Type) -> Type:
        """Values by keys."""
        made = Type(f"MAP<{key}, {element}>", Type.MAP, element=element, key=key)
        return _TYPES.setdefault(made.value, made)

    @staticmethod
    def struct(fields: tuple[Field, ...]) -> Type:
        """Values that have names.

        >>> pair = Type.struct((Field("a", Type.INT), Field("b", Type.decimal(5, 2))))
        >>> str(pair), Type.of(str(Type.map(Type.STRING, pair))).element is pair
        ('STRUCT<a INT, b DECIMAL(5, 2)>', True)
        """
        made = Type(f"STRUCT<{', '.join(map(str, fields))}>", Type.STRUCT, fields=fields)
        return _TYPES.setdefault(made.value, made)

    @property
    def entries(self) -> Type:
        """Of a MAP the ARRAY of its keys and values."""
        return Type.array(Type.struct((Field("key", self.key), Field("value", self.element))))

    def field(self, name: str) -> Field | None:
        """The field of a STRUCT that is called so, in any case."""
        return next((each for each in self.fields if each.name.lower() == name.lower()), None)

    def __reduce__(self) -> tuple[Callable[[str], Type], tuple[str]]:
        """Sent to another process, it is the one object there."""
        return Type.of, (self.value,)

    __hash__ = object.__hash__
    """There is one of each; Enum's own hash is a call of Python's at each look into a table."""

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return f"Type.{self.value}" if self is self.family else f"Type.of({self.value!r})"


def inside_brackets(text: str) -> tuple[str, str]:
    """What stands before the < of a type, and what within; of other types all, and nothing.

    >>> inside_brackets("ARRAY<MAP<STRING, INT>>"), inside_brackets("INT")
    (('ARRAY', 'MAP<STRING, INT>'), ('INT', ''))
    """
    word, _, inner = text.partition("<")
    return (word.strip(), inner.rstrip()[:-1]) if inner.rstrip().endswith(">") else (text, "")


def apart(text: str) -> list[str]:
    """What commas separate that stand in no brackets.

    >>> apart("a DECIMAL(5, 2), b MAP<STRING, INT>")
    ['a DECIMAL(5, 2)', 'b MAP<STRING, INT>']
    """
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


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
Type.STRUCT = _TYPES.setdefault("STRUCT", Type("STRUCT"))
Type.MAP = _TYPES.setdefault("MAP", Type("MAP"))
Type.NULL = _TYPES.setdefault("NULL", Type("NULL"))

NESTED = (Type.ARRAY, Type.STRUCT, Type.MAP)
"""The families of types whose values have values in them."""
FAMILIES = (*SIMPLE_TYPES[:3], Type.DECIMAL, *SIMPLE_TYPES[3:], *NESTED)
"""All types, each DECIMAL, ARRAY, STRUCT and MAP being one of them."""
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
    def has_nested(self) -> bool:
        """Whether a field is another thing outside of the engine than within."""
        return any(field.type.is_nested for field in self.fields)

    def position(self, name: str) -> int | None:
        """The position of the field called ``name`` (case-insensitive), or None."""
        wanted = name.lower()
        for index, field in enumerate(self.fields):
            if field.name.lower() == wanted:
                return index
        return None
