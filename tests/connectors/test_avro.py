"""Records of Avro as rows and as results, without a broker."""

from __future__ import annotations

import io
import json
import random
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from millpond.connectors.avro import AvroColumns, AvroResults, AvroSchema
from millpond.connectors.nested import outside_table, outside_type
from millpond.connectors.sinks import Results
from millpond.errors import InputError, OutputError
from millpond.schema import Field, Schema, Type
from tests.connectors.declarations import schema, tuples

fastavro = pytest.importorskip("fastavro", reason="pip install 'millpond[avro]' brings it")

EVERYTHING = [
    ("i", "int", "INT"),
    ("l", ["null", "long"], "BIGINT"),
    ("f", "float", "DOUBLE"),
    ("d", "double", "DOUBLE"),
    ("o", "boolean", "BOOLEAN"),
    ("s", {"type": "string", "avro.java.string": "String"}, "STRING"),
    ("e", {"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "STRING"),
    ("e2", "E", "STRING"),
    ("u", {"type": "string", "logicalType": "uuid"}, "STRING"),
    ("at", {"type": "int", "logicalType": "date"}, "DATE"),
    ("ms", {"type": "long", "logicalType": "timestamp-millis"}, "TIMESTAMP"),
    ("us", [{"type": "long", "logicalType": "local-timestamp-micros"}, "null"], "TIMESTAMP"),
    ("x", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "DOUBLE"),
    ("z", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}, "BIGINT"),
]


def fault(said: str) -> InputError:
    return InputError(f"S: {said}")


def avro(*fields, registry_id: int = 0) -> AvroSchema:
    text = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}
    return AvroSchema(json.dumps(text), registry_id, fault)


def message(given: AvroSchema, fields, row) -> bytes:
    """As others write it: by the whole schema."""
    whole = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}
    content = io.BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(whole), row)
    return content.getvalue()


def test_values_of_all_types_are_read() -> None:
    fields = [(name, kind) for name, kind, _ in EVERYTHING]
    columns = schema(", ".join(f"{name.upper()} {kind}" for name, _, kind in EVERYTHING))
    row = (1, None, 0.5, 2.5, True, "é", "Y", "X", UUID(int=7), date(2026, 1, 2))
    row = (*row, datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 7), Decimal("-1.25"))
    exact = 9_007_199_254_740_993
    row = (*row, Decimal(exact))
    sent = {name: value for (name, _), value in zip(fields, row, strict=True)}
    sent["ms"], sent["us"] = 1_767_225_600_000, 1_767_225_600_000_007
    known = avro(*fields)
    found = AvroColumns(known, columns, fault).table([message(known, fields, sent), None], str)
    assert tuples(found) == [(*row[:8], str(row[8]), *row[9:12], -1.25, exact), (None,) * len(row)]


def test_decimals_keep_their_digits() -> None:
    fields = [("y", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2})]
    columns = Schema((Field("y", Type.decimal(38, 2)),))
    exact = Decimal("123456789012345678901234567890123456.78")
    known = avro(*fields)
    found = AvroColumns(known, columns, fault).table([message(known, fields, {"y": exact})], str)
    assert tuples(found) == [(exact,)]
    with pytest.raises(InputError, match="it can have none: CAST it"):
        AvroResults(avro(("weight", "long"), *fields), Results("q", columns).columns, fault)


def test_bytes_are_read_and_written() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 2}
    fields = [("weight", "long"), ("b", "bytes"), ("f", ["null", fixed])]
    columns = schema("weight BIGINT, b BINARY, f BINARY")
    table = pa.table(
        [[1, 1], [1, 1], pa.array([b"", b"\0\xff"]), pa.array([None, b"\xca\xfe"])],
        names=["ts", "weight", "b", "f"],
    )
    written = list(results("b BINARY, f BINARY", *fields).messages(table))
    read = AvroColumns(avro(*fields), columns, fault)
    assert tuples(read.table(written, str)) == [(1, b"", None), (1, b"\0\xff", b"\xca\xfe")]


def test_a_time_that_python_cannot_hold_is_read() -> None:
    fields = [("at", {"type": "long", "logicalType": "timestamp-micros"})]
    known = avro(*fields)
    far = message(known, fields, {"at": 2**60})
    found = AvroColumns(known, schema("at TIMESTAMP"), fault).table([far], str)
    assert found["at"].cast(pa.int64()).to_pylist() == [2**60]


