"""Arrays of PostgreSQL as texts: what is written is read again, and what the server writes too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.connectors.nested import outside_table
from millpond.connectors.postgres_arrays import array_text, elements_of
from millpond.connectors.postgres_tables import Table, TableColumn, usual_type
from millpond.connectors.postgres_values import Columns
from millpond.errors import InputError
from millpond.schema import Type
from tests.connectors.declarations import schema


@given(st.lists(st.none() | st.text(alphabet='ab"\\{},N \n', max_size=5)))
def test_texts_are_read_again(values: list[str | None]) -> None:
    assert elements_of(array_text(values)) == values


def columns(of: str, *types: str) -> Columns:
    names = schema(of).names
    there = tuple(TableColumn(n, t) for n, t in zip(names, types, strict=True))
    return Columns.of(schema(of), Table("t", "public", there, ()), InputError)


def test_what_the_server_writes_is_read() -> None:
    of = "n ARRAY<INT>, b ARRAY<BOOLEAN>, y ARRAY<BINARY>, s ARRAY<STRING>, d ARRAY<DECIMAL(4,2)>"
    reading = columns(
        of, "integer[]", "boolean[]", "bytea[]", "character varying(9)[]", "numeric[]"
    )
    rows = [
        ("{1,NULL,-3}", "{t,f,NULL}", '{"\\\\xcafe"}', '{a,"b c",NULL,"NULL","\\""}', "{1.50}"),
        ("{}", None, "[0:0]={NULL}", "{}", "{0.25,NULL}"),
    ]
    table = outside_table(reading.table(rows, str), schema(of).types)
    assert [tuple(map(str, row.values())) for row in table.to_pylist()] == [
        (
            "[1, None, -3]", "[True, False, None]", r"[b'\xca\xfe']",
            """['a', 'b c', None, 'NULL', '"']""", "[Decimal('1.50')]",
        ),
        ("[]", "None", "[None]", "[]", "[Decimal('0.25'), None]"),
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"column n: '\{\{1\},\{2\}\}' is not an ARRAY<INT>"):
        reading.table([("{{1},{2}}", None, None, None, None)], str)


def test_json_is_read_as_structs_and_maps() -> None:
    of = "s STRUCT<a INT, b STRING>, m MAP<STRING, INT>, l ARRAY<STRUCT<x DOUBLE>>"
    reading = columns(of, "jsonb", "json", "jsonb")
    rows = [('{"b": "x", "a": 1}', '{"k": null}', '[{"x": 1}, null]'), (None, "null", "[]")]
    table = outside_table(reading.table(rows, str), schema(of).types)
    assert table.to_pylist(maps_as_pydicts="strict") == [
        {"s": {"a": 1, "b": "x"}, "m": {"k": None}, "l": [{"x": 1.0}, None]},
        {"s": None, "m": None, "l": []},
    ]
    with pytest.raises(InputError, match=r"column s: .* is not a STRUCT<a INT, b STRING>"):
        reading.table([('{"a": "x"}', None, None)], str)


@pytest.mark.parametrize(
    ("of", "type_", "said"),
    [
        ("a ARRAY<INT>", "bigint[]", "which is no ARRAY<INT>; declare it as ARRAY<BIGINT> or STR"),
        ("a ARRAY<INT>", "integer", "which is no ARRAY<INT>; declare it as INT or BIGINT"),
        ("a STRUCT<a INT>", "text", "which is no STRUCT<a INT>; declare it as STRING"),
        ("a INT", "integer[]", "which is no INT; declare it as ARRAY<INT> or ARRAY<BIGINT>"),
        ("a INT[][]", "integer[]", "which is no ARRAY<ARRAY<INT>>; declare it as ARRAY<INT>"),
    ],
)
def test_other_columns_are_refused(of: str, type_: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        columns(of, type_)


def test_a_table_that_is_made_has_nested() -> None:
    assert usual_type(Type.array(Type.decimal(9, 2))) == "numeric(9,2)[]"
    assert usual_type(Type.of("ARRAY<MAP<STRING, INT>>")) == "jsonb"
