"""Runs experiments, two at a time, and keeps what they found."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import NamedTuple

from millpond.lab.experiment import Claim, Experiment, Tables

PROCESSES = 2
FIRST_SEED = 2000
"""Seeds from here on were not looked at while constants were chosen and `words` given numbers."""


@dataclass(frozen=True)
class Outcome:
    """What one experiment found: its tables, and its claims with their verdicts."""

    name: str
    tables: Tables
    claims: tuple[Claim, ...]
    seconds: float


def run_one(experiment: Experiment, seeds: int | None = None) -> Outcome:
    """Run one experiment over so many seeds (its own number when None)."""
    return _measure(_task(experiment, seeds))


def run_all(
    chosen: Sequence[Experiment],
    seeds: int | None,
    processes: int = PROCESSES,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run experiments in up to `processes` processes; outcomes come in the order asked for."""
    outcomes: dict[str, Outcome] = {}
    for outcome in _as_they_finish(_batches(chosen, seeds), processes):
        outcomes[outcome.name] = outcome
        finished(outcome)
    return [outcomes[experiment.name] for experiment in chosen]


class _Task(NamedTuple):
    """What a worker process is given; it imports no more than these functions need."""

    name: str
    run: Callable[[Sequence[int]], Tables]
    check: Callable[[Tables], Sequence[Claim]]
    seeds: int


def _task(experiment: Experiment, seeds: int | None) -> _Task:
    return _Task(experiment.name, experiment.run, experiment.check, seeds or experiment.seeds)


def _batches(chosen: Sequence[Experiment], seeds: int | None) -> list[list[_Task]]:
    """Those that share their runs together, what takes long first."""
    found: dict[str, list[_Task]] = {}
    for each in sorted(dict.fromkeys(chosen), key=lambda each: not each.long):
        found.setdefault(each.together or each.name, []).append(_task(each, seeds))
    return list(found.values())


def _as_they_finish(batches: Sequence[Sequence[_Task]], processes: int) -> Iterator[Outcome]:
    if processes == 1 or len(batches) == 1:
        yield from (_measure(task) for tasks in batches for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(batches)), mp_context=context) as pool:
        futures: list[Future[list[Outcome]]] = [
            pool.submit(_measure_each, tasks) for tasks in batches
        ]
        for future in as_completed(futures):
            yield from future.result()


def _measure_each(tasks: Sequence[_Task]) -> list[Outcome]:
    return [_measure(task) for task in tasks]


def _measure(task: _Task) -> Outcome:
    start = time.perf_counter()
    tables = task.run(range(FIRST_SEED, FIRST_SEED + task.seeds))
    return Outcome(task.name, tables, tuple(task.check(tables)), time.perf_counter() - start)
