"""Linear Road by the program and by hand, and the traffic that both read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.linear_road import FILE, PROGRAM, answers
from benchmarks.road.by_hand import Row, answers_by_hand
from benchmarks.road.traffic import SEGMENTS, Traffic
from millpond import Engine

TRAFFIC = Traffic(10_000)


@pytest.mark.slow
@pytest.mark.parametrize("page_rows", [2_500, 100_000])
def test_the_program_gives_the_answers_computed_by_hand(page_rows: int, tmp_path: Path) -> None:
    TRAFFIC.write(tmp_path / FILE)
    with Engine({"page_rows": page_rows}, directory=tmp_path) as engine:
        engine.execute(PROGRAM.read_text(encoding="utf-8"))
        engine.finish()
        found = answers(engine)
    expected = answers_by_hand(TRAFFIC.table().to_pylist())
    assert found == expected
    assert any(row[-1] for row in expected["toll_alerts"]), "some tolls are due"
    assert any(row[-1] for row in expected["balance_answers"]), "some balances are not zero"
    assert expected["accident_alerts"]


def test_the_program_has_views_enough() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    assert text.count("CREATE VIEW") >= 25
    assert text.count("CREATE QUERY") == 3


def test_traffic_follows_from_its_seed() -> None:
    assert TRAFFIC.table().equals(Traffic(10_000).table())
    assert not TRAFFIC.table().equals(Traffic(10_000, seed=8).table())


@pytest.mark.parametrize("tuples", [1_000, 10_000, 100_000])
def test_traffic_keeps_to_the_road(tuples: int) -> None:
    table = Traffic(tuples).table()
    assert table.num_rows == tuples
    column = {name: table[name].to_numpy() for name in table.column_names}
    assert (np.diff(column["ts"]) >= 0).all()
    reports = column["type"] == 0
    assert set(np.unique(column["type"])) == {0, 2}
    assert column["seg"][reports].min() >= 0
    assert column["seg"][reports].max() < SEGMENTS
    pairs = np.stack([column["vid"], column["ts"]])[:, reports]
    assert np.unique(pairs, axis=1).shape == pairs.shape, "one report of a vehicle at a time"


def _report(ts: int, vid: int, seg: int, pos: int = 0, lane: int = 1, speed: int = 30) -> Row:
    where = {"xway": 0, "dir": 0, "seg": seg, "pos": pos, "lane": lane}
    return {"type": 0, "ts": ts, "vid": vid, "speed": speed, "qid": -1} | where


def test_by_hand_a_crowded_slow_segment_costs_a_toll_that_is_charged_on_leaving_it() -> None:
    crowd = [_report(10, vid, 5) for vid in range(60)]
    rows = [*crowd, _report(70, 99, 5), _report(100, 99, 6)]
    balance = {"type": 2, "ts": 100, "vid": 99, "qid": 1}
    found = answers_by_hand([*rows, balance])
    assert found["toll_alerts"][70, 99, 0, 0, 5, 30.0, 200] == 1
    assert found["toll_alerts"][100, 99, 0, 0, 6, None, 0] == 1
    assert found["balance_answers"] == {(100, 99, 1, 200): 1}


def test_by_hand_whoever_takes_the_exit_is_not_charged() -> None:
    crowd = [_report(10, vid, 5) for vid in range(60)]
    rows = [*crowd, _report(70, 99, 5), _report(100, 99, 6, lane=4)]
    found = answers_by_hand([*rows, {"type": 2, "ts": 130, "vid": 99, "qid": 1}])
    assert found["balance_answers"] == {(130, 99, 1, 0): 1}


def test_by_hand_two_vehicles_that_stand_are_an_accident_of_the_next_minute() -> None:
    standing = [_report(30 * turn, vid, 8, pos=77) for turn in range(4) for vid in (1, 2)]
    crossing = [_report(119, 3, 7), _report(120, 4, 4), _report(120, 5, 3), _report(120, 6, 9)]
    found = answers_by_hand([*standing, *crossing])
    assert found["accident_alerts"] == {(120, 4, 0, 0, 4, 8): 1}
