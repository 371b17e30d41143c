import itertools
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.connectors.sources import OpenPages, Taken, nothing_until
from millpond.connectors.values import HOSTS, VOCABULARY
from millpond.errors import InputError
from millpond.workloads import Poisson
from tests.connectors.declarations import opened, rows
from tests.patience import wait_until

REQUESTS = "client_id INT, domain STRING, url STRING, ts TIMESTAMP"


def test_rate_counts_and_spaces_its_rows_evenly() -> None:
    source = opened("n BIGINT, ts BIGINT", "rate", 2, rows=4, time="ts", tick="1 second")
    assert rows(source) == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert source.ends


def test_rate_ends_after_its_seconds() -> None:
    source = opened("n INT, ts TIMESTAMP", "rate", 2, seconds=1.5, time="ts", start="2026-05-01")
    assert [row[1] for row in rows(source)] == [
        datetime(2026, 5, 1, 0, 0, 0, 0),
        datetime(2026, 5, 1, 0, 0, 0, 500_000),
        datetime(2026, 5, 1, 0, 0, 1, 0),
    ]


def test_without_an_end_a_source_goes_on() -> None:
    source = opened("n INT", "rate", 1000, page_rows=5000)
    assert not source.ends
    assert source.progress().total is None
    pages = list(itertools.islice(source.pages(), 3))
    assert pages[2].column(0).to_pylist()[:2] == [10_000, 10_001]


def test_an_integer_start_counts_ticks() -> None:
    source = opened("ts BIGINT", "rate", 1, rows=2, time="ts", tick="1 second", start=100)
    assert rows(source) == [(100,), (101,)]


def test_burst_times_are_those_of_the_process() -> None:
    source = opened("ts BIGINT", "burst", "poisson", rate=100, rows=50, seed=3, time="ts")
    expected = (Poisson(100).times(50, 3) * 1e6).astype(int).tolist()
    assert [row[0] for row in rows(source)] == expected


def test_burst_values_fit_their_columns() -> None:
    for client, domain, url, _ in rows(
        opened(REQUESTS, "burst", rate=1000, rows=500, keys=7, time="ts")
    ):
        assert 0 <= client < 7
        assert domain in VOCABULARY["domain"]
        assert any(url.startswith(f"http://{host}.{domain}/") for host in HOSTS)


def test_all_types_are_filled_with_variety() -> None:
    columns = "b BOOLEAN, i INT, l BIGINT, d DOUBLE, s STRING, day DATE, t TIMESTAMP"
    made = rows(opened(columns, "burst", rate=10, rows=200))
    assert all(len(set(column)) > 1 for column in zip(*made, strict=True))
    assert not any(None in row for row in made)


@given(page_rows=st.integers(1, 400), seed=st.integers(0, 2**31))
def test_pages_do_not_change_what_is_generated(page_rows: int, seed: int) -> None:
    options: dict[str, Any] = {"rate": 100, "rows": 300, "seed": seed, "time": "ts"}
    whole = rows(opened(REQUESTS, "burst", **options))
    assert rows(opened(REQUESTS, "burst", page_rows=page_rows, **options)) == whole


def test_another_seed_gives_other_values() -> None:
    one, other = (rows(opened("a BIGINT", "burst", rate=1, rows=20, seed=s)) for s in (1, 2))
    assert one != other


def test_progress_knows_rows_or_expects_them() -> None:
    source = opened("a INT", "burst", "constant", rate=10, seconds=5)
    assert source.progress().total == 50
    rows(source)
    assert source.progress().done == 50


def test_a_trace_is_found_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1.0,5\n2.5,5\n")
    source = opened(
        "ts BIGINT", "burst", "trace", file="t.csv", rows=9, time="ts", directory=tmp_path
    )
    assert rows(source) == [(0,), (1_500_000,)]


@pytest.mark.parametrize(
    ("columns", "arguments", "options", "message"),
    [
        ("a INT", ("poison",), {}, 'S: no arrival process "poison"; did you mean "poisson"?'),
        ("a INT", ("poisson",), {"speed": 1}, 'S: arrival process "poisson": '),
        ("a INT", ("poisson",), {"rate": -1}, "S: Poisson: arrivals_per_second must be above zero"),
        ("a INT", (), {"rate": 1, "rows": -1}, "S: rows must be a whole number from 0"),
        ("a INT", (), {"rate": 1, "keys": 0}, "S: keys must be a whole number from 1"),
        ("a INT", (), {"rate": 1, "start": "soon"}, "S, start: 'soon' is not a time"),
        ("a STRING", (), {"rate": 1, "time": "a"}, "S: generated times cannot be STRING"),
    ],
)
def test_faulty_generators_are_refused(
    columns: str, arguments: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        opened(columns, "burst", *arguments, **options)
    assert str(raised.value).startswith(message)


def test_a_live_source_knows_that_nothing_comes_before_its_next_row() -> None:
    source = opened("ts BIGINT", "rate", 2, rows=3, time="ts", pace="wall", start=0)
    calm = opened("ts BIGINT", "rate", 2, rows=3, time="ts", start=0)
    assert (nothing_until(source), nothing_until(calm)) == (None, None)
    pages = source.pages()
    first = next(pages)
    assert first.num_rows == 1
    assert nothing_until(source) == -1  # that row may not have been taken yet
    asking = threading.Thread(target=lambda: next(pages), daemon=True)
    asking.start()  # who asks for the next page has taken this one
    wait_until(lambda: nothing_until(source) == 500_000 - 1)
    asking.join()


def test_at_the_pace_of_the_wall_no_row_comes_before_its_time() -> None:
    source = opened("n BIGINT", "rate", 100, rows=20, pace="wall", page_rows=7)
    assert source.is_live
    began, before = time.monotonic(), 0
    for page in source.pages():
        assert 1 <= page.num_rows <= 7
        assert page["n"].to_pylist() == list(range(before, before + page.num_rows))
        before += page.num_rows
        assert time.monotonic() - began >= (before - 1) / 100
    assert before == 20


def test_rows_of_an_earlier_run_are_not_waited_for_again() -> None:
    source = opened("n BIGINT", "rate", 0.001, rows=3, pace="wall")
    pages = OpenPages.of(source, Taken(2))
    page = pages.behind(2)
    assert page is not None
    assert page.rows["n"].to_pylist() == [2]
    assert pages.behind(3) is None
