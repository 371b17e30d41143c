"""Time zones: their clocks beside Python's, and queries that keep the zone they began with."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.catalog import Catalog, QueryEntry
from millpond.cql.check.statements import check_script
from millpond.cql.statements import Create
from millpond.errors import CqlError
from millpond.time_zones import first_instants, shown, zone_named
from tests.drawn_examples import examples
from tests.reference_values import first_in, shown_in

ZONES = (
    "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca",
    "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu", "America/Sao_Paulo", "Europe/Dublin",
)  # fmt: skip
EPOCH = datetime(1970, 1, 1)
TURNS = [
    (year, month, day, hour)
    for year in (1916, 1987, 2011, 2018, 2024, 2045)
    for month, day in ((3, 31), (4, 6), (10, 27), (11, 4), (12, 30), (2, 18))
    for hour in (0, 1, 2, 15, 23)
]


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@st.composite
def moments(draw: st.DrawFn) -> list[datetime]:
    near = st.builds(
        lambda turn, shift: datetime(*turn) + timedelta(seconds=shift),
        st.sampled_from(TURNS),
        st.integers(-90_000, 90_000),
    )
    far = st.datetimes(datetime(1800, 2, 1), datetime(2390, 1, 1))
    return draw(st.lists(st.one_of(near, far), min_size=1, max_size=30))


@examples(200)
@given(st.sampled_from(ZONES), moments())
def test_clocks_show_what_python_says(zone: str, given_: list[datetime]) -> None:
    found = shown(zone, np.array(list(map(micros, given_))))
    wanted = [
        micros(each.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None))
        for each in given_
    ]
    assert found.tolist() == wanted
    assert found.tolist() == [micros(shown_in(each, zone)) for each in given_]


@examples(200)
@given(st.sampled_from(ZONES), moments())
def test_the_first_instant_is_the_first(zone: str, given_: list[datetime]) -> None:
    local = np.array(list(map(micros, given_)))
    found = first_instants(zone, local)
    assert found.tolist() == [micros(first_in(each, zone)) for each in given_]
    back = shown(zone, found)
    assert (back >= local).all()
    is_skipped = back > local
    assert (shown(zone, found - 1)[is_skipped] < local[is_skipped]).all()


def test_rules_go_on_for_ever_and_there_were_none_before() -> None:
    cycle = 146_097 * 86_400 * 10**6
    summer = micros(datetime(2024, 7, 1))
    times = np.array([summer, summer + cycle, summer + 500 * cycle, micros(datetime(1, 7, 1))])
    ahead = (shown("Europe/Berlin", times) - times) // 10**6
    assert ahead.tolist() == [7200, 7200, 7200, 3208]
    edges = np.array([2**63 - 1, -(2**63)])
    assert shown("Asia/Tokyo", edges)[0] == 2**63 - 1
    assert shown("America/New_York", edges)[1] == -(2**63)
    assert first_instants("Asia/Tokyo", edges)[1] == -(2**63)


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("hour(t)", "hour(t AT TIME ZONE 'Europe/Berlin')"),
        ("EXTRACT(DAY FROM t)", "day((t) AT TIME ZONE 'europe/berlin')"),
        ("date_trunc('week', t)", "date_trunc('week', (t AT TIME ZONE 'Europe/Berlin'))"),
        ("date_trunc('20 minutes', t)", "date_trunc('20 minutes', t AT TIME ZONE 'Europe/Berlin')"),
        ("date_format(t, 'E HH')", "date_format(t AT TIME ZONE 'Europe/Berlin', 'E HH')"),
        ("t::DATE", "to_date(t AT TIME ZONE 'Europe/Berlin')"),
        ("CAST(t AS STRING)", "CAST(t AT TIME ZONE 'Europe/Berlin' AS STRING)"),
        ("CAST(s AS TIMESTAMP)", "to_timestamp(s AT TIME ZONE 'Europe/Berlin')"),
        ("CAST(d AS TIMESTAMP)", "CAST(d AT TIME ZONE 'Europe/Berlin' AS TIMESTAMP)"),
        ("year(d)", "year(d)"),
        ("t - d", "t - CAST(d AT TIME ZONE 'Europe/Berlin' AS TIMESTAMP)"),
        (
            "d + INTERVAL '1' HOUR",
            "CAST(d AT TIME ZONE 'Europe/Berlin' AS TIMESTAMP) + INTERVAL '1' HOUR",
        ),
        ("TIMESTAMP '2024-07-01 12:00:00'", "TIMESTAMP '2024-07-01 12:00:00+02:00'"),
        ("TIMESTAMP '2024-03-31 02:30:00'", "TIMESTAMP '2024-03-31 01:00:00Z'"),
        ("t > '2024-01-01 01:00'", "t > '2024-01-01 00:00Z'"),
    ],
)  # fmt: skip
def test_the_setting_is_what_at_time_zone_says(short: str, whole: str) -> None:
    declared = "CREATE STREAM S (t TIMESTAMP WITH TIME ZONE, d DATE, s STRING) TIMESTAMP BY t;"
    plans = []
    for script in (
        f"{declared} SET time_zone = 'europe/berlin'; SELECT {short} AS x FROM S",
        f"{declared} SELECT {whole} AS x FROM S",
    ):
        *_, statement = check_script(script, Catalog())
        assert isinstance(statement.action, Create)
        assert isinstance(statement.action.entry, QueryEntry)
        plans.append(str(statement.action.entry.plan))
    assert plans[0] == plans[1]


def test_queries_and_views_keep_the_zone_in_which_they_were_registered(tmp_path: Path) -> None:
    store = tmp_path / "store"
    noon = datetime(2024, 7, 1, 22, 30)
    with Engine({"validate": "on"}, store=store) as engine:
        engine.execute(
            "CREATE STREAM S (t TIMESTAMP) TIMESTAMP BY t; SET time_zone = 'Europe/Berlin';"
            "CREATE VIEW Days AS SELECT t, CAST(t AS DATE) AS day FROM S;"
            "CREATE QUERY berlin AS SELECT hour(t) AS h FROM S [NOW]"
        )
        engine.push("S", [(noon,)])
        engine.run_until_idle()
        engine.compact_log()
    with Engine({"validate": "on"}, store=store) as engine:
        assert engine.catalog.time_zone == engine.settings.time_zone == "Europe/Berlin"
        engine.execute(
            "CREATE QUERY still AS SELECT hour(t) AS h FROM S [NOW]; SET time_zone = 'UTC';"
            "CREATE QUERY utc AS SELECT hour(t) AS h, day FROM Days [NOW]"
        )
        engine.push("S", [(noon + timedelta(days=1),)])
        engine.finish()
        assert [row["h"] for row in engine.results("berlin").to_pylist()] == [0, 0]
        assert engine.results("still").to_pylist()[-1]["h"] == 0
        last = engine.results("utc").to_pylist()[-1]
        assert (last["h"], last["day"]) == (22, date(2024, 7, 3))


def test_a_window_changes_in_the_zone_in_which_its_query_was_registered() -> None:
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t TIMESTAMP) TIMESTAMP BY t; SET time_zone = 'Europe/Berlin';"
            "CREATE QUERY q AS SELECT hour(t) AS h FROM S [RANGE 1 HOUR]; SET time_zone = 'UTC'"
        )
        altered = "ALTER QUERY q SET WINDOW OF S = RANGE 2 HOURS"
        with pytest.raises(CqlError, match="in another time zone than UTC: SET time_zone as it"):
            engine.execute(altered)
        engine.execute(f"SET time_zone = 'Europe/Berlin'; {altered}; SET time_zone = 'UTC'")
        engine.push("S", [(datetime(2026, 1, 1, 12),)])
        engine.finish()
        assert {row["h"] for row in engine.results("q").to_pylist()} == {13}


def test_the_zone_of_an_engine_is_a_setting() -> None:
    with Engine({"time_zone": "Asia/Tokyo"}) as engine:
        engine.execute(
            "CREATE RELATION R (a TIMESTAMP, d DATE, s STRING);"
            "INSERT INTO R VALUES ('2024-01-01 09:00', CAST(TIMESTAMP '2024-01-01 15:30:00Z' AS "
            "DATE), CAST(TIMESTAMP '2024-01-01 15:30:00Z' AS STRING));"
            "INSERT INTO R VALUES (CAST(DATE '2024-01-02' AS TIMESTAMP), NULL, NULL);"
            "INSERT INTO R VALUES (:at, NULL, NULL); CREATE QUERY q AS SELECT * FROM R",
            parameters={"at": datetime(2024, 5, 5)},
        )
        engine.finish()
        found = sorted((row["a"], row["d"], row["s"]) for row in engine.results("q").to_pylist())
    assert found == [
        (datetime(2024, 1, 1), date(2024, 1, 2), "2024-01-02 00:30:00"),
        (datetime(2024, 1, 1, 15), None, None),
        (datetime(2024, 5, 5), None, None),
    ]


def test_the_date_of_now_turns_at_midnight_by_the_clocks() -> None:
    with Engine({"time_zone": "Europe/Berlin"}) as engine:
        engine.execute(
            "CREATE STREAM S (t TIMESTAMP, due DATE) TIMESTAMP BY t;"
            "CREATE QUERY q AS RELATION SELECT due FROM S WHERE due >= CURRENT_DATE"
        )
        engine.push("S", [(datetime(2024, 3, 30), date(2024, 3, 31)), (datetime(2024, 4, 9), None)])
        engine.finish()
        found = [(row["ts"], row["weight"]) for row in engine.results("q").to_pylist()]
    assert found == [(micros(datetime(2024, 3, 30)), 1), (micros(datetime(2024, 3, 31, 22)), -1)]


BY_DAYS = """
CREATE STREAM S (t TIMESTAMP, n INT) TIMESTAMP BY t;
CREATE QUERY q AS SELECT window_start, window_end, count(*) AS n FROM S [TUMBLE {0}]
  GROUP BY window_start, window_end EMIT FINAL;
