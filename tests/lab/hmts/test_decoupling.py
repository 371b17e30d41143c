from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.experiment import Tables
from millpond.lab.hmts.decoupling import FACTORS, check
from millpond.lab.hmts.joins_in_source_threads import (
    SLOWS_AFTER_SECONDS,
    HashedWindows,
    coupled,
    decoupled,
    falls_after,
    falls_for_long_after,
    partner_seconds,
)


def test_sources_keep_their_pace_until_the_window_is_too_large() -> None:
    emitted = coupled("nested loops join", 30_000)
    assert np.count_nonzero(emitted < 15) == 2 * 1500
    assert np.count_nonzero((emitted >= 20) & (emitted < 25)) < 0.9 * 2 * 500


def test_a_cheaper_join_keeps_pace_for_as_long() -> None:
    assert coupled("hash join", 30_000)[-1] < 30.0
    assert coupled("nested loops join", 30_000, factor=0.5)[-1] < 30.0


def test_all_elements_are_emitted_in_the_end() -> None:
    assert len(coupled("nested loops join", 30_000)) == 2 * 3000


def test_a_queue_takes_the_backlog() -> None:
    record = decoupled("nested loops join", 25_000)
    assert record.memory.at(15.0) < 500
    assert record.memory.at(24.0) > 2000
    assert record.tuples_served == 50_000


def test_a_hash_join_is_charged_for_what_it_finds() -> None:
    windows = HashedWindows(elements=20, seed=1)
    windows._values = [[7] * 10 + [3] * 10, [7] * 5 + [1] * 15]
    assert windows.partners(side=0, now_seconds=0.0) == 0
    assert windows.partners(side=1, now_seconds=1.0) == 5 * 10
    assert windows.partners(side=0, now_seconds=2.0) == 0
    assert windows.partners(side=1, now_seconds=61.5) == 0


def test_what_chance_takes_from_a_second_is_no_fall() -> None:
    seconds = np.arange(1.0, 21.0)
    rates = np.full(20, 2000.0)
    rates[3] = 1900.0
    assert falls_for_long_after(rates, seconds) == float("inf")
    rates[10:] = 1900.0
    assert falls_for_long_after(rates, seconds) == 12.0


def test_a_probe_costs_what_makes_the_join_busy_at_the_papers_time() -> None:
    assert 2000 * 17_000 * partner_seconds("nested loops join") == 1.0
    assert 2000 * 0.58 * partner_seconds("hash join") == pytest.approx(1.0)


def test_the_rate_falls_in_the_first_second_that_is_below_it() -> None:
    seconds = np.arange(1.0, 5.0)
    assert falls_after(np.array([2000.0, 2000.0, 1900.0, 2000.0]), seconds) == 3.0
    assert falls_after(np.full(4, 2000.0), seconds) == float("inf")


def made_up(hash_join_always_falls: bool) -> Tables:
    """Rates that fall at the papers' times, and when they would for other costs."""
    seconds = np.arange(1.0, 181.0)
    rates = {"second": seconds, "with a queue": np.full(180, 2000.0)}
    costs: dict[str, list[object]] = {"join": [], "partner seconds": [], "falls": []}
    for join, falls in SLOWS_AFTER_SECONDS.items():
        rates[f"{join}, no queue"] = np.where(seconds < falls, 2000.0, 1065.0)
        rates[f"{join}, backlog of the queue"] = np.maximum(0.0, seconds - falls)
        for factor in FACTORS:
            late = join == "hash join" and falls / factor > 60 and not hash_join_always_falls
            costs["join"].append(join)
            costs["partner seconds"].append(partner_seconds(join, factor))
            costs["falls"].append(float("inf") if late else falls / factor)
    return {"rates": rates, "partner cost": costs}


def test_times_are_evidence_only_if_they_do_not_hang_on_the_fitted_cost() -> None:
    found = [claim.verdict for claim in check(made_up(hash_join_always_falls=False))]
    assert found == ["differs", "differs", "holds", "holds", "differs", "holds", "holds"]
    assert check(made_up(hash_join_always_falls=True))[0].verdict == "holds"


def test_a_model_that_never_falls_and_a_queue_that_takes_nothing_are_noticed() -> None:
    tables = made_up(hash_join_always_falls=False)
    tables["partner cost"]["falls"] = [float("inf")] * len(tables["partner cost"]["join"])
    tables["rates"]["hash join, no queue"] = tables["rates"]["with a queue"]
    found = [claim.verdict for claim in check(tables)]
    assert found == ["fails", "fails", "fails", "fails", "fails", "holds", "holds"]
