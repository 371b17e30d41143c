from __future__ import annotations

from dataclasses import replace

from millpond.lab import catalogue
from millpond.lab.experiment import Tables
from millpond.lab.running import FIRST_SEED, Outcome, _batches, run_all, run_one
from tests.lab.made_up import HOLDS, experiment

QUICK = "chain-opening-example"


def test_experiments_run_in_two_processes_in_the_order_asked_for() -> None:
    finished: list[Outcome] = []
    chosen = catalogue.choose([QUICK, "unified-greedy-example", QUICK])
    outcomes = run_all(chosen, seeds=1, finished=finished.append)
    assert [outcome.name for outcome in outcomes] == [QUICK, "unified-greedy-example", QUICK]
    assert len(finished) == 2


def test_what_takes_long_is_begun_first_and_what_shares_runs_runs_together() -> None:
    short = experiment("short", HOLDS)
    one, other = (replace(experiment(name), together="figures") for name in ("one", "other"))
    long = replace(experiment("long"), long=True)
    batches = _batches([one, short, other, long], None)
    assert [[task.name for task in tasks] for tasks in batches] == [
        ["long"],
        ["one", "other"],
        ["short"],
    ]


def test_seeds_are_those_that_no_limit_was_chosen_by() -> None:
    asked: list[int] = []

    def run(seeds: list[int]) -> Tables:
        asked.extend(seeds)
        return {}

    run_one(replace(experiment("pigs"), run=run), seeds=2)
    assert asked == [FIRST_SEED, FIRST_SEED + 1]
