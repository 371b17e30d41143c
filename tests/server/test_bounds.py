"""One-time questions and previews: bounded in rows, bytes and seconds, and they say so."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from millpond import Engine
from millpond.cql.check.statements import check_script
from millpond.server import one_time
from millpond.server.faults import RequestError
from millpond.server.limits import Limits
from millpond.server.service import Service
from tests.server.serving import running

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT, name STRING);
CREATE QUERY keeps AS SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY a;
"""
ROWS = 30_000
COUNTS = "SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY a"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as made:
        made.execute(SCRIPT)
        made.push("S", [(t, t % 7) for t in range(ROWS)])
        made.push("R", [(a, "x" * 100) for a in range(100)])
        made.run_until_idle()
        yield made


def ask(engine: Engine, text: str, **limits: Any) -> list[dict[str, Any]]:
    (statement,) = check_script(text, engine.catalog)
    table, _ = one_time.answer(engine, statement, Limits(**limits))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_what_is_within_the_bounds_is_answered_exactly(engine: Engine) -> None:
    found = {row["a"]: row["n"] for row in ask(engine, COUNTS, ask_rows=ROWS, ask_seconds=600)}
    assert found == {a: len(range(a, ROWS, 7)) for a in range(7)}
    assert len(ask(engine, "SELECT a, name FROM R WHERE a < 3")) == 3
    assert ask(engine, "SELECT a FROM R WHERE a < 0") == []
    first = ROWS // 1_000 * 1_000 - 1_000
    hop = "SELECT window_start, count(*) AS n FROM S [HOP 1500 SLIDE 1000] GROUP BY window_start"
    assert [(row["window_start"], row["n"]) for row in ask(engine, hop)] == [(first, 1_000)]


@pytest.mark.parametrize(
    ("text", "limits", "bound", "said"),
    [
        (COUNTS, {"ask_rows": ROWS - 1}, "rows", f"reads {ROWS:,} rows; {ROWS - 1:,} are the most"),
        (COUNTS, {"ask_bytes": 100_000}, "bytes", "100,000 are the most"),
        (COUNTS, {"ask_seconds": 0.0}, "seconds", "takes longer"),
        ("SELECT a FROM R", {"ask_rows": 50}, "rows", "reads 100 rows"),
        ("SELECT x.a FROM S [RANGE 99] x, S [RANGE 9] y", {}, "rows", "pairs 900,000,000 rows"),
        ("SELECT x.a, y.a AS b FROM R x, R y", {"ask_rows": 5_000}, "rows", "holds"),
        ("SELECT x.a, x.name, y.a AS b FROM R x, R y", {"ask_bytes": 500_000}, "bytes", "holds"),
    ],
)
def test_a_bound_that_is_hit_is_named(
    engine: Engine, text: str, limits: dict[str, Any], bound: str, said: str
) -> None:
    with pytest.raises(RequestError) as refused:
        ask(engine, text, **limits)
    assert (refused.value.status, refused.value.details) == (413, {"bound": bound})
    assert said in refused.value.message
    assert f"--ask-{bound}" in refused.value.message


PAIRS = "SELECT x.k, x.a, y.b FROM L [RANGE 1000000] x, R [RANGE 1000000] y WHERE x.k = y.k"
COUNTED = "SELECT COUNT(*) AS n FROM L [RANGE 1000000] x, R [RANGE 1000000] y WHERE x.k = y.k"
SIDE = 1_000


@pytest.fixture(params=[1, SIDE], ids=["at one instant", "at many"])
def exploding(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Two streams of which all rows have one key, a million pairs."""
    with Engine() as made:
        made.execute(
            "CREATE STREAM L (k INT, a BIGINT, ts BIGINT) TIMESTAMP BY ts;"
            "CREATE STREAM R (k INT, b BIGINT, ts BIGINT) TIMESTAMP BY ts;"
            "CREATE QUERY holds_left AS SELECT COUNT(*) AS n FROM L [RANGE 1000000];"
            "CREATE QUERY holds_right AS SELECT COUNT(*) AS n FROM R [RANGE 1000000];"
        )
        for stream in ("L", "R"):
            made.push(stream, [(1, n, n % request.param) for n in range(SIDE)])
        made.run_until_idle()
        yield made


def test_a_join_on_a_key_that_explodes_hits_its_bound(exploding: Engine) -> None:
    """Each row meets each: that is not to be seen before it is done."""
    tracemalloc.start()
    with pytest.raises(RequestError) as refused:
        ask(exploding, PAIRS, ask_bytes=10**6, ask_rows=10**6)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (refused.value.status, refused.value.details) == (413, {"bound": "bytes"})
    assert "1,000,000" in refused.value.message
    assert "--ask-bytes" in refused.value.message
    assert most < 20 * 10**6


def test_what_such_a_join_is_asked_for_is_counted_if_there_is_room(exploding: Engine) -> None:
    """The present is asked for, so no window runs empty for it."""
    found = ask(exploding, COUNTED, ask_bytes=500 * 10**6, ask_seconds=600)
    assert [row["n"] for row in found] == [SIDE**2]


def test_few_questions_are_worked_on_at_once(engine: Engine) -> None:
    service = Service(engine, Limits(asks_at_once=1, ask_seconds=0.0))
    with service.asking(), pytest.raises(RequestError) as refused, service.asking():
        pass
    assert refused.value.status == 429
    with service.asking():
        pass


@pytest.mark.slow
def test_a_preview_ends_at_its_bounds_and_says_so() -> None:
    text = "SELECT a FROM S"
    for limits, bound in (
        (Limits(ask_rows=3), "rows"),
        (Limits(ask_bytes=60), "bytes"),
        (Limits(ask_seconds=0.2), "seconds"),
    ):
        with running(limits=limits) as server:
            found = []
            wanted = {"text": text, "seconds": 30}
            with server.http.stream("POST", "/api/preview", json=wanted) as response:
                lines = response.iter_lines()
                assert json.loads(next(lines))["columns"] == ["a"]
                server.push(*((t, t) for t in range(50)))
                found = [json.loads(line) for line in lines]
            assert found[-1] == {"bound": bound}
            assert bound == "seconds" or len([line for line in found if "row" in line]) <= 3
