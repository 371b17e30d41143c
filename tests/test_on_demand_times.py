"""A source that knows its time is asked for it when others wait (unified paper, section 4.1)."""

from __future__ import annotations

from millpond import Engine
from tests.patience import wait_until

SCRIPT = """
CREATE STREAM Slow (ts BIGINT, n BIGINT) TIMESTAMP BY ts FROM rate(0.0001, start = 0);
CREATE STREAM Quick (ts BIGINT, a INT) TIMESTAMP BY ts;
CREATE QUERY joined AS SELECT ISTREAM Q.a FROM Quick Q [RANGE 1 HOUR], Slow S [RANGE 1 HOUR];
"""


def test_a_join_does_not_wait_for_a_row_that_is_hours_away() -> None:
    """The second row of the slow stream comes after 10,000 seconds, and the engine knows it."""
    with Engine({"pace": "wall", "tick": "1 second"}) as engine:
        engine.execute(SCRIPT)
        engine.start()
        engine.push("Quick", [(5, 1), (60, 2), (61, 3)])
        wait_until(lambda: engine.result_count("joined") == 2)  # more may come at 61
        slow = engine.inputs.streams["slow"].queue
        assert slow.heartbeat == 60  # no further than anybody needs
        engine.push("Quick", [(20_000, 4)])
        wait_until(lambda: slow.heartbeat == 9_999)  # then the next row comes
        assert engine.late("Slow").num_rows == 0
        engine.stop(drain=False)


def test_where_nobody_is_further_nobody_is_asked() -> None:
    with Engine({"pace": "wall", "tick": "1 second"}) as engine:
        engine.execute(SCRIPT)
        engine.start()
        wait_until(lambda: engine.inputs.streams["slow"].arrived == 1)
        engine.run_until_idle()
        assert engine.inputs.streams["slow"].queue.heartbeat == -1
        engine.stop(drain=False)
