"""ARRAYs from end to end: their bytes, connectors, state, a restart, what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.connectors.nested import inside, outside, outside_type
from millpond.connectors.values import ValueGenerator
from millpond.cql.check.statements import check_statement
from millpond.errors import CqlError, InputError, MillpondError, Position, StateError
from millpond.schema import Field, Schema, Type
from millpond.server import one_time
from millpond.server.arrow_body import arrow_table
from millpond.server.faults import RequestError
from millpond.server.formats import FORMATS, Heading
from millpond.server.ingest import rows_of_body
from millpond.server.limits import Limits
from millpond.server.looking_in import last_tuples
from millpond.server.tables import in_order, with_text, written
from tests.drawn_examples import examples

CENTS = Type.decimal(20, 2)
ELEMENTS: dict[Type, st.SearchStrategy[Any]] = {
    Type.BOOLEAN: st.booleans(),
    Type.INT: st.integers(-(2**31), 2**31 - 1),
    Type.BIGINT: st.integers(-(2**63), 2**63 - 1),
    CENTS: st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    Type.DOUBLE: st.floats(allow_nan=False).map(lambda x: x + 0.0),
    Type.STRING: st.text(alphabet="ab\0ä\u00ff", max_size=3),
    Type.BINARY: st.binary(max_size=3) | st.sampled_from([b"\0", b"\xff", b"\0\xff", b"\0\0\xff"]),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(),
}


def arrays(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | elements, max_size=4)


def in_turn(value: Any) -> Any:
    """What Python compares as ARRAYs are compared: NULL is the least element."""
    if isinstance(value, list):
        return [(each is not None, in_turn(each)) for each in value]
    if isinstance(value, str):
        return value.encode()
    return 0 if value is None else value


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_bytes_are_in_the_order_of_arrays_and_give_them_back(element: Type, depth: int) -> None:
    type_, drawn = Type.array(element), arrays(ELEMENTS[element])
    if depth == 2:
        type_, drawn = Type.array(type_), arrays(drawn)

    @examples(60)
    @given(st.lists(st.none() | drawn, max_size=6), st.integers(0, 3))
    def check(values: list[Any], cut: int) -> None:
        column = pa.array(values, outside_type(type_))
        packed = inside(column)
        packed.validate(full=True)
        assert outside(packed, type_).to_pylist() == values
        assert outside(packed.slice(cut), type_).to_pylist() == values[cut:]
        assert inside(column.slice(cut)).to_pylist() == packed.to_pylist()[cut:]
        known = [(b, in_turn(v)) for b, v in zip(packed.to_pylist(), values, strict=True) if b]
        assert all((a < b) == (v < w) for a, v in known for b, w in known)

    check()


def test_there_is_one_zero_and_one_nan() -> None:
    reals = pa.array([[0.0, math.nan], [-0.0, -math.nan]], pa.list_(pa.float64()))
    first, second = inside(reals).to_pylist()
    assert first == second


S = "CREATE STREAM S (t BIGINT, a ARRAY<INT>, s STRING ARRAY) TIMESTAMP BY t"
VALUES = [([1, None, -3], ["x", 'a"b,', "ä"]), ([], []), (None, None), ([2**31 - 1], [None, ""])]
ROWS = [(n, *row) for n, row in enumerate(VALUES)]
LISTS = {"a": [a for a, _ in VALUES], "s": [s for _, s in VALUES]}


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        [{"t": t, "a": a and tuple(a), "s": s} for t, a, s in ROWS],
        [(t, a and [a and float(a) for a in a], s and np.array(s, object)) for t, a, s in ROWS],
        [(t, None if a is None else json.dumps(a), s) for t, a, s in ROWS],
        pd.DataFrame({"t": range(4), **LISTS}),
        pa.table({"t": list(range(4)), **LISTS}),
        pa.table(
            {
                "t": list(range(4)),
                "a": pa.array(LISTS["a"], pa.large_list(pa.int64())),
                "s": pa.array([None if s is None else json.dumps(s) for s in LISTS["s"]]),
            }
        ),
    ],
    ids=["tuples", "dicts", "other numbers", "JSON", "pandas", "arrow", "large and JSON"],
)
def test_lists_are_taken_from_programs(rows: object) -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT t, a, s FROM S [NOW]")
        engine.push("S", rows)
        engine.finish()
        found = engine.results("q")
        assert {name: found.column(name).to_pylist() for name in "as"} == LISTS
        assert [row["s"] for row in engine.results("q", "rows")] == LISTS["s"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, [1]), (2, [1.5])], r"row 2, column a: \[1.5\] is not an ARRAY<INT>"),
        ([(1, [1]), (2, [2**31])], r"row 2, column a: .* is not an ARRAY<INT>"),
        ([(1, 7)], "row 1, column a: 7 is not an ARRAY<INT>"),
        ([(1, "7")], "row 1, column a: '7' is not an ARRAY<INT>"),
        ([(1, "x")], "row 1, column a: 'x' is not an ARRAY<INT>"),
        ([(1, [[1]])], "row 1, column a: .* is not an ARRAY<INT>"),
        ([(1, {"a": 1})], "row 1, column a: .* is not an ARRAY<INT>"),
        (pa.table({"t": [1, 2], "a": [[1], [2**40]]}), "row 2, column a: 1099511627776 is not"),
        (pa.table({"t": [1], "a": [["x"]]}), "row 1, column a: string is not INT"),
        (pa.table({"t": [1], "a": [7]}), "row 1, column a: int64 is not ARRAY<INT>"),
        (pa.table({"t": [1], "a": [b"\x02"]}), "row 1, column a: binary is not ARRAY<INT>"),
        (pa.table({"t": [1, 2], "a": ["[1]", "[x]"]}), r"row 2, column a: '\[x\]' is not an ARRAY"),
    ],
)
def test_what_is_no_array_is_refused_with_its_place(rows: object, said: str) -> None:
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a ARRAY<INT>) TIMESTAMP BY t")
        with pytest.raises(InputError, match=said):
            engine.push("S", rows)


def test_all_elements_come_back_as_they_went_in() -> None:
    moment, day = datetime(2024, 2, 29, 12, 0, 0, 5), date(2024, 2, 29)
    row = [[True], [2**62], [Decimal("1.50")], [0.5, math.inf], [b"\0\xff"], [day], [moment]]
    names = ["BOOLEAN", "BIGINT", "DECIMAL(5,2)", "DOUBLE", "BINARY", "DATE", "TIMESTAMP"]
    columns = ", ".join(f"c{n} ARRAY<{name}>" for n, name in enumerate(names))
    firsts = ", ".join(f"c{n}[1] AS d{n}" for n in range(len(names)))
    with Engine() as engine:
        engine.execute(f"CREATE STREAM S (t BIGINT, {columns}, n INT[][]) TIMESTAMP BY t")
        engine.execute(f"CREATE QUERY q AS SELECT *, {firsts}, n[2][1] AS m FROM S [NOW]")
        engine.push("S", [(1, *row, [[1], [2, 3]])])
        engine.finish()
        (found,) = engine.results("q", "rows")
        assert list(found.values())[3:] == [*row, [[1], [2, 3]], *(each[0] for each in row), 2]


def test_files_keep_every_element(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": list(range(4)), **LISTS}), tmp_path / "in.parquet")
    found, given_ = {}, "in.parquet"
    for form in ("csv", "json", "parquet"):
        with Engine(directory=tmp_path) as engine:
            source = given_.rpartition(".")[2]
            engine.execute(
                f"{S} FROM {source}('{given_}');"
                f"CREATE QUERY q AS SELECT t, a, s FROM S [NOW] INTO {form}('out.{form}')"
            )
            engine.finish()
            found[form] = {n: engine.results("q").column(n).to_pylist() for n in "as"}
        if form == "csv":
            given_ = "out.csv"
        if form == "json":
            lines = (tmp_path / "out.json").read_text().splitlines()
            rows = [json.loads(line)["row"] for line in lines]
            assert rows[0] == {"t": 0, "a": [1, None, -3], "s": ["x", 'a"b,', "ä"]}
            (tmp_path / "in.json").write_text("\n".join(map(json.dumps, rows)))
            given_ = "in.json"
    assert list(found.values()) == [LISTS] * 3
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == (
        '0,1,0,"[1,null,-3]","[""x"",""a\\""b,"",""ä""]"'
    )
    table = pq.read_table(tmp_path / "out.parquet")
    assert {n: table.column(n).to_pylist() for n in "as"} == LISTS


@pytest.mark.parametrize(
    ("form", "text", "place"),
    [
        ("csv", 't,a,s\n1,"[1]",\n2,"[1,x]",\n', "line 3, column a: '\\[1,x\\]' is not an ARRAY"),
        ("json", '{"t": 1, "a": [1]}\n{"t": 2, "a": ["x"]}\n', "line 2, column a: .* is not an"),
        ("json", '{"t": 1, "a": {"b": 1}}\n', "line 1, column a: .* is not an ARRAY<INT>"),
    ],
)
def test_a_bad_row_has_its_place(tmp_path: Path, form: str, text: str, place: str) -> None:
    (tmp_path / f"in.{form}").write_text(text)
    with Engine(directory=tmp_path) as engine:
        engine.execute(f"{S} FROM {form}('in.{form}'); CREATE QUERY q AS SELECT t FROM S [NOW]")
        with pytest.raises(InputError, match=place):
            engine.finish()


def test_results_on_the_wire_are_lists() -> None:
    kind = pa.list_(pa.string())
    schema = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("s", kind)])
    table = pa.table([[1, 1], [1, 1], [["b", None], ["a"]]], schema=schema)
    heading = Heading("q", schema, str)
    for form in ("ndjson", "sse", "xml"):
        assert b'["b",null]' in FORMATS[form]().results(heading, table, "1")
    assert with_text(table, '"a"', first=2).num_rows == 1
    assert in_order(table, "s", False, first=2).column("s").to_pylist() == [["a"], ["b", None]]
    assert b'"[""b"",null]"' in written(table, "csv")


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list], ids=["lists", "large lists"])
def test_a_body_that_says_lists_once_for_many_rows_is_bounded(kind: Any) -> None:
    lists = pa.array([["x" * 90] * 10], kind(pa.string()))
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), lists)
    table, sink = pa.table({"s": column}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    schema = Schema((Field("s", Type.array(Type.STRING)),))
    assert arrow_table(body, schema, 600_000).num_rows == 500
    with pytest.raises(RequestError, match="unpacks to 490,000 bytes"):
        arrow_table(body, schema, 400_000)


def test_bodies_of_csv_and_json_are_taken() -> None:
    schema = Schema((Field("a", Type.array(Type.INT)),))
    with Engine() as engine:
        engine.execute("CREATE RELATION R (a ARRAY<INT>); CREATE QUERY q AS SELECT a FROM R")
        engine.push("R", rows_of_body(b'a\n"[1,2]"\n', "text/csv", schema, 1000))
        engine.push("R", rows_of_body(b'{"a": [3]}', "application/json", schema, 1000))
        engine.finish()
        assert sorted(r["a"] for r in engine.results("q", "rows")) == [[1, 2], [3]]


def test_the_server_looks_into_streams_and_answers_once() -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT * FROM S [ROWS 2]")
        engine.execute("CREATE RELATION R (a INT[]); INSERT INTO R VALUES (ARRAY[5])")
        engine.push("S", ROWS)
        engine.run_until_idle()
        entry: Any = engine.catalog.get("S")
        assert last_tuples(engine, entry, 1)[0]["row"]["s"] == [None, ""]
        text = "SELECT DISTINCT S.a, R.a AS b FROM S [ROWS 3], R"
        statement = check_statement(text, Position(1, 1), engine.catalog)
        table, _ = one_time.answer(engine, statement, Limits())
        assert {str(row["a"]): row["b"] for row in table.to_pylist()} == {
            "[]": [5], "None": [5], "[2147483647]": [5],
        }  # fmt: skip


QUERIES = """
CREATE QUERY groups AS SELECT s, count(*) AS n, min(t) AS t FROM S [ROWS 4] GROUP BY s;
CREATE QUERY extremes AS SELECT min(a) AS lo, max(a) AS hi, count(DISTINCT a) AS d FROM S [ROWS 3];
CREATE QUERY met AS SELECT S.s, R.n FROM S [RANGE 3], R WHERE S.s = R.s;
CREATE QUERY nearer AS SELECT * FROM S [ROWS 4] ORDER BY a DESC LIMIT 2;
CREATE QUERY before AS SELECT lag(a) OVER (ORDER BY t) AS a FROM S [ROWS 4];
CREATE QUERY firsts AS SELECT first(a) AS f, max_by(s, t) AS l, min_by(t, s) AS m FROM S [RANGE 4];
CREATE QUERY xs AS SELECT t FROM S [NOW] WHERE s = ARRAY['x'];
CREATE QUERY ys AS SELECT t FROM S [NOW] WHERE s = ARRAY['y', NULL];
CREATE QUERY above AS SELECT t FROM S [NOW] WHERE a > ARRAY[1];
CREATE QUERY having_one AS SELECT t, a[2] AS second, a[9000000000] AS none FROM S [NOW]
  WHERE array_contains(a, 1);
