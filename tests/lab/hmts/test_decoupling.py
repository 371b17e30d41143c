import numpy as np

from millpond.lab.hmts.decoupling import check, coupled, decoupled, probe_seconds


def test_sources_keep_their_pace_until_the_window_is_too_large() -> None:
    emitted = coupled("nested loops join", 30_000)
    assert np.count_nonzero(emitted < 15) == 2 * 1500
    assert np.count_nonzero((emitted >= 20) & (emitted < 25)) < 0.9 * 2 * 500


def test_a_cheaper_join_keeps_pace_for_as_long() -> None:
    assert coupled("hash join", 30_000)[-1] < 30.0


def test_all_elements_are_emitted_in_the_end() -> None:
    assert len(coupled("nested loops join", 30_000)) == 2 * 3000


def test_a_queue_takes_the_backlog() -> None:
    record = decoupled("nested loops join", 25_000)
    assert record.memory.at(15.0) < 500
    assert record.memory.at(24.0) > 2000
    assert record.tuples_served == 50_000


def test_a_probe_costs_what_makes_the_join_busy_at_the_papers_time() -> None:
    assert 2000 * 17_000 * probe_seconds("nested loops join") == 1.0


def test_claims_compare_the_rates_with_the_papers_times() -> None:
    seconds = np.arange(1.0, 181.0)
    table = {"second": seconds, "with a queue": np.full(180, 2000.0)}
    for join, falls in (("hash join", 58), ("nested loops join", 17)):
        table[f"{join}, no queue"] = np.where(seconds < falls, 2000.0, 1065.0)
        table[f"{join}, backlog of the queue"] = np.maximum(0.0, seconds - falls)
    assert all(claim.holds for claim in check({"rates": table}))
    table["hash join, no queue"] = table["with a queue"]
    assert [claim.holds for claim in check({"rates": table})] == [False, False, True, True, True]
