import dataclasses

import pytest

from millpond.errors import CqlError
from millpond.settings import (
    Settings,
    format_bytes,
    format_duration,
    parse_bytes,
    parse_duration_microseconds,
    refuse_late_change,
)


def test_a_setting_is_read_from_text() -> None:
    settings = Settings().with_options(
        {"tick": "1 second", "page_rows": 10, "budget": "64 MB", "heartbeat_timeout": "2 minutes"}
    )
    assert settings.tick_microseconds == 1_000_000
    assert settings.page_rows == 10
    assert settings.budget_bytes == 64 * 2**20
    assert settings.heartbeat_timeout_seconds == 120.0


def test_a_key_is_found_in_any_case_and_with_its_unit() -> None:
    assert Settings().with_option("PAGE-ROWS", "7").page_rows == 7
    assert Settings().with_option("tick_microseconds", "1 day").tick_microseconds == 86_400_000_000


def test_settings_do_not_change_in_place() -> None:
    settings = Settings()
    settings.with_option("seed", "5")
    assert settings.seed == 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 1  # type: ignore[misc]


def test_an_unknown_key_names_its_neighbour() -> None:
    with pytest.raises(CqlError, match=r'no setting "pagerows"; did you mean "page_rows"\? known:'):
        Settings().with_option("pagerows", "1")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tick", "soon", "'soon' is not a length of time"),
        ("tick", "0 seconds", "'0 seconds' is not a length of time above zero"),
        ("page_rows", "0", "'0' is not a whole number of at least 1"),
        ("seed", "1.5", "'1.5' is not a whole number"),
        ("budget", "much", "'much' is not an amount of memory"),
        ("strategy", " ", "' ' is not a name"),
        ("heartbeat_timeout", "-1", "'-1' is not a number of seconds"),
        ("heartbeat_timeout", "nan", "'nan' is not a number of seconds"),
        ("driver_memory", "lots", "'lots' is not an amount of memory"),
    ],
)
def test_a_bad_value_says_what_is_wanted(key: str, value: str, message: str) -> None:
    with pytest.raises(CqlError, match=message):
        Settings().with_option(key, value)


def test_every_setting_lists_a_value_that_it_reads_back() -> None:
    for key, value, meaning, change in Settings().listing():
        assert meaning
        assert change
        assert Settings().with_option(key, value) == Settings()


def test_memory_and_time_print_in_their_largest_whole_unit() -> None:
    assert [format_bytes(n) for n in (0, 1000, 2**30, 3 * 2**20)] == [
        "0 B",
        "1000 B",
        "1 GB",
        "3 MB",
    ]
    assert [format_duration(n) for n in (1, 1_500_000, 60_000_000)] == [
        "1 microsecond",
        "1500 milliseconds",
        "1 minute",
    ]
    assert parse_bytes("4g") == 4 * 2**30


@pytest.mark.parametrize(
    ("key", "has_spark", "has_stepped", "is_refused"),
    [
        ("seed", True, False, False),
        ("seed", True, True, True),
        ("spark_master", False, False, False),
        ("spark_master", True, False, True),
        ("driver-memory", True, True, True),
        ("strategy", True, True, False),
        ("step_rows", True, True, False),
    ],
)
def test_a_setting_in_use_is_not_changed(
    key: str, has_spark: bool, has_stepped: bool, is_refused: bool
) -> None:
    if not is_refused:
        refuse_late_change(key, has_spark, has_stepped, has_queries=False)
        return
    with pytest.raises(CqlError, match=r"can be changed only before .*; it is in use"):
        refuse_late_change(key, has_spark, has_stepped, has_queries=False)


def test_the_listing_says_when_a_setting_may_change() -> None:
    changes = {key: change for key, _, _, change in Settings().listing()}
    assert changes["tick"] == "before the first stream"
    assert changes["seed"] == "before the first step"
    assert changes["budget"] == "at any time"
    assert changes["strategy"] == "at any time"


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("30s", 30_000_000), ("5 min", 300_000_000), ("2h", 7_200_000_000), ("7us", 7), ("2ms", 2000)],
)
def test_units_of_time_may_be_short(text: str, microseconds: int) -> None:
    assert parse_duration_microseconds(text) == microseconds