def test_malformed_bytes_are_errors_and_never_wrong_rows() -> None:
    fields = [("id", "long"), ("s", ["null", "string"]), ("v", "double")]
    known, rng = avro(*fields, registry_id=7), random.Random(3)
    columns = AvroColumns(known, schema("id BIGINT, s STRING, v DOUBLE"), fault)
    good = known.encoded({"id": 2**40, "s": "text", "v": 1.5})
    assert tuples(columns.table([good], str)) == [(2**40, "text", 1.5)]
    wrong = [good[:end] for end in range(len(good))] + [good + b"\0", b"\x01" + good[1:]]
    wrong += [rng.randbytes(rng.randrange(1, 30)) for _ in range(300 - len(wrong))]
    for each in wrong:
        with pytest.raises(InputError, match="row 3: "):
            columns.table([good] * 3 + [each], lambda row: f"row {row}")


def test_numbers_with_more_bits_or_digits_than_there_is_room_for_are_bad_rows() -> None:
    exact = {"type": "bytes", "logicalType": "decimal", "precision": 100, "scale": 2}
    for kind, column, large in (
        ("int", "v INT", b"\x80\x80\x80\x80\x10"),  # 2^31
        ({"type": "int", "logicalType": "date"}, "v DATE", b"\x80\x80\x80\x80\x10"),
        ({"type": "array", "items": "int"}, "v ARRAY<INT>", b"\x02\x80\x80\x80\x80\x10\0"),
        (exact, "v DECIMAL(38,2)", b"\x50" + b"\x7f" * 40),
        (exact, "v DECIMAL(38,2)", b"\xf0\x2e" + b"\x7f" * 3000),
    ):
        columns = AvroColumns(avro(("v", kind)), schema(column), fault)
        with pytest.raises(InputError, match=r"row 1, column v: .* is too large for "):
            columns.table([b"\0", large, large], lambda row: f"row {row}")


@pytest.mark.parametrize(
    ("text", "registry_id", "complaint"),
    [
        ("", 0, "S: format = 'avro' needs the schema of the messages, as JSON: schema = '{"),
        ("{", 0, "schema is no JSON: "),
        ('"long"', 0, "schema is the schema of a record, with fields"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', 0, "no schema of Avro"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Q"}]}',
            0,
            "the schema has a type that it lacks: Q",
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "long"}]}',
            0,
            "S: the schema has no field a; it has: b",
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "bytes"}]}',
            0,
            "column a is INT, and the schema has bytes for it; it can have int or ",
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "long"]}]}',
            0,
            "the schema has a union for it",
        ),
        (
            """{"type": "record", "name": "R", "fields": [{"name": "a", "type":
                {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -2}}]}""",
            0,
            "this is no schema of Avro: field a has -2 digits behind the point",
        ),
        ("{}", "x", "schema is the schema of a record"),
        (
            '{"type": "record", "name": "R", "fields": []}',
            "x",
            "registry_id is the number of the schema, not 'x'",
        ),
    ],
)
def test_wrong_schemas_are_refused(text, registry_id, complaint) -> None:
    with pytest.raises(InputError) as caught:
        AvroColumns(AvroSchema(text, registry_id, fault), schema("a INT"), fault)
    assert complaint in str(caught.value)


def results(columns: str, *fields) -> AvroResults:
    return AvroResults(avro(*fields), Results("q", schema(columns)).columns, fault)


def test_arrays_are_arrays_of_avro() -> None:
    item = {"type": "int", "logicalType": "date"}
    fields = [
        ("a", {"type": "array", "items": ["null", "long"]}),
        ("d", ["null", {"type": "array", "items": item}]),
        ("n", {"type": "array", "items": {"type": "array", "items": "string"}}),
    ]
    columns = "a ARRAY<BIGINT>, d ARRAY<DATE>, n ARRAY<ARRAY<STRING>>"
    types = schema(columns).types
    rows = [([1, None], None, [["x"], []]), ([], [date(1, 1, 1)], [])]
    kinds = map(outside_type, types)
    data = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    ends = [("weight", "long"), *fields]
    written = results(columns, *ends).messages(
        pa.table([[1, 2], [1, 1], *data], names=["ts", "weight", "a", "d", "n"])
    )
    read = AvroColumns(avro(*ends), schema(columns), fault).table(list(written), str)
    assert tuples(outside_table(read, types)) == rows
    with pytest.raises(InputError, match="the schema has long for BOOLEAN; it can have boolean"):
        AvroColumns(avro(*fields), schema("a ARRAY<BOOLEAN>"), fault)
    with pytest.raises(InputError, match="column d is DATE, and the schema has array for it"):
        AvroColumns(avro(*fields), schema("d DATE"), fault)


