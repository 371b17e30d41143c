"""The HMTS paper's modes on Spark, live.

With one slow operator hybrid threads are done sooner; cheap chains want no queues

Wall-clock time on this machine, which is to have nothing else to do; some minutes.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.live.threads import GOALS, MODES, TWO_TASKS, Goal, cases, medians
from millpond.settings import Settings

ROWS = 320_000


def run(seeds: Sequence[int]) -> Tables:
    """The medians of as many rounds as there are seeds: the input is the same in all of them."""
    from millpond.spark.session import create_session

    spark = create_session(Settings(spark_master="local[2]"))
    try:
        found = {case.name: medians(case, spark, len(seeds)) for case in cases(ROWS)}
    finally:
        spark.stop()
    columns = {mode: [found[case][mode] for case in found] for mode in MODES}
    rival = {case: seconds[TWO_TASKS] for case, seconds in found.items() if TWO_TASKS in seconds}
    return {
        "seconds": {"case": list(found), **columns},
        TWO_TASKS: {"case": list(rival), "seconds": list(rival.values())},
    }


def plot(tables: Tables, figure: Figure) -> None:
    """Seconds of each mode, a chart a case."""
    table = tables["seconds"]
    rival = dict(zip(*tables[TWO_TASKS].values(), strict=True))
    axes = np.atleast_1d(figure.subplots(1, len(table["case"])))
    for place, (chart, case) in enumerate(zip(axes, table["case"], strict=True)):
        seconds = {mode: table[mode][place] for mode in MODES}
        seconds |= {"gts,\ntwo tasks": rival[case]} if case in rival else {}
        chart.bar(list(seconds), list(seconds.values()))
        chart.set(title=case, ylabel="seconds")


def check(tables: Tables) -> list[Claim]:
    """Which mode is done sooner than which."""
    table = tables["seconds"]
    rival = dict(zip(*tables[TWO_TASKS].values(), strict=True))
    found = {
        case: {mode: table[mode][place] for mode in MODES} | _of_rival(rival, case)
        for place, case in enumerate(table["case"])
    }
    return [
        Claim(
            f"{goal.case}: {goal.quicker} is done sooner than {goal.slower}",
            f"at least {goal.at_least(found):.2f} times{_of_what(goal)}",
            f"{goal.ratio(found):.2f} times",
            goal.ratio(found) >= goal.at_least(found),
        )
        for goal in GOALS
    ]


def _of_rival(rival: dict[str, float], case: str) -> dict[str, float]:
    return {TWO_TASKS: rival[case]} if case in rival else {}


def _of_what(goal: Goal) -> str:
    return f", {goal.times:.0%} of what {goal.rival} brings" if goal.rival else ""


EXPERIMENT = experiment(
    __name__,
    "Direct interoperability, graph, operator and hybrid threads on Spark",
    paper="HMTS",
    together="live",
    group="live",
)
