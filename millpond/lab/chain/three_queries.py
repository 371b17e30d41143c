"""Chain paper, last figures: a window-join query and two single-stream queries together.

With more operators to choose from, Chain beats all others by a huge margin, and by more than with
one query: Round-robin and FIFO run the best chain ever less often, Greedy does not recognise it.

Chosen: the window-join query, one with chart (0, 1), (2 ms, 0.9), (4 ms, 0.89), (5 ms, 0.1), (9 ms,
0) and one with (0, 1), (1 ms, 0.95), (2 ms, 0.93), (4 ms, 0.1), (8 ms, 0); 30 tuples a second on
each of four streams.
"""

from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import TypeAlias

from millpond.lab.chain import sentences, window_join
from millpond.lab.chain.bursts import (
    CHOSEN,
    SEEDS,
    Setting,
    path_plan,
    plot_queues,
    run_setting,
)
from millpond.lab.experiment import Claim, Instead, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY, HUGE, SAME, on_most_seeds
from millpond.simulator import SimulatedPlan

FIRST = ((0.0, 1.0), (0.002, 0.9), (0.004, 0.89), (0.005, 0.1), (0.009, 0.0))
SECOND = ((0.0, 1.0), (0.001, 0.95), (0.002, 0.93), (0.004, 0.1), (0.008, 0.0))
RIVALS = sentences.STRATEGIES[1:]
OVER_CHAIN = [sentences.Ratio(rival, "chain") for rival in RIVALS]
Leads: TypeAlias = Sequence[Sequence[float]]
"""Over each rival, seed by seed."""
ALONE = {
    "window join": window_join.SETTING,
    "four operators": Setting(partial(path_plan, FIRST), {"s": 80.0}),
}


def plan() -> SimulatedPlan:
    """All three queries."""
    made = SimulatedPlan()
    window_join.add_window_join(made, "join", "r", "s")
    made.chart("first", made.stream("a"), FIRST)
    made.chart("second", made.stream("b"), SECOND)
    return made


SETTING = Setting(plan, {"r": 30.0, "s": 30.0, "a": 30.0, "b": 30.0})


def run(seeds: Sequence[int]) -> Tables:
    """The three queries together, and how far Chain is ahead on each kind of them alone."""
    together = run_setting(SETTING, seeds)
    runs = {"three queries": together} | {
        name: run_setting(setting, seeds) for name, setting in ALONE.items()
    }
    rows = [
        (name, workload, seed, *ratios)
        for name, tables in runs.items()
        for workload in sentences.WORKLOADS
        for seed, *ratios in zip(
            seeds, *(ratio.of(tables, workload) for ratio in OVER_CHAIN), strict=True
        )
    ]
    return {**together, "ahead": table_of(("queries", "workload", "seed", *RIVALS), rows)}


def check(tables: Tables) -> Sequence[Claim]:
    """By how much Chain is ahead, and whether more so than with one query."""
    return [
        *sentences.check_sentences([_huge(rival) for rival in RIVALS], tables),
        *(_more_pronounced(tables, workload) for workload in sentences.WORKLOADS),
    ]


SMOOTHER = (
    "four streams smooth each other out: arrivals a second vary by a fifth of their mean here, "
    "by a third to a half with one stream, and of a low burst every strategy must hold most"
)


def _huge(rival: str) -> sentences.Sentence:
    alike = rival == "round-robin"
    return sentences.Sentence(
        "chain beats all others by a huge margin",
        sentences.Ratio(rival, "chain", HUGE),
        sentences.Otherwise(
            "not better than Chain" if alike else "clearly, if not by so much",
            SMOOTHER,
            (sentences.Ratio(rival, "chain", 1 - SAME if alike else CLEARLY),),
        ),
    )


def _more_pronounced(tables: Tables, workload: str) -> Claim:
    """Against every rival, the lead for three queries is above that for each kind of one."""
    table = tables["ahead"]
    queries = dict.fromkeys(table["queries"])
    leads = {
        name: [picked(table, rival, {"queries": name, "workload": workload}) for rival in RIVALS]
        for name in queries
    }
    together, *alone = leads.values()
    so = _so(together, alone)
    told = "; ".join(
        f"{name} {' '.join(f'{median(lead):.2f}' for lead in found)}"
        for name, found in leads.items()
    )
    return Claim(
        f"{workload}: peaks of {', '.join(RIVALS)} over chain's, with three queries and with one",
        '"as we increase the number of queries the benefits of [...] chain become more pronounced"',
        f"so on {sum(so)} of {len(so)} seeds; in the middle: {told}",
        on_most_seeds(so),
        Instead(
            f"clearly ahead with one query and with three (at least {CLEARLY:g}, in the middle)",
            SMOOTHER,
            min(median(lead) for found in leads.values() for lead in found) >= CLEARLY,
        ),
    )


def _so(together: Leads, alone: Sequence[Leads]) -> list[bool]:
    """Seed by seed, whether the lead over every rival is above that of each query alone."""
    above = [
        [more > less for more, less in zip(mine, theirs, strict=True)]
        for one in alone
        for mine, theirs in zip(together, one, strict=True)
    ]
    return [all(each) for each in zip(*above, strict=True)]


EXPERIMENT = experiment(
    __name__, "Queue size, three queries", plot=plot_queues, note=CHOSEN, seeds=SEEDS, long=True
)
