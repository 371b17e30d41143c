"""Tables of PostgreSQL: their columns, their keys, and which values go where unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from millpond.errors import MillpondError
from millpond.schema import Type

Fault = Callable[[str], MillpondError]
"""Makes an error of what is wrong."""

WHOLE = {"smallint": 0, "integer": 1, "bigint": 2, "numeric": 3}
"""Types of whole numbers, the wider the later."""

TAKES = {
    Type.BOOLEAN: ("boolean",),
    Type.INT: ("integer", "bigint", "numeric"),
    Type.BIGINT: ("bigint", "numeric"),
    Type.DECIMAL: ("numeric",),
    Type.DOUBLE: ("double precision",),
    Type.STRING: ("text", "character varying", "json", "jsonb", "uuid"),
    Type.BINARY: ("bytea",),
    Type.DATE: ("date",),
    Type.TIMESTAMP: ("timestamp with time zone", "timestamp without time zone"),
    Type.ARRAY: ("an array of what its elements go into",),
    Type.STRUCT: ("jsonb", "json"),
    Type.MAP: ("jsonb", "json"),
}
"""Into which columns values go, and are what they were; the first is the usual one."""

_DIGITS = re.compile(r"numeric\((\d+),(\d+)\)")
_LENGTH = re.compile(r"\(\d+\)")


@dataclass(frozen=True)
class TableColumn:
    """A column of a table, and its type as PostgreSQL writes it."""

    name: str
    type: str
    is_generated: bool = False
    """Whether its values are computed from those of others."""


@dataclass(frozen=True)
class Table:
    """A table as the database has it."""

    name: str
    """As SQL has it, with quotes where they are needed, and its schema."""
    schema: str
    columns: tuple[TableColumn, ...]
    keys: tuple[frozenset[str], ...]
    """The columns of each constraint or index by which rows are unique."""

    def column(self, name: str) -> TableColumn | None:
        """The column of a name: written like this, else in small letters, else in any case."""
        for form in (str, str.lower):
            found = [each for each in self.columns if each.name == form(name)]
            if found:
                return found[0]
        found = [each for each in self.columns if each.name.lower() == name.lower()]
        return found[0] if len(found) == 1 else None


def quoted(name: str) -> str:
    """A name as SQL takes it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str]) -> str:
    """Names as SQL takes them."""
    return ", ".join(map(quoted, names))


def takes(kind: Type, column: TableColumn) -> bool:
    """Whether all values of a type are the same values in a column."""
    if kind is Type.NULL:
        return True
    if is_flat(kind):
        inner = replace(column, type=column.type.removesuffix("[]"))
        return inner.type != column.type and takes(kind.element, inner)
    bare = column.type
    if kind in (Type.STRING, Type.TIMESTAMP):  # a text that is too long is refused by the server
        bare = _LENGTH.sub("", bare) if kind is Type.STRING else bare.replace("(6)", "")
    digits = _DIGITS.fullmatch(bare)
    if kind.is_decimal and digits:
        precision, scale = int(digits[1]), int(digits[2])
        return scale >= kind.scale and precision - scale >= kind.precision - kind.scale
    return bare in taken_by(kind)


def is_flat(kind: Type) -> bool:
    """Whether it is an ARRAY that PostgreSQL has as an array; other values in values are JSON."""
    return kind.is_array and not kind.element.is_nested


def taken_by(kind: Type) -> tuple[str, ...]:
    """Into which columns values of a type go."""
    return TAKES[Type.STRUCT if kind.is_array and not is_flat(kind) else kind.family]


def usual_type(kind: Type) -> str:
    """The type of a column that is made for values."""
    if kind.is_decimal:
        return f"numeric({kind.precision},{kind.scale})"
    if is_flat(kind):
        return f"{usual_type(kind.element)}[]"
    return "text" if kind is Type.NULL else taken_by(kind)[0]


def found_table(connection: Any, text: str, fault: Fault) -> Table | None:
    """A table by the name that a statement has for it; None if it is not there."""
    (oid,) = connection.execute("SELECT to_regclass(%s)::oid", (text,)).fetchone()
    if oid is None:
        return None
    schema, name, kind = connection.execute(
        "SELECT nspname, relname, relkind::text FROM pg_class JOIN pg_namespace n "
        "ON n.oid = relnamespace WHERE pg_class.oid = %s",
        (oid,),
    ).fetchone()
    if kind not in ("r", "p"):
        raise fault("it is no table")
    columns = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod), "
        "coalesce(to_jsonb(a)->>'attgenerated', '') <> '' FROM pg_attribute a "
        "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (oid,),
    ).fetchall()
    keys = connection.execute(
        "SELECT array(SELECT attname::text FROM pg_attribute WHERE attrelid = indrelid "
        "AND attnum = ANY((indkey::int2[])[0:indnkeyatts - 1])) FROM pg_index WHERE indrelid = %s "
        "AND indisunique AND indisvalid AND indimmediate AND indpred IS NULL AND indexprs IS NULL",
        (oid,),
    ).fetchall()
    return Table(
        f"{quoted(schema)}.{quoted(name)}",
        schema,
        tuple(TableColumn(*each) for each in columns),
        tuple(frozenset(each) for (each,) in keys),
    )


@dataclass(frozen=True)
class SourceTable:
    """A table as it is read: its number, its key, and what SQL calls it."""

    oid: int
    table: Table
    key: tuple[tuple[str, str], ...]
    """The columns of the primary key, and their types with how they are compared."""

    @staticmethod
    def found(connection: Any, name: str, fault: Fault) -> SourceTable:
        """A table by the name that a statement has for it."""
        table = found_table(connection, name, fault)
        if table is None:
            raise fault("it is not there")
        oid, kind = connection.execute(
            "SELECT oid::bigint, relkind::text FROM pg_class WHERE oid = %s::regclass",
            (table.name,),
        ).fetchone()
        if kind == "p":
            raise fault("it has partitions, of which each is a table; read those")
        key = connection.execute(
            "SELECT attname::text, format_type(atttypid, atttypmod) || coalesce((SELECT "
            "' COLLATE ' || quote_ident(nspname) || '.' || quote_ident(collname) "
            "FROM pg_collation c JOIN pg_namespace n ON n.oid = collnamespace "
            "WHERE c.oid = attcollation), '') FROM pg_index "
            "JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
            "WHERE indrelid = %s AND indisprimary ORDER BY array_position(indkey::int2[], attnum)",
            (oid,),
        ).fetchall()
        return SourceTable(oid, table, tuple(tuple(each) for each in key))
