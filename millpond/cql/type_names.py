"""What the names of types mean: VARCHAR, DECIMAL(10, 2), STRUCT<a INT, b ARRAY<STRING>>."""

import re
from collections.abc import Sequence

from millpond.cql.text.places import StatementError
from millpond.schema import FAMILIES, MOST_DIGITS, Field, Type, apart, inside_brackets
from millpond.spelling import nearest

TYPE_NAMES = {
    "BOOLEAN": Type.BOOLEAN,
    "BOOL": Type.BOOLEAN,
    "INT": Type.INT,
    "INTEGER": Type.INT,
    "SMALLINT": Type.INT,
    "TINYINT": Type.INT,
    "BIGINT": Type.BIGINT,
    "LONG": Type.BIGINT,
    "DECIMAL": Type.DECIMAL,
    "NUMERIC": Type.DECIMAL,
    "DOUBLE": Type.DOUBLE,
    "FLOAT": Type.DOUBLE,
    "REAL": Type.DOUBLE,
    "STRING": Type.STRING,
    "TEXT": Type.STRING,
    "VARCHAR": Type.STRING,
    "CHAR": Type.STRING,
    "BINARY": Type.BINARY,
    "VARBINARY": Type.BINARY,
    "BYTEA": Type.BINARY,
    "BLOB": Type.BINARY,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMPTZ": Type.TIMESTAMP,
    "TIMESTAMP_LTZ": Type.TIMESTAMP,
}
_INSTEAD = {
    "NUMBER": "DECIMAL(10, 2), DOUBLE or BIGINT",
    "DATETIME": "TIMESTAMP",
    "TIME": "TIMESTAMP, or BIGINT",
    "UUID": "STRING",
    "JSON": "STRING, and json_value(s, '$.items[0].price') in queries",
    "JSONB": "STRING, and json_value(s, '$.items[0].price') in queries",
    "ARRAY": "ARRAY<INT>, which says of what",
    "MAP": "MAP<STRING, INT>, which says what its keys and values are",
    "ROW": "STRUCT<a INT, b STRING>, which says what is in it",
    "STRUCT": "STRUCT<a INT, b STRING>, which says what is in it",
}
_ELEMENTS = re.compile(r"(.+?)(?:\[\]|\s+ARRAY)", re.IGNORECASE)
_PARAMETERS = re.compile(r"(\w+)\((.*)\)")
_NAME = re.compile(r"[^\W\d]\w*")


def named_type(name: str, offset: int | None) -> Type:
    """The type that a name such as VARCHAR, DECIMAL(10, 2) or ARRAY<INT> stands for."""
    if elements := _ELEMENTS.fullmatch(name.strip()):
        return Type.array(named_type(elements[1], offset))
    word, inner = inside_brackets(name.strip())
    if inner and word.upper() in _NESTED:
        return _NESTED[word.upper()](inner, offset)
    parts = _PARAMETERS.fullmatch(name.upper())
    word = parts[1] if parts else name.upper()
    if word in TYPE_NAMES:
        found = TYPE_NAMES[word]
        return _decimal(word, parts[2] if parts else "", offset) if found is Type.DECIMAL else found
    if word in _INSTEAD:
        raise StatementError(f"the type {word} is not supported; use {_INSTEAD[word]}", offset)
    hint = nearest(word, TYPE_NAMES) or ";"
    known = ", ".join(map(str, FAMILIES))
    raise StatementError(f'no type is called "{name}"{hint} known: {known}', offset)


def _decimal(word: str, parameters: str, offset: int | None) -> Type:
    """DECIMAL(p) or DECIMAL(p, s)."""
    numbers = [each.strip() for each in parameters.split(",")]
    if not parameters or len(numbers) > 2 or not all(each.isdecimal() for each in numbers):
        raise StatementError(
            f"{word} says how many digits there are, and how many of them behind the point: "
            f"{word}(10, 2)",
            offset,
        )
    precision, scale = (*map(int, numbers), 0)[:2]
    if not 1 <= precision <= MOST_DIGITS or scale > precision:
        raise StatementError(
            f"{word}({parameters}): from 1 to {MOST_DIGITS} digits, and not more of them behind "
            "the point",
            offset,
        )
    return Type.decimal(precision, scale)


def _array(inner: str, offset: int | None) -> Type:
    return Type.array(named_type(inner, offset))


def _map(inner: str, offset: int | None) -> Type:
    parts = apart(inner)
    if len(parts) != 2:
        raise StatementError("a MAP says what its keys and values are: MAP<STRING, INT>", offset)
    key, value = (named_type(part, offset) for part in parts)
    return map_of(key, value, offset)


def map_of(key: Type, value: Type, offset: int | None) -> Type:
    """The MAP of such keys and values, if keys can be told apart and written."""
    if key.is_nested or key is Type.DOUBLE:
        raise StatementError(
            f"keys of a MAP are texts, whole numbers, DECIMALs, times or truth values, not {key}",
            offset,
        )
    return Type.map(key, value)


def _struct(inner: str, offset: int | None) -> Type:
    return struct_of([_field(part, offset) for part in apart(inner)], offset)


def _field(part: str, offset: int | None) -> Field:
    name, _, type_ = part.partition(" ")
    if not type_:
        raise StatementError(
            f'the field "{name}" of a STRUCT has no type; write STRUCT<a INT, b STRING>', offset
        )
    return Field(name, named_type(type_, offset))


def struct_of(fields: Sequence[Field], offset: int | None) -> Type:
    """The STRUCT of these fields, if their names can be told apart and written."""
    lower = [field.name.lower() for field in fields]
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise StatementError(
                f'"{field.name}" is no name of a field: letters, digits and _, no digit first',
                offset,
            )
        if lower.count(field.name.lower()) > 1:
            raise StatementError(f'a STRUCT has two fields "{field.name}"', offset)
    return Type.struct(tuple(fields))


_NESTED = {"ARRAY": _array, "MAP": _map, "STRUCT": _struct, "ROW": _struct}
