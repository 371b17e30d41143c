"""DECIMALs from end to end: what connectors take and give, arithmetic, state, a restart."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.cql import decimals
from millpond.cql.expressions import Call, Column
from millpond.errors import InputError, MillpondError
from millpond.kernels.expressions import Fault, Program
from millpond.kernels.expressions.operand import to_array
from millpond.schema import Field, Schema, Type
from millpond.server.formats import FORMATS, Heading
from tests.drawn_examples import examples

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
S = "CREATE STREAM S (t BIGINT, a DECIMAL(10, 2)) TIMESTAMP BY t"


@st.composite
def typed(draw: st.DrawFn) -> tuple[Type, Decimal]:
    """A type, and a number of it."""
    precision = draw(st.integers(1, 38))
    type_ = Type.decimal(precision, draw(st.integers(0, precision)))
    units = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    return type_, Decimal(units).scaleb(-type_.scale, EXACT)


APPLY = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "%": EXACT.remainder}


def meant(symbol: str, a: Decimal, b: Decimal, to: Type) -> Decimal | None:
    """The exact result, rounded once; None where it does not fit."""
    over, under = (int(x.scaleb(38, EXACT)) for x in (a, b))
    if symbol == "/":  # a quotient may have no end: the exact halves are told apart as fractions
        size = (2 * abs(over) * 10**to.scale + abs(under)) // (2 * abs(under))
        made = Decimal(-size if (over < 0) != (under < 0) else size).scaleb(-to.scale, EXACT)
    else:
        made = APPLY[symbol](a, b).quantize(Decimal(1).scaleb(-to.scale), context=EXACT)
    return made if abs(made) < Decimal(10) ** (to.precision - to.scale) else None


@examples(60)
@given(typed(), typed(), st.sampled_from("+-*/%"))
def test_arithmetic_is_exact_and_rounded_once(
    left: tuple[Type, Decimal], right: tuple[Type, Decimal], symbol: str
) -> None:
    (one, a), (other, b) = left, right
    to = decimals.result(symbol, one, other)
    columns = [
        pa.array([x], pa.decimal128(t.precision, t.scale)) for t, x in ((one, a), (other, b))
    ]
    (value,) = Program([Call(symbol, (Column(0, one), Column(1, other)), to)]).run(columns)
    found = to_array(value, to, 1)[0].as_py()
    if symbol in "/%" and b == 0:
        assert found is None
        return
    wanted = meant(symbol, a, b, to)
    if wanted is None:
        assert value.faults is not None
        assert value.faults[0] == Fault.NUMERIC_VALUE_OUT_OF_RANGE
    else:
        assert value.faults is None or value.faults[0] == 0
        assert found == wanted


@pytest.mark.parametrize(
    "rows",
    [
        [(1, Decimal("1.50")), (2, -7), (3, "0.10"), (4, 0.1), (5, None), (6, np.float64(2.25))],
        pd.DataFrame({"t": [1, 2, 3, 4, 5, 6], "a": [1.5, -7, 0.1, 0.1, None, 2.25]}),
        pa.table({"t": [1, 2, 3, 4, 5, 6], "a": [1.5, -7, 0.1, 0.1, None, 2.25]}),
        pa.table({"t": [1, 2, 3, 4, 5, 6], "a": ["1.50", " -7", "0.1", "1e-1", None, "2.25"]}),
    ],
    ids=["python", "pandas", "arrow", "arrow texts"],
)
def test_numbers_are_taken_as_they_are_written(rows: object) -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE QUERY q AS SELECT t, a FROM S [NOW]")
        engine.push("S", rows)
        engine.finish()
        found = engine.results("q").column("a").to_pylist()
    wanted = ["1.50", "-7.00", "0.10", "0.10", None, "2.25"]
    assert [None if x is None else str(x) for x in found] == wanted


@pytest.mark.parametrize(
    "value", [1.555, "1.555", Decimal("1.555"), 10**8, "x", True, float("nan"), Decimal("Infinity")]
)
def test_what_has_other_digits_is_refused_with_its_place(value: object) -> None:
    with Engine() as engine:
        engine.execute(S)
        with pytest.raises(InputError, match=r"row 2, column a: .* is not a DECIMAL\(10, 2\)"):
            engine.push("S", [(1, 1), (2, value)])


def test_files_keep_every_digit(tmp_path: Path) -> None:
    number = "12345678901234567890123456.7890123456"
    (tmp_path / "in.csv").write_text(f't,a\n1,{number}\n2," -0.0000000001"\n3,\n')
    lines = [f'{{"t": 1, "a": {number}}}', '{"t": 2, "a": "-0.0000000001"}', '{"t": 3, "a": null}']
    (tmp_path / "in.json").write_text("\n".join(lines))
    found = {}
    for form, again in (("csv", "csv"), ("json", "json"), ("csv", "parquet")):
        out = tmp_path / f"out.{again}"
        with Engine(directory=tmp_path) as engine:
            engine.execute(
                "CREATE STREAM S (t BIGINT, a DECIMAL(36, 10)) TIMESTAMP BY t "
                f"FROM {form}('in.{form}');"
                f"CREATE QUERY q AS SELECT a FROM S [NOW] INTO {again}('{out.name}')"
            )
            engine.finish()
            found[again] = engine.results("q").column("a").to_pylist()
    wanted = [Decimal(number), Decimal("-0.0000000001"), None]
    assert list(found.values()) == [wanted] * 3
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == [
        f'1,1,"{number}"',
        '2,1,"-0.0000000001"',
        "3,1,",
    ]
    assert f'"a": "{number}"' in (tmp_path / "out.json").read_text()
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE RELATION R (a DECIMAL(36, 10)) FROM parquet('out.parquet');"
            "CREATE QUERY q AS SELECT a FROM R"
        )
        engine.finish()
        assert sorted(engine.results("q").column("a").to_pylist(), key=str) == sorted(
            wanted, key=str
        )


def test_results_on_the_wire_have_every_digit() -> None:
    schema = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("a", pa.decimal128(20, 8))])
    table = pa.table([[1], [1], [Decimal("0.00000001")]], schema=schema)
    heading = Heading("q", schema, str)
    for form in ("ndjson", "sse", "xml"):
        assert b"0.00000001" in FORMATS[form]().results(heading, table, "1")


QUERIES = """
CREATE QUERY totals AS SELECT a, sum(a) AS s, avg(a) AS m, min(w) AS lo, max(w) AS hi,
  count(DISTINCT w) AS d FROM S [ROWS 3] GROUP BY a;
