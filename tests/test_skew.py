"""SKEW AT MOST: a stream that is too far behind others holds them up no longer."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import CqlError
from tests.crashing import die

TWO = """
CREATE STREAM A (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM B (t BIGINT, a INT) TIMESTAMP BY t DELAY 1 {skew};
CREATE QUERY both AS SELECT a FROM (SELECT a FROM A UNION ALL SELECT a FROM B);
"""


def both(engine):
    return [row["a"] for row in engine.results("both", "rows")]


def shown(engine, name):
    rows = engine.show("streams").to_pylist()
    return next(str(row) for row in rows if name in row.values())


@pytest.mark.parametrize("skew", ["", "SKEW AT MOST 3", "SKEW AT MOST 0"])
def test_who_is_too_far_behind_is_waited_for_no_longer(tmp_path, skew) -> None:
    until = {"": 2, "SKEW AT MOST 3": 7, "SKEW AT MOST 0": 10}[skew]
    with Engine(store=tmp_path) as engine:
        engine.execute(TWO.format(skew=skew))
        engine.push("B", [(3, 100)])
        engine.push("A", [(t, t) for t in range(1, 12)])
        engine.run_until_idle()
        assert both(engine) == sorted([*range(1, until), *([100] if until > 3 else [])], key=_time)
        behind = engine.entities().get("stream", "B").get("behind")
        assert behind != "none"
        assert f"{behind} behind" in shown(engine, "B")
        assert "behind" not in shown(engine, "A")
        die(engine)
    with Engine(store=tmp_path) as engine:
        engine.push("B", [(5, 5)])
        engine.run_until_idle()
        assert engine.late("B").num_rows == (until > 5)


def _time(a: int) -> int:
    return 3 if a == 100 else a


def test_files_are_read_to_their_end_all_the_same(tmp_path) -> None:
    (tmp_path / "b.csv").write_text("t,a\n" + "".join(f"{t},{t}\n" for t in range(100)))
    with Engine(settings={"page_rows": 10}, directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM A (t BIGINT, a INT) TIMESTAMP BY t;"
            "CREATE STREAM B (t BIGINT, a INT) TIMESTAMP BY t SKEW AT MOST 1 FROM csv('b.csv');"
            "CREATE QUERY q AS SELECT a FROM (SELECT a FROM A UNION ALL SELECT a FROM B)"
        )
        engine.push("A", [(1000, 1000)])
        engine.finish()
        assert engine.late("B").num_rows == 0
        assert len(both_of(engine)) == 101


def test_the_wall_clock_of_streams_timed_by_arrival_hurries_nobody() -> None:
    with Engine() as engine:
        engine.execute(TWO.format(skew="SKEW AT MOST 3") + "CREATE STREAM C (a INT)")
        for t in range(1, 4):
            engine.push("A", [(t, t)])
            engine.push("B", [(t, 100 * t)])
            engine.push("C", [(t,)])
            engine.run_until_idle()
        assert engine.late("B").num_rows == 0
        engine.finish()
        assert sorted(both(engine)) == [1, 2, 3, 100, 200, 300]


def both_of(engine):
    return engine.results("q", "rows")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE STREAM S (a INT) SKEW AT MOST 5 SECONDS", "SKEW AT MOST needs TIMESTAMP BY"),
        ("CREATE STREAM S (t BIGINT) TIMESTAMP BY t SKEW AT MOST -5", "negative"),
        ("CREATE STREAM S (t BIGINT) TIMESTAMP BY t SKEW 5", "AT"),
        ("CREATE RELATION R (t BIGINT) SKEW AT MOST 5", "a relation has no"),
    ],
)
def test_what_is_refused(statement, said) -> None:
    with Engine() as engine, pytest.raises(CqlError, match=said):
        engine.execute(statement)