def test_structs_are_records_and_maps_are_maps() -> None:
    inner = {"name": "P", "type": "record", "fields": [{"name": "X", "type": ["null", "double"]}]}
    parts = [{"name": "N", "type": "int"}, {"name": "p", "type": ["null", inner]}]
    fields = [
        ("s", ["null", {"name": "T", "type": "record", "fields": parts}]),
        ("m", {"type": "map", "values": {"type": "array", "items": "P"}}),
    ]
    columns = "s STRUCT<n INT, p STRUCT<x DOUBLE>>, m MAP<STRING, ARRAY<STRUCT<x DOUBLE>>>"
    types = schema(columns).types
    pairs = [("a", [{"x": 1.5}, {"x": None}]), ("b", [])]
    rows = [({"n": 1, "p": {"x": 0.5}}, pairs), ({"n": 2, "p": None}, []), (None, [])]
    kinds = map(outside_type, types)
    data = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    ends = [("weight", "long"), *fields]
    given = pa.table([[1] * 3, [1] * 3, *data], names=["ts", "weight", "s", "m"])
    written = list(results(columns, *ends).messages(given))
    read = AvroColumns(avro(*ends), schema(columns), fault).table(written, str)
    assert tuples(outside_table(read, types)) == rows
    narrow = schema("s STRUCT<p STRUCT<x DOUBLE>>")
    some = AvroColumns(avro(*ends), narrow, fault).table(written[:1], str)
    assert tuples(outside_table(some, narrow.types)) == [({"p": {"x": 0.5}},)]
    for of, said in (
        ("s STRUCT<z INT>", "column s has z INT, and the schema's record has: N, p"),
        ("s STRUCT<n BOOLEAN>", "the schema has int for BOOLEAN; it can have boolean"),
        ("m MAP<INT, ARRAY<STRUCT<x DOUBLE>>>", "keys of Avro's maps are STRINGs"),
        ("m STRUCT<n INT>", "the schema has map for it; it can have record"),
    ):
        with pytest.raises(InputError, match=said):
            AvroColumns(avro(*fields), schema(of), fault)
    with pytest.raises(InputError, match="which has no p of the schema"):
        results("s STRUCT<n INT>", ("weight", "long"), fields[0])
    own = {"name": "L", "type": "record", "fields": [{"name": "next", "type": ["null", "L"]}]}
    with pytest.raises(InputError, match="the schema has a record that has itself in it"):
        AvroColumns(avro(("l", own)), schema("l STRUCT<next STRUCT<next INT>>"), fault)


def test_results_are_written_as_others_read_them() -> None:
    fields = [
        ("weight", "long"),
        ("a", ["null", "int"]),
        ("at", {"type": "long", "logicalType": "timestamp-micros"}),
        ("day", {"type": "int", "logicalType": "date"}),
        ("s", "string"),
    ]
    columns = "a INT, at TIMESTAMP, day DATE, s STRING"
    found = results(columns, *fields)
    moment, day = datetime(2026, 1, 1, 12), date(2026, 1, 2)
    types = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("a", pa.int32())])
    types = pa.schema(
        [*types, ("at", pa.timestamp("us")), ("day", pa.date32()), ("s", pa.string())]
    )
    table = pa.table([[1], [-1], [None], [moment], [day], ["é"]], schema=types)
    (written,) = found.messages(table)
    read = AvroColumns(avro(*fields), schema(f"weight BIGINT, {columns}"), fault)
    assert tuples(read.table([written], str)) == [(-1, None, moment, day, "é")]
    nothing = table.set_column(5, "s", pa.array([None], pa.string()))
    with pytest.raises(InputError, match="S: s is NULL, and the schema has no null for it"):
        list(found.messages(nothing))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ([("a", "int")], "the schema has no field weight; only ts may be left out"),
        ([("weight", "long"), ("b", "int")], "the schema has a field b; columns: ts, weight, a"),
        ([("weight", "long"), ("a", "float")], "column a is INT, and the schema has float for it"),
    ],
)
def test_schemas_that_do_not_fit_results_are_refused(fields, complaint) -> None:
    with pytest.raises((InputError, OutputError), match=complaint):
        results("a INT", *fields)
