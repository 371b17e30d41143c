"""STRUCTs and MAPs from end to end: their bytes, connectors, state, a restart, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.connectors.nested import inside, outside, outside_type, python_nested
from millpond.connectors.values import ValueGenerator
from millpond.errors import InputError, MillpondError, StateError
from millpond.schema import Field, Schema, Type
from millpond.server.arrow_body import arrow_table
from millpond.server.faults import RequestError
from millpond.server.formats import FORMATS, Heading
from millpond.server.tables import in_order, with_text, written
from tests.drawn_examples import examples
from tests.test_arrays import ELEMENTS

FIELDS = {f"f{n}": type_ for n, type_ in enumerate(ELEMENTS)}
EVERY = Type.struct(tuple(Field(name, type_) for name, type_ in FIELDS.items()))
DEEP = Type.of("STRUCT<m MAP<STRING, STRUCT<a ARRAY<BINARY>, n INT>>, l ARRAY<STRUCT<d DOUBLE>>>")
deep = st.fixed_dictionaries(
    {
        "m": st.none()
        | st.dictionaries(
            ELEMENTS[Type.STRING],
            st.none()
            | st.fixed_dictionaries(
                {
                    "a": st.none() | st.lists(st.none() | ELEMENTS[Type.BINARY], max_size=2),
                    "n": st.none() | st.integers(0, 3),
                }
            ),
            max_size=3,
        ),
        "l": st.none()
        | st.lists(
            st.none() | st.fixed_dictionaries({"d": st.none() | ELEMENTS[Type.DOUBLE]}), max_size=2
        ),
    }
)


def in_turn(value: Any) -> Any:
    """What Python compares as STRUCTs and MAPs are compared: NULL is the least value."""
    if isinstance(value, dict):
        pairs = value.items()
        return [(in_turn(key), each is not None, in_turn(each)) for key, each in pairs]
    return value.encode() if isinstance(value, str) else 0 if value is None else value


def check_bytes(type_: Type, values: list[Any], cut: int) -> list[Any]:
    column = pa.array(values, outside_type(type_))
    packed = inside(column)
    packed.validate(full=True)
    assert python_nested(outside(packed, type_)) == values
    assert python_nested(outside(packed.slice(cut), type_)) == values[cut:]
    assert inside(column.slice(cut)).to_pylist() == packed.to_pylist()[cut:]
    found: list[Any] = packed.to_pylist()
    return found


@examples(60)
@given(
    st.lists(
        st.none() | st.fixed_dictionaries({n: st.none() | ELEMENTS[t] for n, t in FIELDS.items()}),
        max_size=6,
    ),
    st.integers(0, 3),
)
def test_bytes_of_structs_are_in_their_order_and_give_them_back(drawn: Any, cut: int) -> None:
    values = [each and {name: each[name] for name in FIELDS} for each in drawn]
    packed = check_bytes(EVERY, values, cut)
    known = [(b, in_turn(v)) for b, v in zip(packed, values, strict=True) if b is not None]
    assert all((a < b) == (v < w) for a, v in known for b, w in known)


@pytest.mark.parametrize("key", [k for k in ELEMENTS if k is not Type.DOUBLE], ids=str)
def test_bytes_of_maps_are_in_the_order_of_their_entries(key: Type) -> None:
    type_ = Type.map(key, Type.INT)
    entries = st.dictionaries(ELEMENTS[key], st.none() | st.integers(-2, 2), max_size=4)

    @examples(30)
    @given(st.lists(st.none() | entries, max_size=6), st.integers(0, 3))
    def check(drawn: list[Any], cut: int) -> None:
        values = [v and dict(sorted(v.items(), key=lambda e: in_turn(e[0]))) for v in drawn]
        pairs = [v and list(v.items()) for v in values]
        column = pa.array(pairs, outside_type(type_))
        packed = inside(column)
        assert python_nested(outside(packed.slice(cut), type_)) == values[cut:]
        assert inside(column.slice(cut)).to_pylist() == packed.to_pylist()[cut:]
        backwards = pa.array([v and v[::-1] for v in pairs], outside_type(type_))
        assert inside(backwards).equals(packed)
        found = zip(packed.to_pylist(), values, strict=True)
        known = [(b, in_turn(v)) for b, v in found if b is not None]
        assert all((a < b) == (v < w) for a, v in known for b, w in known)

    check()


@examples(60)
@given(st.lists(st.none() | deep, max_size=5))
def test_values_in_values_in_values_come_back(values: list[Any]) -> None:
    listed = [v and {**v, "m": None if v["m"] is None else sorted(v["m"].items())} for v in values]
    packed = inside(pa.array(listed, outside_type(DEEP)))
    assert python_nested(outside(packed, DEEP)) == values
    assert Type.of(str(DEEP)) is DEEP


S = (
    "CREATE STREAM S (t BIGINT, s STRUCT<a INT, b STRING>, m MAP<STRING, DECIMAL(5, 2)>,"
    " l ARRAY<STRUCT<p DOUBLE>>) TIMESTAMP BY t"
)
ONE = Decimal("1.50")
ROWS: list[tuple[Any, ...]] = [
    (0, {"a": 1, "b": 'x"y,'}, {"j": None, "k": ONE}, [{"p": 0.5}, None]),
    (1, {"a": None, "b": None}, {}, []),
    (2, None, None, None),
    (3, {"a": -(2**31), "b": "ä"}, {"": ONE}, [{"p": None}]),
]
COLUMNS = {name: [row[at] for row in ROWS] for at, name in enumerate("tsml")}


def shown(engine: Engine, name: str = "q") -> dict[str, list[Any]]:
    rows = engine.results(name, "rows")
    return {each: [row[each] for row in rows] for each in "tsml"}


def texts(values: list[Any]) -> list[str | None]:
    return [None if v is None else json.dumps(v, default=str) for v in values]


def as_maps(values: list[Any]) -> list[Any]:
    return [None if v is None else list(v.items()) for v in values]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        [dict(zip("tsml", row, strict=True)) for row in ROWS],
        [(t, s and {"B": s["b"], "A": s["a"], "c": 1}, m, l_) for t, s, m, l_ in ROWS],
        list(zip(range(4), *(texts(COLUMNS[n]) for n in "sml"), strict=True)),
        pd.DataFrame(COLUMNS).astype({"s": object, "m": object, "l": object})[["t", "s", "m", "l"]],
        pa.table(
            {
                "t": COLUMNS["t"],
                "s": pa.array(COLUMNS["s"], pa.struct({"B": pa.large_string(), "a": pa.int64()})),
                "m": pa.array(
                    as_maps(COLUMNS["m"]), pa.map_(pa.large_string(), pa.decimal128(9, 4))
                ),
                "l": pa.array(COLUMNS["l"], pa.large_list(pa.struct({"p": pa.float32()}))),
            }
        ),
    ],
    ids=["tuples", "dicts", "other names", "JSON", "pandas", "arrow"],
)
def test_dicts_are_taken_from_programs(rows: object) -> None:
    if isinstance(rows, pa.Table):  # whose struct has names in another case
        given = [s and {"B": s["b"], "a": s["a"]} for s in COLUMNS["s"]]
        rows = rows.set_column(1, "s", pa.array(given, rows.schema.field("s").type))
    if isinstance(rows, pd.DataFrame):
        rows = rows.assign(m=texts(COLUMNS["m"]))
    with Engine() as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT * FROM S [NOW]")
        engine.push("S", rows)
        engine.finish()
        assert shown(engine) == COLUMNS


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, {"a": "x"}, {})], r"row 1, column s: \{'a': 'x'\} is not a STRUCT<a INT, b STRING>"),
        ([(1, {"a": 1, "A": 2}, {})], "row 1, column s: .* is not a STRUCT"),
        ([(1, [1, "x"], {})], "row 1, column s: .* is not a STRUCT"),
        ([(1, None, {}), (2, None, {"a": "x"})], "row 2, column m: .* is not a MAP<STRING, INT>"),
        ([(1, None, {None: 1})], "row 1, column m: .* is not a MAP<STRING, INT>"),
        ([(1, None, [("a", 1)])], "row 1, column m: .* is not a MAP<STRING, INT>"),
        ([(1, "[]", {})], r"row 1, column s: '\[\]' is not a STRUCT"),
        (
            pa.table({"t": [1, 2], "s": [None, {"a": 2**40, "b": ""}], "m": [None, None]}),
            r"row 2, column s.a: 1099511627776 is not an INT",
        ),
        (pa.table({"t": [1], "s": [7], "m": [None]}), "row 1, column s: int64 is not STRUCT<a INT"),
        (
            pa.table({"t": [1], "s": [None], "m": ['{"a": 1.5}']}),
            "row 1, column m: '{\"a\": 1.5}' is not a MAP<STRING, INT>",
        ),
    ],
)
def test_what_is_none_is_refused_with_its_place(rows: object, said: str) -> None:
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, s STRUCT<a INT, b STRING>, m MAP<STRING, INT>)"
            " TIMESTAMP BY t"
        )
        with pytest.raises(InputError, match=said):
            engine.push("S", rows)


def test_files_keep_everything(tmp_path: Path) -> None:
    maps = pa.array(as_maps(COLUMNS["m"]), pa.map_(pa.string(), pa.decimal128(5, 2)))
    pq.write_table(pa.table({**COLUMNS, "m": maps}), tmp_path / "in.parquet")
    found, given_ = {}, "in.parquet"
    for form in ("csv", "json", "parquet"):
        with Engine(directory=tmp_path) as engine:
            source = given_.rpartition(".")[2]
            engine.execute(
                f"{S} FROM {source}('{given_}');"
                f"CREATE QUERY q AS SELECT * FROM S [NOW] INTO {form}('out.{form}')"
            )
            engine.finish()
            found[form] = shown(engine)
        if form == "csv":
            given_ = "out.csv"
        if form == "json":
            lines = (tmp_path / "out.json").read_text().splitlines()
            rows = [json.loads(line)["row"] for line in lines]
            assert rows[0]["m"] == {"j": None, "k": "1.50"}
            assert rows[0]["s"] == ROWS[0][1]
            (tmp_path / "in.json").write_text("\n".join(map(json.dumps, rows)))
            given_ = "in.json"
    assert list(found.values()) == [COLUMNS] * 3
    table = pq.read_table(tmp_path / "out.parquet")
    assert python_nested(table.column("m")) == COLUMNS["m"]
    assert table.schema.field("s").type == outside_type(Type.of("STRUCT<a INT, b STRING>"))


def test_keys_of_maps_are_of_many_types() -> None:
    row = {1: 1}, {True: 1}, {date(2024, 2, 29): 1}, {ONE: 1}, {b"\0": 1}
    kinds = ["BIGINT", "BOOLEAN", "DATE", "DECIMAL(5,2)", "BINARY"]
    columns = ", ".join(f"m{n} MAP<{kind}, INT>" for n, kind in enumerate(kinds))
    with Engine() as engine:
        engine.execute(f"CREATE STREAM S (t BIGINT, {columns}) TIMESTAMP BY t")
        told = ", ".join(f"CAST(m{n} AS STRING) AS t{n}" for n in range(5))
        engine.execute(f"CREATE QUERY q AS SELECT *, {told} FROM S [NOW]")
        engine.push("S", [(1, *row)])
        engine.finish()
        (found,) = engine.results("q", "rows")
        assert tuple(found[f"m{n}"] for n in range(5)) == row
        said = [found[f"t{n}"] for n in range(5)]
    assert said == ['{"1":1}', '{"true":1}', '{"2024-02-29":1}', '{"1.50":1}', '{"AA==":1}']
    with Engine() as engine:
        engine.execute(f"CREATE STREAM S (t BIGINT, {columns}) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT * FROM S [NOW]")
        engine.push("S", [(1, *said)])
        engine.finish()
        (found,) = engine.results("q", "rows")
        assert tuple(found[f"m{n}"] for n in range(5)) == row


def test_results_on_the_wire_are_objects() -> None:
    kind = outside_type(Type.of("STRUCT<a INT, m MAP<STRING, INT>>"))
    schema = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("s", kind)])
    values = [{"a": 2, "m": [("k", None)]}, {"a": 1, "m": None}]
    table = pa.table([[1, 1], [1, 1], values], schema=schema)
    heading = Heading("q", schema, str)
    for form in ("ndjson", "sse", "xml"):
        assert b'{"a":2,"m":{"k":null}}' in FORMATS[form]().results(heading, table, "1")
    assert with_text(table, '"k"', first=2).num_rows == 1
    firsts = in_order(table, "s", False, first=2).column("s").to_pylist()
    assert [each["a"] for each in firsts] == [1, 2]
    assert b'"{""a"":2,""m"":{""k"":null}}"' in written(table, "csv")


@pytest.mark.parametrize("is_map", [False, True], ids=["structs", "maps"])
def test_a_body_that_says_values_once_for_many_rows_is_bounded(is_map: bool) -> None:
    kind = outside_type(Type.of("MAP<STRING, INT>" if is_map else "STRUCT<a STRING>"))
    value = [(f"{n:090}", n) for n in range(10)] if is_map else {"a": "x" * 990}
    column = pa.DictionaryArray.from_arrays(
        pa.array([0] * 500, pa.int32()), pa.array([value], kind)
    )
    table, sink = pa.table({"s": column}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    schema = Schema((Field("s", Type.of("MAP<STRING, INT>" if is_map else "STRUCT<a STRING>")),))
    body = sink.getvalue().to_pybytes()
    assert arrow_table(body, schema, 900_000).num_rows == 500
    with pytest.raises(RequestError, match="unpacks to"):
        arrow_table(body, schema, 300_000)


QUERIES = """
CREATE QUERY groups AS SELECT T.s, count(*) AS n, min(t) AS t FROM S T [ROWS 4] GROUP BY T.s;
CREATE QUERY by_field AS SELECT T.s.a, max(m) AS m FROM S T [ROWS 3] GROUP BY T.s.a;
CREATE QUERY met AS SELECT T.s.b, R.n FROM S T [RANGE 3], R WHERE T.m = R.m;
CREATE QUERY nearer AS SELECT * FROM S T [ROWS 4] ORDER BY T.s DESC LIMIT 2;
CREATE QUERY before AS SELECT lag(m) OVER (PARTITION BY T.s.a ORDER BY t) AS m FROM S T [ROWS 4];
CREATE QUERY firsts AS SELECT first(T.s) AS f, max_by(m, t) AS l FROM S T [RANGE 4];
CREATE QUERY ones AS SELECT t FROM S T [NOW] WHERE T.s.a = 1;
CREATE QUERY twos AS SELECT t FROM S T [NOW] WHERE T.s.a = 2;
CREATE QUERY ks AS SELECT t FROM S T [NOW] WHERE m['k'] > 1;
CREATE QUERY made AS SELECT STRUCT(t, T.s AS s) AS x, MAP[t, m] AS y FROM S T [NOW];
CREATE QUERY matched AS SELECT * FROM S MATCH_RECOGNIZE (ORDER BY t
  MEASURES A.s.a AS least, last(B.s) AS last PATTERN (A B+) WITHIN 9 DEFINE B AS B.s.a > A.s.a) M;
