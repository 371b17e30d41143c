"""BINARYs from end to end: what connectors take and give, state, a restart, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.connectors.base64_texts import base64_column, of_base64_text
from millpond.cql.expressions import Literal
from millpond.errors import CqlError, InputError, MillpondError
from millpond.kernels.sorts import Sort, places
from millpond.planning.plan_data import from_data, to_data
from millpond.schema import Field, Schema, Type
from millpond.server.arrow_body import arrow_table
from millpond.server.faults import RequestError
from millpond.server.formats import FORMATS, Heading
from millpond.server.tables import with_text
from tests.drawn_examples import examples

S = "CREATE STREAM S (t BIGINT, b BINARY) TIMESTAMP BY t"
VALUES = [b"", b"\0", b"\xca\xfe", "ä".encode(), b"\xff" * 300, None]


@examples(60)
@given(st.lists(st.binary(max_size=12)))
def test_texts_in_base64_are_what_they_were(values: list[bytes]) -> None:
    texts = base64_column(pa.array(values, pa.binary())).to_pylist()
    assert [of_base64_text(text) for text in texts] == values


@examples(60)
@given(st.lists(st.binary(max_size=12), min_size=1))
def test_places_are_in_the_order_of_bytes(values: list[bytes]) -> None:
    table = pa.table({"b": pa.array(sorted(values), pa.binary())})
    found = places(table, [Sort("b", False, True)]).tolist()
    assert found == sorted(found)


@given(st.binary())
def test_a_constant_is_the_same_in_the_log(value: bytes) -> None:
    literal = Literal(value, Type.BINARY)
    assert from_data(json.loads(json.dumps(to_data(literal))), {}) == literal


@pytest.mark.parametrize(
    "rows",
    [
        list(enumerate(VALUES)),
        [{"t": n, "b": None if v is None else bytearray(v)} for n, v in enumerate(VALUES)],
        [(0, ""), (1, "AA=="), (2, " yv4= "), (3, "w6Q="), (4, VALUES[4]), (5, None)],
        pd.DataFrame({"t": range(6), "b": VALUES}),
        pa.table({"t": list(range(6)), "b": pa.array(VALUES, pa.large_binary())}),
        pa.table({"t": list(range(6)), "b": base64_column(pa.array(VALUES, pa.binary()))}),
    ],
    ids=["python", "bytearrays", "texts", "pandas", "arrow", "arrow texts"],
)
def test_bytes_are_taken_from_programs(rows: object) -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT t, b FROM S [NOW]")
        engine.push("S", rows)
        engine.finish()
        assert engine.results("q").column("b").to_pylist() == VALUES


@pytest.mark.parametrize("value", ["yv4", "y v4=", "ä", 7, True, 0.5, [1]])
def test_what_is_no_binary_is_refused_with_its_place(value: object) -> None:
    with Engine() as engine:
        engine.execute(S)
        with pytest.raises(InputError, match=r"row 2, column b: .* is not a BINARY"):
            engine.push("S", [(1, b"a"), (2, value)])


def test_files_keep_every_byte(tmp_path: Path) -> None:
    table = pa.table({"t": list(range(6)), "b": pa.array(VALUES, pa.binary())})
    pq.write_table(table, tmp_path / "in.parquet")
    found = {}
    given_ = "in.parquet"
    for form in ("csv", "json", "parquet"):
        with Engine(directory=tmp_path) as engine:
            source = given_.rpartition(".")[2]
            engine.execute(
                f"{S} FROM {source}('{given_}');"
                f"CREATE QUERY q AS SELECT t, b FROM S [NOW] INTO {form}('out.{form}')"
            )
            engine.finish()
            found[form] = engine.results("q").column("b").to_pylist()
        if form == "csv":
            given_ = "out.csv"
        if form == "json":
            lines = (tmp_path / "out.json").read_text().splitlines()
            rows = [json.loads(line)["row"] for line in lines]
            assert rows[2] == {"t": 2, "b": "yv4="}
            (tmp_path / "in.json").write_text("\n".join(map(json.dumps, rows)))
            given_ = "in.json"
    assert list(found.values()) == [VALUES] * 3
    assert (tmp_path / "out.csv").read_text().splitlines()[1:4] == [
        '0,1,0,""',
        '1,1,1,"AA=="',
        '2,1,2,"yv4="',
    ]
    assert pq.read_table(tmp_path / "out.parquet").column("b").to_pylist() == VALUES


def test_results_on_the_wire_are_in_base64() -> None:
    schema = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("b", pa.binary())])
    table = pa.table([[1], [1], [b"\xca\xfe"]], schema=schema)
    heading = Heading("q", schema, str)
    for form in ("ndjson", "sse", "xml"):
        assert b"yv4=" in FORMATS[form]().results(heading, table, "1")
    assert with_text(table, "YV4", first=2).num_rows == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"x" * 1000]),
        pa.array([b"x" * 1000], pa.large_binary()),
        pa.array([b"x" * 1000], pa.binary(1000)),
        pa.array([b"x" * 1000], pa.binary_view()),
    ],
    ids=lambda values: str(values.type),
)
def test_a_body_that_says_bytes_once_for_many_rows_is_bounded(values: pa.Array) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), values)
    table, sink = pa.table({"b": column}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body, schema = sink.getvalue().to_pybytes(), Schema((Field("b", Type.BINARY),))
    assert arrow_table(body, schema, 600_000).num_rows == 500
    with pytest.raises(RequestError, match="unpacks to 500,000 bytes"):
        arrow_table(body, schema, 400_000)


QUERIES = """
CREATE QUERY groups AS SELECT b, count(*) AS n, min(t) AS t FROM S [ROWS 4] GROUP BY b;
CREATE QUERY extremes AS SELECT min(b) AS lo, max(b) AS hi, count(DISTINCT b) AS d FROM S [ROWS 3];
CREATE QUERY met AS SELECT S.b, R.n FROM S [RANGE 3], R WHERE S.b = R.b;
CREATE QUERY nearer AS SELECT * FROM S [ROWS 4] ORDER BY b DESC LIMIT 2;
CREATE QUERY before AS SELECT lag(b) OVER (ORDER BY t) AS b FROM S [ROWS 4];
CREATE QUERY firsts AS SELECT first(b) AS f, max_by(b, t) AS l FROM S [RANGE 4];
CREATE QUERY cafe AS SELECT t FROM S [NOW] WHERE b = X'CAFE';
CREATE QUERY zero AS SELECT t FROM S [NOW] WHERE b = X'00';
CREATE QUERY above AS SELECT t FROM S [NOW] WHERE b > X'01';
CREATE QUERY sampled AS SELECT b FROM S [NOW] SAMPLE (50);
CREATE QUERY missing AS SELECT b FROM S [RANGE 2] EXCEPT SELECT b FROM R;
CREATE QUERY pairs AS SELECT count(DISTINCT b, t) AS n FROM S [ROWS 4];
CREATE QUERY matched AS SELECT * FROM S MATCH_RECOGNIZE (ORDER BY t
  MEASURES min(B.b) AS least, last(B.b) AS last PATTERN (A B+) WITHIN 9 DEFINE B AS B.b > A.b) M;
