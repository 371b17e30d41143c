"""Names, values and calls that make no sense: each is a clear error, or right, never else."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import millpond
from millpond import Engine
from millpond.catalog import name_complaint
from millpond.errors import MillpondError

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT, s STRING, d DOUBLE) TIMESTAMP BY t;
CREATE STREAM M (t TIMESTAMP, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT PRIMARY KEY, name STRING);
CREATE QUERY q AS SELECT a + 1 AS b FROM S WHERE a > 1;
CREATE QUERY moments AS SELECT a FROM M;
"""


class Odd:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as made:
        made.execute(SCRIPT)
        yield made


def named(name: str) -> list[str]:
    """Statements that would declare something under a name."""
    return [
        f'CREATE STREAM "{name}" (a INT)',
        f'CREATE RELATION "{name}" (a INT)',
        f'CREATE VIEW "{name}" AS SELECT a FROM S',
        f'CREATE QUERY "{name}" AS SELECT a FROM S',
    ]


OURS = ("r@2", "r@1", "~one", "~one@3", "q#left_out", "~", "@", "#", "a~b", "~401aa2ec812d@0")
UNWRITABLE = ("a\x01b", "a\x00b", "a\nb", "\x7f", "a\u2028b", "a\ufffe", "\x85", "\t")


@pytest.mark.parametrize("name", [*OURS, *UNWRITABLE], ids=ascii)
def test_no_name_is_one_of_ours_or_cannot_be_written(engine: Engine, name: str) -> None:
    assert name_complaint(name)
    for text in named(name):
        with pytest.raises(
            MillpondError, match=r"names have no @|which no name has|is never closed"
        ):
            engine.execute(text)
    with pytest.raises(MillpondError):
        engine.register_function(name, lambda x: x, ["INT"], "INT")


@pytest.mark.parametrize(
    "name", ["a b", "ü", "a:b", "op1", "stream:s", "relation:r", "_ts", "😀", "a.b"]
)
def test_other_names_are_as_good_as_any(name: str) -> None:
    with Engine() as engine:
        engine.execute(f'CREATE RELATION "{name}" (a INT); CREATE STREAM T (t INT) TIMESTAMP BY t')
        engine.execute(f'CREATE QUERY "{name}2" AS SELECT a FROM "{name}"')
        engine.push(name, [(5,)])
        engine.push("T", [(1,)])
        engine.execute(f'CREATE QUERY late AS SELECT a FROM "{name}"')
        engine.finish()
        assert engine.results(f"{name}2")["a"].to_pylist() == [5]
        assert engine.results("late")["a"].to_pylist() == [5]


