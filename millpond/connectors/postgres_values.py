"""Rows of PostgreSQL's tables as they are read: texts as the server writes them, made values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millpond.connectors.arrays import opened_lists
from millpond.connectors.arrow import RowPosition, arrow_schema, conform
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.postgres_arrays import elements_of
from millpond.connectors.postgres_tables import Fault, SourceTable, Table, is_flat, quoted
from millpond.connectors.sources import Declaration
from millpond.connectors.times import check_times
from millpond.schema import NESTED, Schema, Type

Row = Sequence[str | None]

GIVES = {
    Type.BOOLEAN: ("boolean",),
    Type.INT: ("smallint", "integer"),
    Type.BIGINT: ("smallint", "integer", "bigint"),
    Type.DECIMAL: ("numeric", "smallint", "integer", "bigint"),
    Type.DOUBLE: ("double precision", "real", "numeric", "smallint", "integer"),
    Type.BINARY: ("bytea",),
    Type.DATE: ("date",),
    Type.TIMESTAMP: ("timestamp with time zone", "timestamp without time zone"),
    Type.STRUCT: ("json", "jsonb"),
    Type.MAP: ("json", "jsonb"),
}
"""Which columns are read as which type; as STRING all are, as PostgreSQL writes them."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table that a stream or relation has, in its order."""

    schema: Schema
    names: tuple[str, ...]
    types: tuple[str, ...]

    @staticmethod
    def of(schema: Schema, table: Table, fault: Fault) -> Columns:
        """Finds them by name; those that are missing, or hold other values, are refused."""
        names, types = [], []
        for field in schema.fields:
            column = table.column(field.name)
            if column is None:
                known = ", ".join(each.name for each in table.columns)
                raise fault(f"no column {field.name}; columns there: {known}")
            bare = column.type.partition("(")[0]
            bare += column.type.rpartition(")")[2] if "(" in column.type else ""
            if not _gives(bare, field.type):
                item = bare.removesuffix("[]")
                fitting = [kind for kind, given in GIVES.items() if item in given]
                if item != bare:
                    fitting = [
                        Type.array(kind) for kind in fitting if kind not in (Type.DECIMAL, *NESTED)
                    ]
                known = " or ".join([*map(str, fitting), "STRING"])
                raise fault(
                    f"column {column.name} is {column.type}, which is no {field.type}; declare it "
                    f"as {known}"
                )
            names.append(column.name)
            types.append(column.type)
        return Columns(schema, tuple(names), tuple(types))

    def refuse_generated(self, table: SourceTable, fault: Fault) -> None:
        """Refuses columns whose values are in no log, also those of the PRIMARY KEY."""
        generated = [each.name for each in table.table.columns if each.is_generated]
        for name in set(self.names).intersection(generated):
            raise fault(
                f"column {name} is generated, and the log does not have its values; leave it out "
                "and compute it in the query, or read the table by poll = 'key'"
            )
        for name in {name for name, _ in table.key}.intersection(generated):
            raise fault(
                f"column {name} of the PRIMARY KEY is generated, and the log does not have its "
                "values; have a key of other columns, or read the table by poll = 'key'"
            )

    @property
    def listed(self) -> str:
        """The columns as SQL takes them."""
        return ", ".join(map(quoted, self.names))

    def table(self, rows: Sequence[Row], where: RowPosition) -> pa.Table:
        """Rows of texts as values."""
        texts = list(zip(*rows, strict=True)) if rows else [()] * len(self.schema)
        arrays = [
            _array(column, field.type)
            for column, field in zip(texts, self.schema.fields, strict=True)
        ]
        names = [field.name for field in self.schema.fields]
        if not names:
            return pa.table({"": pa.nulls(len(rows))}).select([])
        return conform(pa.table(arrays, names=names), self.schema, where, read_text=True)

    def shown(self, row: Row) -> bytes:
        """A row as bad rows have it."""
        return json.dumps(dict(zip(self.names, row, strict=True)), ensure_ascii=False).encode()


def _gives(bare: str, type_: Type) -> bool:
    """Whether a column of PostgreSQL is read as a type."""
    if is_flat(type_):
        return bare.endswith("[]") and _gives(bare[:-2], type_.element)
    of_json = type_.is_nested and bare in GIVES[Type.STRUCT]
    return type_ is Type.STRING or of_json or bare in GIVES.get(type_.family, ())


def _lists(texts: Sequence[str | None], element: Type) -> pa.Array:
    """Texts of arrays as lists of texts; what has arrays within it stays a text, and is refused."""
    try:
        found = [elements_of(text) for text in texts]
    except ValueError:
        return pa.array(texts, pa.string())
    lists = opened_lists(pa.array(found, pa.list_(pa.string())))
    values = _array(lists.values.to_pylist(), element)
    return pa.ListArray.from_arrays(
        lists.offsets, values, mask=pa.array([f is None for f in found])
    )


def _array(texts: Sequence[str | None], type_: Type) -> pa.Array:
    """Texts as PostgreSQL writes values, as those that other sources have."""
    if is_flat(type_):
        return _lists(texts, type_.element)
    if type_ is Type.BINARY:
        found = [
            None if text is None else bytes.fromhex(text.removeprefix("\\x")) for text in texts
        ]
        return pa.array(found, pa.binary())
    if type_ is Type.BOOLEAN:
        texts = [_BOOLEANS.get(text, text) for text in texts]
    return pa.array(texts, pa.string())


_BOOLEANS: dict[str | None, str] = {"t": "true", "f": "false"}


@dataclass(frozen=True)
class TableRows:
    """Makes values of rows, and puts aside those that are none where the stream says so."""

    declaration: Declaration
    columns: Columns

    def read(
        self, rows: Sequence[Row], place: Callable[[int], str]
    ) -> tuple[pa.Table, list[BadRow], list[int]]:
        """The values of rows, the bad ones, and of each good row its number."""
        everything = range(len(rows))
        if not self.declaration.skips_bad_rows:
            return self._table(rows, everything, place), [], list(everything)
        found = salvaged(
            everything,
            lambda part: self._table(rows, part, place),
            lambda at, error: BadRow(place(at), str(error), self.columns.shown(rows[at])),
        )
        return told_apart(found, arrow_schema(self.declaration.schema).empty_table())

    def _table(
        self, rows: Sequence[Row], part: Sequence[int], place: Callable[[int], str]
    ) -> pa.Table:
        def where(row: int) -> str:
            return place(part[row])

        table = self.columns.table([rows[at] for at in part], where)
        check_times(table, self.declaration, where)
        return table