"""
PUSHES = [
    [(1, b"\xca\xfe"), (2, b"\0"), (3, None)],
    [(4, b"\xca\xfe"), (5, b"\xff" * 300), (6, b""), (7, b"\0"), (8, b"\xff" * 300)],
]


def lives(engine_of: object, store: Path | None) -> Iterator[Engine]:
    engine = engine_of(store)  # type: ignore[operator]
    engine.execute(
        f"{S}; CREATE RELATION R (b BINARY PRIMARY KEY, n STRING);"
        f"INSERT INTO R VALUES (X'CAFE', 'coffee'), (X'', 'none');" + QUERIES
    )
    for rows in PUSHES:
        engine.push("S", rows)
        engine.run_until_idle()
        if store is not None:
            engine.close()
            engine = engine_of(store)  # type: ignore[operator]
    engine.finish()
    yield engine
    engine.close()


def test_a_store_is_opened_again_with_binaries_in_keys_states_and_plans(tmp_path: Path) -> None:
    names = [line.split()[2] for line in QUERIES.splitlines() if line.startswith("CREATE")]
    (whole,) = (
        {n: e.results(n).to_pylist() for n in names} for e in lives(lambda _: Engine(), None)
    )
    settings = {"validate": "on"}
    again = lives(lambda store: Engine(settings, store=store), tmp_path / "store")
    (found,) = ({n: e.results(n).to_pylist() for n in names} for e in again)
    assert found == whole
    assert all(whole.values())
    assert [row["t"] for row in whole["cafe"]] == [1, 4]


def test_what_is_left_out_is_told_in_hexadecimal_digits() -> None:
    with Engine() as engine:
        engine.execute(
            f"{S}; CREATE QUERY q ON ERROR SKIP AS"
            " SELECT split_part(hex(b), 'F', length(b) - 1) AS p FROM S [NOW]"
        )
        engine.push("S", [(1, b"\xff")])
        engine.finish()
        assert set(engine.left_out("q").column("row").to_pylist()) == {"t = 1, b = FF"}


def test_a_statement_takes_bytes_as_parameters() -> None:
    with Engine() as engine:
        engine.execute(
            f"{S}; CREATE QUERY q AS SELECT t FROM S [NOW] WHERE b = :b", parameters={"b": b"\xfe"}
        )
        engine.execute(
            "CREATE RELATION R (b BINARY, s STRING); INSERT INTO R VALUES (CAST('ä' AS BINARY), "
            "CAST(X'C3A4' AS STRING)); UPDATE R SET b = b || X'00' WHERE b >= X'C3';"
            "CREATE QUERY held AS SELECT * FROM R"
        )
        engine.push("S", [(1, b"\xfe"), (2, b"\xff")])
        engine.finish()
        assert engine.results("q").column("t").to_pylist() == [1]
        assert engine.results("held").to_pylist()[-1]["b"] == "ä\0".encode()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT b FROM S WHERE b = X'CAF'", "X'CAF' is no BINARY: a byte is two hexadecimal"),
        ("SELECT b FROM S WHERE b = X'0G'", "as in X'CAFE'"),
        ("SELECT b || 'a' FROM S", "concat needs values of one type, not BINARY, STRING; CAST"),
        ("SELECT upper(b) FROM S", "argument 1 of upper must be a STRING, not BINARY"),
        ("SELECT length(t) FROM S", "argument 1 of length must be a STRING or BINARY, not BIGINT"),
        ("SELECT CAST(b AS INT) FROM S", "a BINARY cannot be cast to INT"),
        ("SELECT b FROM S WHERE b = 'a'", "BINARY and STRING; CAST one of them"),
        ("SELECT sum(b) FROM S", "sum needs a number, not BINARY"),
        ("PUNCTUATE S WHERE b = X'00'", "BINARY, of which no value is said"),
        (
            "ALTER STREAM S ADD CLUSTERED BY (b) WITHIN 1 ROWS",
            "INT, BIGINT, DATE, TIMESTAMP or STRING",
        ),
        ("INSERT INTO R VALUES (CAST(X'FF' AS STRING))", "cannot be read as STRING"),
    ],
)
def test_refusals_name_the_way_out(statement: str, said: str) -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE RELATION R (s STRING)")
        with pytest.raises(MillpondError) as raised:
            engine.execute(statement)
        assert said in str(raised.value)
        assert isinstance(raised.value, CqlError)