CALLS: dict[str, Callable[[Engine], Any]] = {
    "execute None": lambda e: e.execute(None),  # type: ignore[arg-type]
    "execute bytes": lambda e: e.execute(b"SHOW ALL"),  # type: ignore[arg-type]
    "execute half a pair": lambda e: e.execute("SELECT '\ud800' AS x FROM S"),
    "execute half a pair in a name": lambda e: e.execute('SELECT "\udfff" FROM S'),
    "execute a zero byte": lambda e: e.execute("SELECT a FROM S\0"),
    "execute an open comment": lambda e: e.execute("/*"),
    "execute deep": lambda e: e.execute("SELECT " + "(" * 5_000 + "a"),
    "format_time text": lambda e: e.format_time("q", "x"),  # type: ignore[arg-type]
    "format_time of timestamps": lambda e: e.format_time("moments", "x"),  # type: ignore[arg-type]
    "format_time a float": lambda e: e.format_time("moments", 1.5),  # type: ignore[arg-type]
    "format_time huge": lambda e: e.format_time("moments", 10**5_000),
    "format_time an odd value": lambda e: e.format_time("moments", Odd()),  # type: ignore[arg-type]
    "format_time of nothing": lambda e: e.format_time("nothing", 5),
    "spark a number": lambda e: Engine(spark=5),  # type: ignore[arg-type]
    "spark an odd value": lambda e: Engine(spark=Odd()),  # type: ignore[arg-type]
    "spark text": lambda e: Engine(spark="local"),  # type: ignore[arg-type]
    "settings unknown": lambda e: Engine({"nothing": 1}),
    "settings wrong": lambda e: Engine({"budget": "many"}),
    "settings odd": lambda e: Engine({"page_rows": None}),
    "functions wrong": lambda e: Engine(functions=[1]),  # type: ignore[list-item]
    "store a file": lambda e: Engine(store=Path(__file__)),
    "push to nothing": lambda e: e.push("nothing", []),
    "push to half a pair": lambda e: e.push("\ud800", []),
    "push None": lambda e: e.push("S", None),
    "push a number": lambda e: e.push("S", 5),
    "push text": lambda e: e.push("S", "rows"),
    "push text rows": lambda e: e.push("S", ["row"]),
    "push odd rows": lambda e: e.push("S", [Odd()]),
    "push odd values": lambda e: e.push("S", [(1, Odd(), "x", 1.0)]),
    "push too few": lambda e: e.push("S", [(1, 2)]),
    "push a wide number": lambda e: e.push("S", [(2**64, 1, "x", 1.0)]),
    "push an endless number": lambda e: e.push("S", [(1, 10**5_000, "x", 1.0)]),
    "push NaN as INT": lambda e: e.push("S", [(1, math.nan, "x", 1.0)]),
    "push infinity as INT": lambda e: e.push("S", [(1, math.inf, "x", 1.0)]),
    "push infinity as DECIMAL": lambda e: e.push("S", [(1, decimal.Decimal("Infinity"), "x", 1.0)]),
    "push half a pair": lambda e: e.push("S", [(1, 1, "\ud800", 1.0)]),
    "push no time": lambda e: e.push("S", [(None, 1, "x", 1.0)]),
    "push a far year": lambda e: e.push("M", [(np.datetime64("99999-01-01"), 1)]),
    "push other columns": lambda e: e.push("S", pa.table({"x": [1]})),
    "push columns twice": lambda e: e.push("S", pa.table([[1], [1]], names=["t", "t"])),
    "push nested columns": lambda e: e.push("M", pa.table({"t": [[1]], "a": [1]})),
    "push a frame with odd values": lambda e: e.push(
        "S", pd.DataFrame({"t": [1], "a": [Odd()], "s": ["x"], "d": [1.0]})
    ),
    "push changes to a stream": lambda e: e.push_changes("S", [(1, "+", (1, 1, "x", 1.0))]),
    "push changes that are none": lambda e: e.push_changes("R", [5]),  # type: ignore[list-item]
    "advance to text": lambda e: e.advance("S", "tomorrow"),
    "advance to None": lambda e: e.advance("S", None),
    "advance to an odd value": lambda e: e.advance("S", Odd()),
    "advance to an endless number": lambda e: e.advance("S", 10**5_000),
    "advance for ever": lambda e: e.advance("S", 2**70),
    "late of nothing": lambda e: e.late("nothing"),
    "results as a number": lambda e: e.results("q", 5),  # type: ignore[arg-type]
    "results in no form": lambda e: e.results("q", "html"),
    "results of a list": lambda e: e.results(["q"]),  # type: ignore[arg-type]
    "left_out of nothing": lambda e: e.left_out("nothing"),
    "subscribe with nothing": lambda e: e.subscribe("q", None),  # type: ignore[arg-type]
    "subscribe to nothing": lambda e: e.subscribe("nothing", print),
    "explain in no stage": lambda e: e.explain("q", "all"),
    "explain in an odd stage": lambda e: e.explain("q", Odd()),  # type: ignore[arg-type]
    "show a number": lambda e: e.show(5),  # type: ignore[arg-type]
    "drop nothing": lambda e: e.drop("nothing"),
    "drop what is read": lambda e: e.drop("S"),
    "restart what runs": lambda e: e.restart("q"),
    "query of nothing": lambda e: e.query("nothing"),
    "entities of no kind": lambda e: e.entities().get("nothing", "q"),
    "entities of nothing": lambda e: e.entities().get("query", "nothing"),
    "an entity set to nonsense": lambda e: e.entities().get("query", "q").set("weight", "x"),
    "an entity set to an odd value": lambda e: e.entities().get("query", "q").set("weight", Odd()),
    "a function without a name": lambda e: e.register_function("", len, ["INT"], "INT"),
    "a function that is none": lambda e: e.register_function("f", 5, ["INT"], "INT"),  # type: ignore[arg-type]
    "a function of nothing": lambda e: e.register_function("f", len, [], "INT"),
    "a function of no type": lambda e: e.register_function("f", len, ["THING"], "INT"),
    "a function of a half pair": lambda e: e.register_function("f\ud800", len, ["INT"], "INT"),
    "run for a negative time": lambda e: e.run_sources(seconds=-1),
    "run for a text": lambda e: e.run_sources(rows="x"),  # type: ignore[arg-type]
    "connect to nowhere": lambda e: millpond.connect("nowhere").execute("SHOW ALL"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_that_makes_no_sense_is_a_clear_error(
    engine: Engine, call: Callable[[Engine], Any]
) -> None:
    with pytest.raises(MillpondError) as raised:
        call(engine)
    assert str(raised.value)
    assert len(str(raised.value)) < 1_000


def test_the_engine_is_well_afterwards(engine: Engine) -> None:
    engine.push("S", [(7, 1, "x", 1.0), (8, 2, "x", 1.0)])
    engine.advance("S", 10)
    engine.run_until_idle()
    assert engine.results("q")["b"].to_pylist()[-1:] == [3]
