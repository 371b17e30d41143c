"""AHEAD AT MOST: tuples that are too far ahead of the wall clock are put aside."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.intake.intake import StreamIntake
from tests.crashing import die, validate_open

NOW = datetime(2030, 1, 1, 12)
SCRIPT = """
CREATE STREAM S (t TIMESTAMP, a INT) TIMESTAMP BY t DELAY 5 SECONDS AHEAD AT MOST 1 HOUR;
CREATE QUERY counts AS SELECT a, window_start, window_end, count(*) AS n
  FROM S [TUMBLE 1 DAY] GROUP BY a, window_start, window_end EMIT FINAL;
"""


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    microseconds = int((NOW - datetime(1970, 1, 1)).total_seconds()) * 10**6
    monkeypatch.setattr(
        StreamIntake, "now_ticks", lambda self: microseconds // self.tick_microseconds
    )


def at(text):
    return datetime.fromisoformat(f"2030-01-01 {text}")


def largest(engine):
    return engine.inputs.streams["s"].largest


def violating(engine):
    rows = engine.violating("S").to_pylist()
    return [(row["a"], row["violates"], row["missed_by"]) for row in rows]


@pytest.mark.parametrize("compacts", [False, True])
def test_a_tuple_of_the_year_9999_closes_no_window(tmp_path, compacts):
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)
    far = datetime(9999, 12, 31)
    engine.push("S", [(at("12:30"), 1), (far, 2), (at("13:00"), 3), (at("13:00:00.000001"), 4)])
    before = largest(engine)
    name = "AHEAD AT MOST 1 hour"
    assert violating(engine) == [(2, name, ""), (4, name, "")]
    engine.run_until_idle()
    assert engine.results("counts").num_rows == 0
    if compacts:
        engine.compact_log()
    die(engine)
    engine = Engine(store=tmp_path / "store")
    validate_open(engine)
    assert largest(engine) == before
    assert engine.entities().get("stream", "S").get("violating") == 2
    engine.push("S", [(at("12:59:59"), 1), (far, 5)])
    engine.finish()
    found = {
        row["a"]: row["n"] for row in engine.results("counts").to_pylist() if row["weight"] > 0
    }
    assert found == {1: 2, 3: 1}
    assert [a for a, *_ in violating(engine)] == [2, 4, 5]
    engine.close()


def test_punctuations_among_them_keep_their_places():
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t TIMESTAMP, a INT, p STRING) TIMESTAMP BY t DELAY 1 DAY "
            "AHEAD AT MOST 1 HOUR PUNCTUATED BY (p) ON VIOLATION COUNT;"
            "CREATE QUERY q AS SELECT a FROM S;"
        )
        far = datetime(2031, 1, 1)
        rows = [(far, 1, None), (at("12:00"), 7, None), (None, None, "a = 7")]
        rows += [(far, 2, None), (at("12:01"), 7, None), (at("12:02"), 8, None)]
        engine.push("S", pa.Table.from_pylist([dict(zip("tap", row, strict=True)) for row in rows]))
        name = "AHEAD AT MOST 1 hour"
        assert violating(engine) == [(1, name, ""), (2, name, ""), (7, "punctuation (a)", "q")]
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == [7, 8]


def test_numbers_that_count_seconds_and_other_lengths():
    with Engine({"tick": "1 second"}) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t AHEAD AT MOST 10 SECONDS;")
        now = int((NOW - datetime(1970, 1, 1)).total_seconds())
        engine.push("S", [(now, 1), (now + 10, 2), (now + 11, 3)])
        assert [a for a, *_ in violating(engine)] == [3]
        stream = engine.entities().get("stream", "S")
        assert stream.get("ahead") == "10 seconds"
        stream.set("ahead", "1 minute")
        engine.push("S", [(now + 11, 4), (now + 61, 5)])
        assert [a for a, *_ in violating(engine)] == [3, 5]
        engine.execute("ALTER STREAM S AHEAD AT MOST 0 SECONDS")
        engine.push("S", [(now + 11, 6)])
        assert [a for a, *_ in violating(engine)] == [3, 5, 6]
        with pytest.raises(StateError, match="it must be a length, such as"):
            stream.set("ahead", "any")


@pytest.mark.parametrize(
    ("declaration", "complaint"),
    [
        ("(t BIGINT) TIMESTAMP BY t AHEAD AT MOST 1 HOUR", "say how long one is"),
        ("(t TIMESTAMP) AHEAD AT MOST 1 HOUR", "AHEAD AT MOST needs TIMESTAMP BY"),
        ("(t TIMESTAMP) TIMESTAMP BY t AHEAD AT MOST 5", "needs a unit"),
        ("(t TIMESTAMP) TIMESTAMP BY t AHEAD 5 SECONDS", "expected AT"),
        ("(t TIMESTAMP) TIMESTAMP BY t AHEAD AT MOST -5 SECONDS", "cannot be negative"),
    ],
)
def test_refusals(declaration, complaint):
    with Engine() as engine, pytest.raises(CqlError, match=complaint):
        engine.execute(f"CREATE STREAM S {declaration}")
