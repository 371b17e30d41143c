from millpond.lab.hmts.random_graphs import as_printed, random_plan
from millpond.scheduling.threads.place_queues import place_queues
from tests.scheduling.thread_plans import plan


def test_graphs_are_the_same_for_the_same_seed_only() -> None:
    assert random_plan(30, seed=1) == random_plan(30, seed=1)
    assert random_plan(30, seed=1) != random_plan(30, seed=2)


def test_the_printed_algorithm_overlooks_who_else_reads_a_source() -> None:
    fork = plan((["s"], 0.1, 1.0), ([0], 0.25, 1.0), ([0], 0.25, 1.0))
    assert as_printed(fork) == frozenset()
    assert place_queues(fork) == {(0, 2)}