"""
PUSHES = [
    ROWS,
    [
        (4, {"a": 1, "b": "x"}, {"k": 2}, None),
        (5, {"a": 2, "b": "x"}, {"k": 2, "a": 0}, None),
        (6, {"a": 3, "b": "long" * 99}, {str(n): n for n in range(50)}, None),
    ],
]


def lives(engine_of: Any, store: Path | None) -> Iterator[Engine]:
    engine = engine_of(store)
    engine.execute(
        f"{S}; CREATE RELATION R (m MAP<STRING, DECIMAL(5, 2)> PRIMARY KEY, n STRING);"
        "INSERT INTO R VALUES (MAP['k', 2], 'two'), ('{}', 'none'), (MAP['a', 0, 'k', 2], 'both');"
        + QUERIES
    )
    for rows in PUSHES:
        engine.push("S", rows)
        engine.run_until_idle()
        if store is not None:
            engine.close()
            engine = engine_of(store)
    engine.finish()
    yield engine
    engine.close()


def test_a_store_is_opened_again_with_keys_states_and_plans(tmp_path: Path) -> None:
    names = [line.split()[2] for line in QUERIES.splitlines() if line.startswith("CREATE")]
    (whole,) = (
        {n: e.results(n).to_pylist() for n in names} for e in lives(lambda _: Engine(), None)
    )
    again = lives(lambda store: Engine({"validate": "on"}, store=store), tmp_path / "store")
    (found,) = ({n: e.results(n).to_pylist() for n in names} for e in again)
    assert found == whole
    assert all(whole.values())
    assert [row["t"] for row in whole["ones"]] == [0, 4]
    assert [(row["b"], row["n"]) for row in whole["met"] if row["weight"] > 0] == [
        (None, "none"), ("x", "two"), ("x", "both"),
    ]  # fmt: skip
    assert {row["least"] for row in whole["matched"]} == {-(2**31)}


def test_statements_write_and_change_them() -> None:
    with Engine() as engine:
        engine.execute(
            "CREATE RELATION R (k INT, s STRUCT<a INT, b STRING>, m MAP<STRING, BIGINT>);"
            "INSERT INTO R VALUES (1, STRUCT(1 AS a, 'x' AS b), MAP['a', 1 + 1, 'b', NULL]),"
            " (2, '{\"a\": 7}', '{}'), (3, NULL, NULL), (4, STRUCT(NULL AS p, NULL AS q), :m);"
            "UPDATE R SET s = STRUCT(s.a + k AS a, 'y' AS b), m = MAP['z', k] WHERE s.a = 7;"
            "DELETE FROM R WHERE m['a'] = 5;"
            "CREATE QUERY held AS SELECT * FROM R",
            parameters={"m": '{"a": 5}'},
        )
        engine.finish()
        held = {row["k"]: (row["s"], row["m"]) for row in engine.results("held", "rows")}
        assert held == {
            1: ({"a": 1, "b": "x"}, {"a": 2, "b": None}),
            2: ({"a": 9, "b": "y"}, {"z": 2}),
            3: (None, None),
        }


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT S.s.z FROM S", 'no field "z"; known: a, b'),
        ("SELECT s.a FROM S", r'no column "a" in "s", a source in FROM; .* write S\.s\.a'),
        ("SELECT (t).b FROM S", ".b stands behind a STRUCT, not a BIGINT"),
        ("SELECT STRUCT(1, 2) FROM S", "a field of a STRUCT has a name"),
        ("SELECT STRUCT(1 AS a, 2 AS A) FROM S", 'a STRUCT has two fields "a"'),
        ('SELECT STRUCT(1 AS "a b") FROM S', '"a b" is no name of a field'),
        ("SELECT STRUCT() FROM S", "a STRUCT has fields"),
        ("SELECT ROW(1, 2) FROM S", "write STRUCT"),
        ("SELECT MAP('a', 1) FROM S", r"write MAP\['a', 1, 'b', 2\]"),
        ("SELECT MAP[] FROM S", r"write CAST\('\{\}' AS MAP<STRING, INT>\)"),
        ("SELECT MAP['a'] FROM S", "a MAP has a value behind each key"),
        ("SELECT MAP[1.5, 1] FROM S", "keys of a MAP are texts, whole numbers, .* not DOUBLE"),
        ("SELECT MAP['a', 1, 2, 3] FROM S", "the keys of a MAP mix STRING and INT"),
        ("SELECT m[1] FROM S", "mix STRING and INT; CAST one of them"),
        ("SELECT S.s = STRUCT(1 AS z, 'a' AS b) FROM S", "cannot compare STRUCT<a INT, b STRING>"),
        ("SELECT S.s + 1 FROM S", r"\+ needs numbers, not STRUCT<a INT, b STRING>"),
        ("SELECT CAST(S.s AS MAP<STRING, INT>) FROM S", "a STRUCT<.*> cannot be cast to MAP"),
        ("SELECT CAST(m AS MAP<INT, INT>) FROM S", "numbers widen, and CAST AS STRING gives its"),
        ("SELECT map_keys(S.s) FROM S", "argument 1 of map_keys must be a MAP, not STRUCT"),
        ("CREATE STREAM T (m MAP<DOUBLE, INT>)", "keys of a MAP are texts"),
        ("CREATE STREAM T (m MAP<STRING>)", "a MAP says what its keys and values are"),
        ("CREATE STREAM T (m STRUCT)", "use STRUCT<a INT, b STRING>, which says what is in it"),
        ("CREATE STREAM T (m STRUCT<a INT, A INT>)", 'a STRUCT has two fields "a"'),
        (f"CREATE STREAM T (m {'STRUCT<a ' * 9}INT{'>' * 9})", "at most 8 deep in each other"),
        ("PUNCTUATE S WHERE s = '{}'", "of which no value is said to be the last one"),
    ],
)
def test_what_they_cannot_do_is_said(statement: str, said: str) -> None:
    with Engine() as engine:
        engine.execute(S)
        with pytest.raises(MillpondError, match=said):
            engine.execute(statement)


def test_functions_of_the_user_take_none() -> None:
    with Engine() as engine:
        for kind, way in (("STRUCT<a INT>", "fields, s.a"), ("MAP<INT, INT>", "values, m")):
            with pytest.raises(StateError, match=f"take and give no {kind[:3]}.*{way}"):
                engine.register_function("f", len, [kind], "INT")


def test_made_up_values_are_the_same_however_they_are_cut() -> None:
    made = ValueGenerator(Schema((Field("v", DEEP),)), 7, 5)
    whole = made.column(0, pa.array(range(40)).to_numpy())
    parts = [made.column(0, pa.array(range(n, n + 10)).to_numpy()) for n in range(0, 40, 10)]
    assert pa.concat_arrays(parts).to_pylist() == whole.to_pylist()
    assert {len(each["m"]) for each in python_nested(outside(whole, DEEP))} >= {0, 2}


@pytest.mark.spark
def test_spark_gives_results_with_them_too(spark: Any) -> None:
    with Engine(spark=spark) as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT * FROM S [NOW]")
        engine.push("S", ROWS)
        engine.finish()
        found = engine.results("q", "spark").where("weight > 0").orderBy("ts").toArrow()
        assert {name: python_nested(found.column(name)) for name in "tsml"} == COLUMNS