CREATE QUERY met AS SELECT S.a, R.n FROM S [RANGE 3], R WHERE S.w = R.w;
CREATE QUERY over_rows AS SELECT sum(w) OVER (ORDER BY t ROWS 1 PRECEDING) AS s FROM S [ROWS 4];
CREATE QUERY least AS SELECT * FROM S [ROWS 4] ORDER BY w DESC LIMIT 2;
CREATE QUERY above AS SELECT t FROM S [NOW] WHERE w > 1.25;
CREATE QUERY above_more AS SELECT t FROM S [NOW] WHERE w > 2.5;
CREATE QUERY matched AS SELECT * FROM S MATCH_RECOGNIZE (ORDER BY t
  MEASURES sum(B.w) AS total, min(B.a) AS least, avg(B.a) AS mean, last(B.w) AS w
  PATTERN (A B+ C) WITHIN 9 DEFINE B AS B.w > 0, C AS C.w < 0) M;
"""
PUSHES = [
    [(1, "1.50", "3"), (2, "1.5", "12345678901234567890.0000000001"), (3, "2", None)],
    [
        (4, "1.50", "3"),
        (5, "2.00", "-1"),
        (6, None, "1.25"),
        (7, "1.5", "1.2500000001"),
        (8, "2", "-0.5"),
        (9, "99999999.99", "12345678901234567890.0000000001"),
    ],
]


def lives(engine_of: object, store: Path | None) -> Iterator[Engine]:
    engine = engine_of(store)  # type: ignore[operator]
    engine.execute(
        "CREATE STREAM S (t BIGINT, a DECIMAL(10, 2), w DECIMAL(30, 10)) TIMESTAMP BY t;"
        "CREATE RELATION R (w DECIMAL(30, 10) PRIMARY KEY, n STRING);"
        "INSERT INTO R VALUES (3, 'three'), (DECIMAL '12345678901234567890.0000000001', 'much');"
        + QUERIES
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


def test_a_store_is_opened_again_with_decimals_in_keys_states_and_plans(tmp_path: Path) -> None:
    names = [line.split()[2] for line in QUERIES.splitlines() if line.startswith("CREATE")]
    (whole,) = (
        {n: e.results(n).to_pylist() for n in names} for e in lives(lambda _: Engine(), None)
    )
    settings = {"validate": "on"}
    again = lives(lambda store: Engine(settings, store=store), tmp_path / "store")
    (found,) = ({n: e.results(n).to_pylist() for n in names} for e in again)
    assert found == whole
    assert all(whole.values())
    matched = [(str(row["total"]), str(row["least"]), str(row["mean"])) for row in whole["matched"]]
    assert matched == [("3.0000000000", "1.50", "1.500000"), ("1.2500000001", "1.50", "1.500000")]


def test_a_sum_of_too_many_digits_stops_its_query_with_the_way_out() -> None:
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a DECIMAL(38, 0)) TIMESTAMP BY t;"
            "CREATE QUERY q AS SELECT sum(a) AS s FROM S;"
            "CREATE QUERY r AS SELECT max(a) AS s FROM S"
        )
        engine.push("S", [(1, 10**38 - 1), (2, 1)])
        with pytest.raises(InputError, match="sum leaves the range of BIGINT, or of its DECIMAL"):
            engine.finish()
        assert engine.results("r").num_rows


def test_types_are_one_object_each() -> None:
    assert Type.decimal(10, 2) is Type.of("DECIMAL(10, 2)")
    assert Type.decimal(10, 2).family is Type.DECIMAL
    assert str(Schema((Field("a", Type.decimal(5, 0)),))) == "(a DECIMAL(5, 0))"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "PUNCTUATE S WHERE a = DECIMAL '1.99'",
            "DECIMAL.10, 2., of which no value is said",
        ),
        ("PUNCTUATE S WHERE t <= DECIMAL '7.5'", "the value is 7.5; round it"),
        ("INSERT INTO R VALUES (DECIMAL '2.5')", "the value is 2.5; round it"),
    ],
)
def test_no_fraction_is_cut_off(statement: str, said: str) -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE RELATION R (k INT)")
        with pytest.raises(MillpondError, match=said):
            engine.execute(statement)
