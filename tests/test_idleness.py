"""IDLE AFTER: the time of a silent stream goes on by the wall clock, and holds nobody up."""

from __future__ import annotations

from collections import Counter

import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.identities import StreamId
from millpond.server import plan_xml
from millpond.server.service import Service
from tests.crashing import die

HOUR = 3600
"""In seconds: what a busy machine is late by does not matter."""
READINGS = """
CREATE STREAM Readings (at TIMESTAMP, sensor INT) TIMESTAMP BY at IDLE AFTER 1 HOUR;
CREATE QUERY all_of_them AS SELECT sensor FROM Readings;
"""
ALARMS = (
    READINGS
    + """
CREATE RELATION Sensors (sensor INT) FROM push();
CREATE QUERY silent AS RELATION SELECT sensor FROM Sensors
WHERE NOT EXISTS (SELECT * FROM Readings [RANGE 9 HOURS] WHERE Readings.sensor = Sensors.sensor);
"""
)
TWO = """
SET tick = '1 second';
CREATE STREAM A (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM B (t BIGINT, a INT) TIMESTAMP BY t {idle};
CREATE QUERY both AS SELECT A.a FROM A [RANGE 5], B [RANGE 5] WHERE A.a = B.a;
CREATE QUERY either AS SELECT a FROM (SELECT a FROM A UNION ALL SELECT a FROM B);
"""


def intake(engine, stream):
    return engine.ground.inputs.streams[StreamId(stream)]


def be_silent(engine, stream, seconds):
    """Has what came to a stream have come so long ago, and the engine look at the clock."""
    of = intake(engine, stream)
    of.last_arrival_seconds -= seconds
    of.largest_seconds -= seconds
    engine.run_until_idle()


def reading(hour, sensor):
    return {"at": f"2026-01-01 {hour:02}:00:00", "sensor": sensor}


def alarms(engine):
    """The sensors that are silent now."""
    held = Counter()
    for row in engine.results("silent", "rows"):
        held[row["sensor"]] += row["weight"]
    return sorted(held.elements())


def test_an_alarm_for_absence_fires_when_all_is_quiet():
    with Engine() as engine:
        engine.execute(ALARMS)
        engine.push("Sensors", [(1,), (2,), (3,)])
        engine.push("Readings", [reading(0, 1), reading(4, 2)])
        engine.run_until_idle()
        be_silent(engine, "Readings", HOUR / 2)
        assert intake(engine, "Readings").queue.heartbeat < intake(engine, "Readings").largest
        be_silent(engine, "Readings", HOUR)
        assert alarms(engine) == [3]  # which never reported
        be_silent(engine, "Readings", 5 * HOUR)
        assert alarms(engine) == [1, 3]
        be_silent(engine, "Readings", 4 * HOUR)
        assert alarms(engine) == [1, 2, 3]
        engine.push("Readings", [reading(20, 2), reading(21, 1)])
        engine.run_until_idle()
        be_silent(engine, "Readings", 2 * HOUR)
        assert alarms(engine) == [3]
        assert engine.late("Readings").num_rows == 0


def test_the_past_comes_too_late_and_is_kept():
    with Engine() as engine:
        engine.execute(READINGS)
        engine.push("Readings", [reading(0, 1)])
        be_silent(engine, "Readings", 6 * HOUR)
        engine.push("Readings", [reading(5, 2), reading(7, 3)])
        assert engine.late("Readings").column("sensor").to_pylist() == [2]
        assert intake(engine, "Readings").arrived == 2


def test_delay_is_waited_for_all_the_same():
    with Engine() as engine:
        engine.execute(READINGS.replace("BY at", "BY at DELAY 3 HOURS"))
        engine.push("Readings", [reading(4, 1)])
        be_silent(engine, "Readings", 6 * HOUR)
        engine.push("Readings", [reading(6, 2), reading(8, 3)])
        assert engine.late("Readings").column("sensor").to_pylist() == [2]


def test_old_data_are_not_late_before_there_is_any():
    with Engine() as engine:
        engine.execute(READINGS)
        be_silent(engine, "Readings", 10**6)
        engine.push("Readings", [reading(0, 1), reading(1, 2)])
        assert engine.late("Readings").num_rows == 0


