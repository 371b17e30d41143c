"""Runs experiments, two at a time, and keeps what they found."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from millpond.lab.experiment import Claim, Experiment, Tables

PROCESSES = 2
FIRST_SEED = 2000
"""Seeds from here on were not looked at while limits, constants and `words` were chosen."""


@dataclass(frozen=True)
class Outcome:
    """What one experiment found: its tables, and its claims with their verdicts."""

    name: str
    tables: Tables
    claims: tuple[Claim, ...]
    seconds: float


def run_one(experiment: Experiment, seeds: int | None = None) -> Outcome:
    """Run one experiment over so many seeds (its own number when None)."""
    count = seeds or experiment.seeds
    return _measure(experiment.name, experiment.run, experiment.check, count)


def _measure(
    name: str,
    run: Callable[[Sequence[int]], Tables],
    check: Callable[[Tables], Sequence[Claim]],
    seeds: int,
) -> Outcome:
    """What a worker process does; it imports no more than the functions it is given."""
    start = time.perf_counter()
    tables = run(range(FIRST_SEED, FIRST_SEED + seeds))
    return Outcome(name, tables, tuple(check(tables)), time.perf_counter() - start)


def run_all(
    chosen: Sequence[Experiment],
    seeds: int | None,
    processes: int = PROCESSES,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run experiments in up to `processes` processes; outcomes come in the order asked for."""
    outcomes: dict[str, Outcome] = {}
    for outcome in _as_they_finish(chosen, seeds, processes):
        outcomes[outcome.name] = outcome
        finished(outcome)
    return [outcomes[experiment.name] for experiment in chosen]


def _as_they_finish(
    chosen: Sequence[Experiment], seeds: int | None, processes: int
) -> Iterator[Outcome]:
    if processes == 1 or len(chosen) == 1:
        yield from (run_one(experiment, seeds) for experiment in chosen)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(chosen)), mp_context=context) as pool:
        futures: list[Future[Outcome]] = [
            pool.submit(_measure, each.name, each.run, each.check, seeds or each.seeds)
            for each in sorted(chosen, key=lambda each: not each.long)
        ]
        for future in as_completed(futures):
            yield future.result()