CREATE QUERY sampled AS SELECT s FROM S [NOW] SAMPLE (50);
CREATE QUERY missing AS SELECT s FROM S [RANGE 2] EXCEPT SELECT s FROM R;
CREATE QUERY pairs AS SELECT count(DISTINCT a, s) AS n FROM S [ROWS 4];
CREATE QUERY gathered AS SELECT cardinality(a) AS n, array_agg(t) AS tt, array_agg(s) AS ss
  FROM S [ROWS 4] GROUP BY cardinality(a);
CREATE QUERY matched AS SELECT * FROM S MATCH_RECOGNIZE (ORDER BY t
  MEASURES first(B.a) AS least, last(B.a) AS last PATTERN (A B+) WITHIN 9 DEFINE B AS B.a > A.a) M;
"""
PUSHES = [
    [(1, [1, 2], ["x"]), (2, [], ["x"]), (3, None, None)],
    [
        *((4, [1], ["y", None]), (5, [1, 3], ["x"]), (6, [None], []), (7, [2, 1], ["y", None])),
        *((8, [2] * 300, ["long" * 99]), (9, [2] * 300, ["x"])),
    ],
]


def lives(engine_of: Any, store: Path | None) -> Iterator[Engine]:
    engine = engine_of(store)
    engine.execute(
        f"{S}; CREATE RELATION R (s STRING[] PRIMARY KEY, n STRING);"
        "INSERT INTO R VALUES (ARRAY['x'], 'ex'), (ARRAY['y', NULL], 'why'), ('[]', 'none');"
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


def names_of(queries: str) -> list[str]:
    return [line.split()[2] for line in queries.splitlines() if line.startswith("CREATE")]


def test_a_store_is_opened_again_with_arrays_in_keys_states_and_plans(tmp_path: Path) -> None:
    names = names_of(QUERIES)
    (whole,) = (
        {n: e.results(n).to_pylist() for n in names} for e in lives(lambda _: Engine(), None)
    )
    settings = {"validate": "on"}
    again = lives(lambda store: Engine(settings, store=store), tmp_path / "store")
    (found,) = ({n: e.results(n).to_pylist() for n in names} for e in again)
    assert found == whole
    assert all(whole.values())
    assert [row["t"] for row in whole["xs"]] == [1, 2, 5, 9]
    assert [row["t"] for row in whole["above"]] == [1, 5, 7, 8, 9]
    last = whole["gathered"][-1]
    assert (last["n"], last["tt"], last["ss"]) == (300, [8, 9], [["long" * 99], ["x"]])


def test_what_is_put_aside_is_shown_as_lists() -> None:
    with Engine() as engine:
        engine.execute(
            f"{S} DELAY 1; CREATE QUERY q ON ERROR SKIP AS"
            " SELECT split_part(s[1], 'x', cardinality(a) - 1) AS p FROM S [NOW]"
        )
        engine.push("S", [(9, [1], ["xa"]), (1, [1, 2], [None])])
        engine.finish()
        assert set(engine.left_out("q").column("row").to_pylist()) == {'t = 9, a = [1], s = ["xa"]'}
        assert engine.late("S").to_pylist() == [{"t": 1, "a": [1, 2], "s": [None]}]


def test_statements_write_and_change_arrays() -> None:
    with Engine() as engine:
        engine.execute(
            "CREATE RELATION R (k INT, a ARRAY<INT>, d ARRAY<DECIMAL(5,2)>);"
            "INSERT INTO R VALUES (1, ARRAY[1, 1 + 1, NULL], ARRAY[1.5]), (2, '[7]', '[\"0.25\"]'),"
            " (3, NULL, CAST('[]' AS ARRAY<DECIMAL(5, 2)>)), (4, :four, NULL);"
            "INSERT INTO R VALUES (5, ARRAY[NULL], NULL); DELETE FROM R WHERE a = ARRAY[NULL];"
            "UPDATE R SET a = ARRAY[k, a[1]] WHERE k = 2; DELETE FROM R WHERE cardinality(a) = 1;"
            "CREATE QUERY held AS SELECT * FROM R",
            parameters={"four": [4]},
        )
        engine.finish()
        held = {row["k"]: (row["a"], row["d"]) for row in engine.results("held", "rows")}
        assert held == {
            1: ([1, 2, None], [Decimal("1.50")]), 2: ([2, 7], [Decimal("0.25")]), 3: (None, []),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT ARRAY[] FROM S", r"write CAST\('\[\]' AS ARRAY<INT>\)"),
        ("SELECT ARRAY[1, 'a'] FROM S", "elements of an ARRAY mix INT and STRING; CAST one"),
        ("SELECT t[1] FROM S", r"\[ \] stands behind an ARRAY or MAP, not a BIGINT"),
        ("SELECT a['x'] FROM S", "the place of an element is an INT, not STRING"),
        ("SELECT a[] FROM S", "expected a place, as in a"),
        ("SELECT a + 1 FROM S", r"\+ needs numbers, not ARRAY<INT>"),
        ("SELECT sum(a) FROM S", "sum needs a number, not ARRAY<INT>"),
        ("SELECT upper(s) FROM S", "argument 1 of upper must be a STRING, not ARRAY<STRING>"),
        (
            "SELECT cardinality(t) FROM S",
            "argument 1 of cardinality must be an ARRAY or MAP, not BIGINT",
        ),
        ("SELECT array_contains(a, 'x') FROM S", "needs values of one type, not INT, STRING"),
        ("SELECT a = s FROM S", "cannot compare ARRAY<INT> and ARRAY<STRING>; CAST one of them"),
        ("SELECT CAST(a AS ARRAY<STRING>) FROM S", "numbers widen, and CAST AS STRING gives its"),
        ("SELECT CAST(t AS ARRAY<INT>) FROM S", "a BIGINT cannot be cast to ARRAY<INT>"),
        ("SELECT array_agg(DISTINCT t) FROM S", "array_agg does not take DISTINCT"),
        ("SELECT array_agg(t, 1) FROM S", r"array_agg is called as array_agg\(x\)"),
        ("SELECT * FROM UNNEST(a) T", r"UNNEST is not supported .* by their place, a\[1\]"),
        ("SELECT explode(a) FROM S", "explode is not supported; ask for elements by their place"),
        ("SELECT element_at(a, 1) FROM S", r"element_at is not supported; write a\[1\]"),
        ("SELECT 1 = ANY(a) FROM S", r"whether an ARRAY has a value says array_contains\(a, x\)"),
        ("CREATE STREAM T (a ARRAY)", "the type ARRAY is not supported; use ARRAY<INT>"),
        ("CREATE STREAM T (a ARRAY<INT)", "expected > before"),
        ("CREATE STREAM T (a ARRAY<FOO>)", 'no type is called "FOO"'),
        (f"CREATE STREAM T (a {'ARRAY<' * 9}INT{'>' * 9})", "at most 8 deep in each other"),
        ("CREATE STREAM T (a INT[]) TIMESTAMP BY a", "a time is a TIMESTAMP, or a BIGINT or INT"),
        ("INSERT INTO R VALUES (ARRAY['x'])", '"a" is an INT, the value is a STRING; CAST it'),
        ("INSERT INTO R VALUES ('x')", "R, row 1, column a: 'x' is not an ARRAY<INT>"),
        ("INSERT INTO R VALUES (ARRAY[3000000000])", "3000000000 is outside the range of INT"),
        ("PUNCTUATE S WHERE a = ARRAY[1]", "of which no value is said to be the last one"),
    ],
)
def test_what_arrays_cannot_do_is_said(statement: str, said: str) -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE RELATION R (a ARRAY<INT>)")
        with pytest.raises(MillpondError, match=said):
            engine.execute(statement)


def test_messages_of_keys_have_lists() -> None:
    with Engine() as engine:
        engine.execute(
            "CREATE RELATION R (a INT[] PRIMARY KEY, n INT); CREATE RELATION Q (a INT[])"
        )
        engine.push("R", [([1, None], 1)])
        with pytest.raises(InputError, match=r"the key a = \[1, None\]: \(\[1, None\], 1\) and"):
            engine.push("R", [([1, None], 2)])
        with pytest.raises(InputError, match=r"a row is removed that is not there: \(\[7\],\)"):
            engine.push_changes("Q", [(1, "-", {"a": [7]})])


def test_made_up_arrays_are_the_same_however_they_are_cut() -> None:
    made = ValueGenerator(Schema((Field("a", Type.array(Type.array(Type.STRING))),)), 7, 5)
    whole = made.column(0, np.arange(40))
    parts = [made.column(0, np.arange(n, n + 10)) for n in range(0, 40, 10)]
    assert pa.concat_arrays(parts).to_pylist() == whole.to_pylist()
    assert {len(each) for each in outside(whole, made.schema[0].type).to_pylist()} == {0, 1, 2, 3}


def test_functions_of_the_user_take_no_arrays() -> None:
    with Engine() as engine:
        for types in ((["ARRAY<INT>"], "INT"), (["INT"], Type.array(Type.INT))):
            with pytest.raises(StateError, match=r"take and give no ARRAYs; call it with elements"):
                engine.register_function("f", len, *types)


@pytest.mark.spark
def test_spark_gives_results_with_lists_too(spark: Any) -> None:
    with Engine(spark=spark) as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT a, s FROM S [NOW]")
        engine.push("S", ROWS)
        engine.finish()
        found = engine.results("q", "spark").where("weight > 0").orderBy("ts").toArrow()
        assert {name: found.column(name).to_pylist() for name in "as"} == LISTS


def test_a_type_is_one_object_however_it_is_written() -> None:
    nested = Type.array(Type.array(Type.decimal(5, 2)))
    assert Type.of(str(nested)) is nested
    with pytest.raises(CqlError, match="DECIMAL says how many digits"), Engine() as engine:
        engine.execute("CREATE STREAM T (a ARRAY<DECIMAL>)")
