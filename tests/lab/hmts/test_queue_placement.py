from millpond.lab.hmts.queue_placement import as_printed, check, random_plan, run
from millpond.scheduling.threads.place_queues import place_queues
from tests.scheduling.thread_plans import plan


def test_claims_hold_on_small_graphs() -> None:
    assert [claim.text for claim in check(run([0, 1, 2], sizes=(20, 40))) if not claim.holds] == []


def test_a_construction_that_stalls_more_fails_the_claim() -> None:
    table = dict(run([0], sizes=(40,))["capacity"])
    table["negative"] = [-9.0, *table["negative"][1:]]
    assert not check({"capacity": table})[0].holds


def test_graphs_are_the_same_for_the_same_seed_only() -> None:
    assert random_plan(30, seed=1) == random_plan(30, seed=1)
    assert random_plan(30, seed=1) != random_plan(30, seed=2)


def test_the_printed_algorithm_overlooks_who_else_reads_a_source() -> None:
    fork = plan((["s"], 0.1, 1.0), ([0], 0.25, 1.0), ([0], 0.25, 1.0))
    assert as_printed(fork) == frozenset()
    assert place_queues(fork) == {(0, 2)}