CREATE QUERY r AS RELATION SELECT window_end, count(*) AS n
  FROM TABLE(TUMBLE(TABLE S, DESCRIPTOR(t), {0})) GROUP BY window_end
"""


@pytest.mark.parametrize("days", [1, 3])
@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Europe/Berlin", datetime(2024, 3, 29, 5)),
        ("Europe/Berlin", datetime(2024, 10, 25, 5)),
        ("America/St_Johns", datetime(2009, 10, 30, 5)),
        ("Pacific/Apia", datetime(2011, 12, 28)),
        ("America/Sao_Paulo", datetime(2018, 11, 2)),
    ],
)
def test_windows_of_days_go_from_midnight_to_midnight(
    zone: str, first: datetime, days: int
) -> None:
    text = "1 DAY" if days == 1 else f"{days} DAYS"
    times = [first + timedelta(minutes=37 * number) for number in range(170)]
    with Engine({"time_zone": zone}) as engine:
        engine.execute(BY_DAYS.format(text))
        engine.push("S", [(each, 1) for each in times])
        engine.finish()
        rows = engine.results("q").to_pylist()
        changes = engine.results("r").to_pylist()
    begins = (date(1970, 1, 1) + timedelta(days=each) for each in range(0, 30_000, days))
    midnights = [first_in(datetime(each.year, each.month, each.day), zone) for each in begins]
    counts = Counter(max(m for m in midnights if m <= each) for each in times)
    ends = {begin: min(m for m in midnights if m > begin) for begin in counts}
    assert [(row["window_start"], row["window_end"], row["n"]) for row in rows] == [
        (begin, ends[begin], count) for begin, count in sorted(counts.items())
    ]
    assert [row["ts"] for row in rows] == [micros(row["window_end"]) for row in rows]
    gone = [row for row in changes if row["ts"] == micros(row["window_end"])]
    assert [(row["weight"], row["n"]) for row in gone] == [(-1, row["n"]) for row in rows]


def test_days_of_a_stream_that_counts_ticks_are_24_hours() -> None:
    script = """SET tick = '1 hour'; SET time_zone = 'Europe/Berlin';
        CREATE STREAM N (t BIGINT) TIMESTAMP BY t; CREATE STREAM S (t TIMESTAMP) TIMESTAMP BY t;
        CREATE QUERY q AS SELECT window_end FROM N [TUMBLE 1 DAY];"""
    list(check_script(script, Catalog()))
    with pytest.raises(CqlError, match="SET tick = '1 second' before the first stream"):
        list(check_script(f"{script} SELECT window_end FROM S [TUMBLE 1 DAY]", Catalog()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT t AT TIME ZONE 'UTC' FROM S", "an instant is the same in all time zones; AT TIME"),
        ("SELECT hour(t AT TIME ZONE 'Europe/Berln') FROM S", "did you mean 'Europe/Berlin'?"),
        ("SELECT year(d AT TIME ZONE 'UTC') FROM S", "goes with a TIMESTAMP, not DATE"),
        ("SELECT hour(t AT TIME ZONE d) FROM S", "expected a time zone in quotes"),
        ("SELECT date_trunc('6 hours', t) FROM S", "write date_trunc('day', …), or … AT TIME ZONE"),
        ("SELECT count(*) FROM S [HOP 2 WEEKS SLIDE 7 HOURS]", "write [TUMBLE 1 DAY], or 24 HOURS"),
        ("SELECT count(*) FROM S [TUMBLE 1 DAY OFFSET 2 HOURS]", "without OFFSET, or 24 HOURS"),
        ("SELECT count(*) FROM S [TUMBLE 1.5 DAYS]", "a window has one or more whole days"),
        ("SET time_zone = 'Mars'", "'Mars' is not a time zone such as 'Europe/Berlin' or 'UTC'"),
    ],
)
def test_refusals_name_the_way_out(text: str, said: str) -> None:
    declared = (
        "CREATE STREAM S (t TIMESTAMP, d DATE) TIMESTAMP BY t; SET time_zone = 'Europe/Berlin';"
    )
    with pytest.raises(CqlError) as raised:
        list(check_script(declared + text, Catalog()))
    assert said in str(raised.value)


@pytest.mark.parametrize("name", ["utc", "Z", "gmt", "Etc/UTC"])
def test_utc_has_many_names(name: str) -> None:
    assert zone_named(name) == "UTC"
