"""Strategies on wall-clock bursts, live: peak and mean backlog, latencies from arrival to output,
and how long it took.

    python -m benchmarks.live_burst [--quick] [--out DIR] [--rows A_SECOND]
        [--strategies A,B] [--runs N] [--keep FILE]

The bursts are those of `millpond/lab/live/bursts.py`. Goals are for the medians of three runs of
all strategies; ``--quick`` runs five strategies once. With ``--keep`` runs are added to those that
a file has, and the medians are those of all of them: three runs can be taken one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.reporting import Report, among, note, options, progress
from millpond.lab.live.bursts import (
    FUNCTIONS,
    QUICK,
    STRATEGIES,
    Outcome,
    goals,
    measured,
    overloading_rows,
)


def table(outcomes: dict[str, Outcome]) -> str:
    """All strategies, a line each."""
    heads = ("peak MB", "mean MB", "mean s", "p50", "p95", "p99", "total s")
    lines = [f"{'strategy':25}" + "".join(f"{head:>9}" for head in heads)]
    for name, outcome in outcomes.items():
        figures = [
            outcome.peak_bytes / 1e6,
            outcome.mean_bytes / 1e6,
            *list(vars(outcome).values())[2:],
        ]
        lines.append(f"{name:25}" + "".join(f"{figure:9.3f}" for figure in figures))
    return "\n".join(lines)


def judge(report: Report, outcomes: dict[str, Outcome]) -> None:
    """The goals, for those strategies that were run."""
    for goal in goals(outcomes):
        report.ratio(goal.what, goal.ratio, goal.at_most, at_most=True)


def plane(outcomes: dict[str, Outcome]) -> Callable[[Figure], None]:
    """Every strategy by its peak and its mean latency."""

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for name, outcome in outcomes.items():
            axes.plot(outcome.peak_bytes / 1e6, outcome.mean_seconds, "o", label=name)
        axes.set(
            xlabel="peak backlog, MB", ylabel="mean latency, s", xlim=(0, None), ylim=(0, None)
        )
        axes.legend(fontsize="small")

    return plot


def kept(file: Path | None) -> dict[str, list[Outcome]]:
    """The runs that a file has, by strategy."""
    found: dict[str, list[Outcome]] = {}
    if file is not None and file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            name, figures = json.loads(line)
            found.setdefault(name, []).append(Outcome(**figures))
    return found


def keep(file: Path | None, name: str, outcome: Outcome) -> None:
    """Adds a run to a file."""
    if file is not None:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([name, vars(outcome)]) + "\n")


def main() -> None:
    """Runs the strategies and prints."""
    parser = options(__doc__ or "", "rows a second in a burst, of all streams")
    among(parser, STRATEGIES)
    parser.add_argument("--runs", type=int, help="how often each strategy is run")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the runs to those there")
    chosen = parser.parse_args()
    names = chosen.strategies or (QUICK if chosen.quick else tuple(STRATEGIES))
    usual, seconds = (1, 6.0) if chosen.quick else (3, 9.0)
    runs = usual if chosen.runs is None else chosen.runs
    rows_per_second = chosen.rows or overloading_rows()
    found = kept(chosen.keep)
    with progress(runs * len(names)) as working_on:
        for _ in range(runs):
            for name in names:
                working_on(name)
                run = measured(STRATEGIES[name], rows_per_second / len(FUNCTIONS), seconds)
                found.setdefault(name, []).append(run.outcome)
                keep(chosen.keep, name, run.outcome)
    outcomes = {name: Outcome.median(each) for name, each in found.items()}
    report = Report("live_burst", chosen.out)
    report.value("rows in a burst", rows_per_second, "rows a second")
    for name, outcome in outcomes.items():
        report.value(name, outcome.peak_bytes, "bytes at the peak", **vars(outcome))
    if set(QUICK) <= set(outcomes):
        judge(report, outcomes)
    note(table(outcomes))
    report.draw("plane", plane(outcomes))
    report.close()


if __name__ == "__main__":
    main()
