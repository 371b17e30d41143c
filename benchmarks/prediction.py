"""The simulator against the live system: what it says strategies would do, and what they do.

    python -m benchmarks.prediction [--quick] [--out DIR] [--rows A_SECOND] [--strategies A,B]

The bursts of `live_burst` are run once under round-robin, and the plan is written down as it was
measured. From that the simulator says what other strategies do with bursts of other seeds; then
these are run. Errors of the peak of the backlog and of the mean latency, and for the picture the
backlog over time, simulated and live.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reporting import Report, among, note, options, progress
from millpond.lab.live.bursts import FUNCTIONS, STRATEGIES, Run, measured, overloading_rows
from millpond.simulator.prediction import Prediction, predicted

MEASURED = "round-robin"
QUICK = ("fifo", "chain", "path-capacity")
FULL = (*QUICK, "greedy", "segment", "simplified-segment", "maximum-slope-segment")
MOST_ERROR = 0.25


def foretold(known: Mapping[str, Any], live: Run, strategy: str) -> Prediction:
    """What the simulator says of a strategy, from what was measured of another one.

    Of the run that is foretold it knows when how many rows came, and nothing else.
    """
    measured_plan = {**known, "streams": live.statistics["streams"]}
    (found,) = predicted(measured_plan, [STRATEGIES[strategy]], float("inf"))
    if not isinstance(found, Prediction):
        raise SystemExit(f"{strategy}: {found.reason}")
    return found


def error(said: float, found: float) -> float:
    """How far what was said is from what was found, as a share of that."""
    return abs(said - found) / found


def courses(pairs: Mapping[str, tuple[Prediction, Run]]) -> Callable[[Figure], None]:
    """The backlog over time, simulated and live, a chart for each strategy."""

    def plot(figure: Figure) -> None:
        charts = np.atleast_1d(figure.subplots(len(pairs), 1, sharex=True))
        for chart, (name, (said, live)) in zip(charts, pairs.items(), strict=True):
            live_bytes = np.asarray(live.backlog_bytes) / 1e6
            chart.step(live.times, live_bytes, where="post", label="live")
            chart.step(said.backlog.times, said.backlog.values / 1e6, where="post", label="said")
            chart.set(title=name, ylabel="backlog, MB")
        charts[0].legend()
        charts[-1].set(xlabel="seconds")

    return plot


def main() -> None:
    """Measures, foretells, and compares."""
    parser = options(__doc__ or "", "rows a second in a burst, of all streams")
    among(parser, [name for name in STRATEGIES if name != MEASURED])
    chosen = parser.parse_args()
    strategies, seeds, seconds = (QUICK, (10,), 6.0) if chosen.quick else (FULL, (10, 20, 30), 9.0)
    strategies = chosen.strategies or strategies
    rows_per_second = (chosen.rows or overloading_rows()) / len(FUNCTIONS)
    report = Report("prediction", chosen.out)
    pairs: dict[str, tuple[Prediction, Run]] = {}
    with progress(1 + len(strategies) * len(seeds)) as working_on:
        working_on(MEASURED)
        known = measured(STRATEGIES[MEASURED], rows_per_second, seconds).statistics
        for strategy in strategies:
            peaks, latencies = [], []
            for seed in seeds:
                working_on(f"{strategy}, seed {seed}")
                live = measured(STRATEGIES[strategy], rows_per_second, seconds, seed)
                said, found = foretold(known, live, strategy), live.outcome
                peaks.append(error(said.peak_bytes, found.peak_bytes))
                latencies.append(error(said.mean_latency_seconds, found.mean_seconds))
                pairs.setdefault(strategy, (said, live))
                note(
                    f"{strategy}, seed {seed}: peak {said.peak_bytes / 1e6:.2f} MB said, "
                    f"{found.peak_bytes / 1e6:.2f} live; mean latency "
                    f"{said.mean_latency_seconds:.3f} s said, {found.mean_seconds:.3f} live; done "
                    f"after {said.finished_seconds:.2f} s said, {found.total_seconds:.2f} live"
                )
            more = {"runs": len(seeds)}
            peak, latency = statistics.median(peaks), statistics.median(latencies)
            report.ratio(f"{strategy}: error of the peak", peak, MOST_ERROR, at_most=True, **more)
            report.ratio(
                f"{strategy}: error of the mean latency", latency, MOST_ERROR, at_most=True, **more
            )
    report.draw("backlog", courses(pairs))
    report.close()


if __name__ == "__main__":
    main()