@pytest.mark.parametrize("way", ["idle", "clock"])
def test_a_silent_stream_holds_nobody_up(way):
    settings = {"clock": "wall", "heartbeat_timeout": "3600 seconds"} if way == "clock" else {}
    with Engine(settings=settings) as engine:
        engine.execute(TWO.format(idle="IDLE AFTER 1 HOUR" if way == "idle" else ""))
        engine.push("B", [{"t": 1, "a": 1}])
        engine.push("A", [{"t": t, "a": t} for t in range(1, 9)])
        engine.run_until_idle()
        assert engine.results("both", "rows") == []
        be_silent(engine, "B", 2 * HOUR)
        assert [row["a"] for row in engine.results("both", "rows")] == [1]
        assert [row["a"] for row in engine.results("either", "rows")] == list(range(1, 8))


def test_a_stream_that_has_ended_ends_no_other(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("t,a\n1,1\n2,2\n")
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "SET tick = '1 second';"
            "CREATE STREAM A (t BIGINT, a INT) TIMESTAMP BY t FROM csv('a.csv');"
            "CREATE STREAM B (t BIGINT, a INT) TIMESTAMP BY t IDLE AFTER 5 SECONDS;"
            "CREATE QUERY q AS SELECT a FROM A UNION ALL SELECT a FROM B;"
        )
        engine.run_until_idle()
        be_silent(engine, "B", 10**6)
        engine.push("B", [{"t": 3, "a": 3}, {"t": 4, "a": 4}])
        assert engine.late("B").num_rows == 0


def test_what_was_promised_stays_so_over_a_restart(tmp_path):
    engine = Engine(store=tmp_path / "store")
    engine.execute(READINGS)
    engine.push("Readings", [reading(0, 1)])
    be_silent(engine, "Readings", 3 * HOUR)
    promised = intake(engine, "Readings").queue.heartbeat
    die(engine)
    with Engine(store=tmp_path / "store") as again:
        again.run_until_idle()
        assert intake(again, "Readings").queue.heartbeat == promised
        be_silent(again, "Readings", 5 * HOUR)  # from its opening on
        passed = intake(again, "Readings").queue.heartbeat - promised
        assert 1 < passed / 10**6 / HOUR < 3
        assert again.entities().get("stream", "Readings").get("idle_after") == "1 hour"


def test_it_is_changed_while_data_flow(tmp_path):
    with Engine() as engine:
        engine.execute(READINGS)
        engine.push("Readings", [reading(0, 1)])
        engine.execute("ALTER STREAM Readings IDLE AFTER NEVER")
        largest = intake(engine, "Readings").largest
        be_silent(engine, "Readings", 2 * HOUR)
        assert intake(engine, "Readings").queue.heartbeat == largest - 1
        engine.entities().get("stream", "readings").set("idle_after", "500 milliseconds")
        be_silent(engine, "Readings", 0.6)
        assert intake(engine, "Readings").queue.heartbeat >= largest + 2 * HOUR * 10**6
        plan = plan_xml.written(engine)
    assert 'idle_after="500 milliseconds"' in plan
    with Engine() as other:
        plan_xml.load(Service(other), plan.encode(), replaces=False)
        assert other.entities().get("stream", "Readings").get("idle_after") == "500 milliseconds"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE STREAM S (a INT) IDLE AFTER 5 SECONDS", "IDLE AFTER needs TIMESTAMP BY"),
        ("CREATE STREAM S (t BIGINT) TIMESTAMP BY t IDLE AFTER 5 SECONDS", "SET tick = '1 second'"),
        ("CREATE STREAM S (t TIMESTAMP) TIMESTAMP BY t IDLE AFTER 5", "needs a unit"),
        ("CREATE STREAM S (t TIMESTAMP) TIMESTAMP BY t IDLE AFTER -5 SECONDS", "negative"),
        ("CREATE STREAM S (t BIGINT) TIMESTAMP BY t IDLE 5 SECONDS", "AFTER"),
        ("CREATE RELATION R (t BIGINT) IDLE AFTER 5 SECONDS", "a relation has no"),
        ("CREATE STREAM S (t BIGINT) TIMESTAMP BY t IDLE AFTER NEVER IDLE AFTER NEVER", "twice"),
    ],
)
def test_what_makes_no_sense_is_refused(text, words):
    with Engine() as engine, pytest.raises(CqlError, match=words):
        engine.execute(text)


def test_a_control_that_will_not_do_is_refused():
    with Engine() as engine:
        engine.execute(READINGS)
        with pytest.raises(StateError, match="never or a length"):
            engine.entities().get("stream", "Readings").set("idle_after", "soon")
