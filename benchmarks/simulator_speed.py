"""How many operator executions a second the simulator reaches, and how long a simulated day takes.

The plan is the Path Capacity paper's size: 16 queries, 116 operators, 5 self-similar streams, some
queries joining up to five of them. Strategies serve single tuples, time slices, or all that waits.
One JSON line a case; seconds are those of the processor, so that other work does not count.

    python -m benchmarks.simulator_speed [--quick] [--day] [--out DIR] [--hours 0.5]
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np

from benchmarks.reporting import Report, progress
from millpond.scheduling.registry import make
from millpond.simulator import Record, SimulatedPlan, simulate
from millpond.workloads import SelfSimilar

STREAMS = 5
TUPLES_PER_SECOND = 4.0
CASES: tuple[tuple[str, dict[str, object]], ...] = (
    ("fifo", {"max_tuples": 1}),
    ("fifo", {}),
    ("round-robin", {"slice_seconds": 0.1}),
    ("chain", {}),
    ("path-capacity", {}),
)
DAY_GOAL_SECONDS = 600.0
EXECUTIONS_GOAL = 50_000.0


def paper_plan(seed: int = 0) -> SimulatedPlan:
    """Sixteen queries over five streams: 116 operators, five queries with one to four joins."""
    generator = np.random.default_rng(seed)
    plan = SimulatedPlan()
    streams = [plan.stream(f"s{number}") for number in range(STREAMS)]
    joins_of = [0] * 11 + [1, 1, 2, 3, 4]
    selections_of = [6] * 11 + [3, 3, 3, 3, 3]
    for query, (joins, selections) in enumerate(zip(joins_of, selections_of, strict=True)):
        source = _leg(plan, generator, f"q{query}", streams[query % STREAMS], selections)
        for number in range(joins):
            other = streams[(query + number + 1) % STREAMS]
            side = _leg(plan, generator, f"q{query}s{number}", other, 1)
            cost = float(generator.uniform(0.002, 0.006))
            source = plan.join(f"q{query}j{number}", source, side, cost, selectivity=0.8)
        if query < 13:
            source = plan.operator(f"q{query}last", source, 0.004)
        plan.query(f"q{query}", source)
    return plan


def _leg(
    plan: SimulatedPlan, generator: np.random.Generator, name: str, stream: str, count: int
) -> int:
    source: int | str = stream
    for place in range(count):
        cost = float(generator.uniform(0.001, 0.005))
        selectivity = float(generator.uniform(0.3, 0.95))
        source = plan.operator(f"{name}.{place}", source, cost, selectivity)
    return int(source)


def run(name: str, settings: dict[str, object], seconds: float) -> tuple[Record, float]:
    """Simulate so long; returns what was measured and the processor's seconds."""
    process = SelfSimilar(TUPLES_PER_SECOND, on_seconds=5.0, off_seconds=20.0)
    arrivals = {f"s{number}": process.until(seconds, number) for number in range(STREAMS)}
    start = time.process_time()
    record = simulate(paper_plan(), make(name, **settings), arrivals)
    return record, time.process_time() - start


def measure(report: Report, name: str, settings: dict[str, object], hours: float) -> None:
    """One case: its speed, and how long a day takes or would take."""
    record, took = run(name, settings, 3600 * hours)
    case = ", ".join([name, *(f"{key} {value}" for key, value in settings.items())])
    report.value(
        case,
        round(record.executions / took),
        "operator executions/s",
        goal=EXECUTIONS_GOAL,
        met=record.executions / took >= EXECUTIONS_GOAL,
        simulated_hours=hours,
        executions=record.executions,
        tuples_per_second=round(record.tuples_served / took),
        load=round(record.busy_seconds / (3600 * hours), 2),
    )
    day_seconds = took * 24 / hours
    report.value(
        f"{case}: a simulated day",
        day_seconds,
        "s",
        goal=DAY_GOAL_SECONDS,
        met=day_seconds <= DAY_GOAL_SECONDS,
        extrapolated=hours < 24,
        peak_rss_mebibytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter, within five minutes")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the lines there")
    parser.add_argument("--hours", type=float, help="simulated; 0.5, or 0.1 with --quick")
    parser.add_argument("--day", action="store_true", help="a whole day, Chain only")
    return parser.parse_args()


def main() -> None:
    """Measure every case, or the one of a whole day."""
    chosen = arguments()
    hours = 24.0 if chosen.day else chosen.hours or (0.1 if chosen.quick else 0.5)
    cases: tuple[tuple[str, dict[str, object]], ...] = (("chain", {}),) if chosen.day else CASES
    report = Report("simulator_speed", chosen.out)
    with progress(len(cases)) as start:
        for name, settings in cases:
            start(name)
            measure(report, name, settings, hours)
    report.close()


if __name__ == "__main__":
    main()
