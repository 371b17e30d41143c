"""The HMTS paper's comparison on Spark, scaled to seconds: DI, GTS, OTS and HMTS.

    python -m benchmarks.live_hmts [--quick] [--out DIR] [--rows ROWS]

The cases are those of `millpond/lab/live/threads.py`. Seconds until every answer is there, medians.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress
from millpond.lab.live.threads import GOALS, TWO_TASKS, cases, medians
from millpond.settings import Settings
from millpond.spark.session import create_session


def main() -> None:
    """Measures all cases and prints."""
    chosen = options(__doc__ or "", "rows of the case with one slow operator").parse_args()
    report = Report("live_hmts", chosen.out)
    rows = chosen.rows or (160_000 if chosen.quick else 640_000)
    spark = create_session(Settings(spark_master="local[2]"))
    found: dict[str, dict[str, float]] = {}
    with progress(3) as doing:
        for case in cases(rows):
            doing(case.name)
            seconds = found[case.name] = medians(case, spark, 3 if chosen.quick else 5)
            told = {f"{mode}_seconds": each for mode, each in seconds.items()}
            for goal in (goal for goal in GOALS if goal.case == case.name):
                report.ratio(
                    f"{case.name}: {goal.slower} against {goal.quicker}",
                    goal.ratio(found),
                    goal.at_least(found),
                    millpond=told,
                )
            if TWO_TASKS in seconds:
                ratio = seconds[TWO_TASKS] / seconds["hmts"]
                report.ratio(f"{case.name}: {TWO_TASKS} against hmts", ratio, None, millpond=told)
    spark.stop()

    def draw(figure: Figure) -> None:
        axes = np.atleast_1d(figure.subplots(1, len(found)))
        for chart, (name, seconds) in zip(axes, found.items(), strict=True):
            chart.bar(list(seconds), list(seconds.values()))
            chart.set(title=name, ylabel="seconds")

    report.draw("modes", draw)
    report.close()


if __name__ == "__main__":
    main()
