"""Chain paper, last figures: a window-join query and two single-stream queries together.

With more operators to choose from, Chain beats all others by a huge margin, and by more than with
one query: Round-robin and FIFO run the best chain ever less often, Greedy does not recognise it.

Chosen: the window-join query, the four-operator query and one with chart (0, 1), (1 ms, 0.95), (2
ms, 0.93), (4 ms, 0.1), (8 ms, 0); 30 tuples a second on each of four streams.
"""

from collections.abc import Sequence

from millpond.lab.chain import four_operators, sentences, window_join
from millpond.lab.chain.bursts import CHOSEN, Setting, plot_queues, run_setting
from millpond.lab.experiment import Claim, Instead, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.words import CLEARLY, HUGE
from millpond.simulator import SimulatedPlan

OTHER_FOUR = ((0.0, 1.0), (0.001, 0.95), (0.002, 0.93), (0.004, 0.1), (0.008, 0.0))
RIVALS = sentences.STRATEGIES[1:]
OVER_CHAIN = [sentences.Ratio(rival, "chain") for rival in RIVALS]
ALONE = {"window join": window_join.SETTING, "four operators": four_operators.SETTING}


def plan() -> SimulatedPlan:
    """All three queries."""
    made = SimulatedPlan()
    window_join.add_window_join(made, "join", "r", "s")
    made.chart("first", made.stream("a"), four_operators.POINTS)
    made.chart("second", made.stream("b"), OTHER_FOUR)
    return made


SETTING = Setting(plan, {"r": 30.0, "s": 30.0, "a": 30.0, "b": 30.0})


def run(seeds: Sequence[int]) -> Tables:
    """The three queries together, and how far Chain is ahead on each kind of them alone."""
    together = run_setting(SETTING, seeds)
    runs = {"three queries": together} | {
        name: run_setting(setting, seeds) for name, setting in ALONE.items()
    }
    rows = [
        (name, workload, *(ratio.of(tables, workload) for ratio in OVER_CHAIN))
        for name, tables in runs.items()
        for workload in sentences.WORKLOADS
    ]
    return {**together, "ahead": table_of(("queries", "workload", *RIVALS), rows)}


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
    return sentences.Sentence(
        "chain beats all others by a huge margin",
        sentences.Ratio(rival, "chain", HUGE),
        sentences.Otherwise(
            "clearly, if not by so much", SMOOTHER, (sentences.Ratio(rival, "chain", CLEARLY),)
        ),
    )


def _more_pronounced(tables: Tables, workload: str) -> Claim:
    """Against every rival, the lead for three queries is above that for each kind of one."""
    table = tables["ahead"]
    places = [place for place, name in enumerate(table["workload"]) if name == workload]
    leads = {table["queries"][place]: [table[rival][place] for rival in RIVALS] for place in places}
    together, *alone = leads.values()
    told = "; ".join(
        f"{name} {' '.join(f'{lead:.2f}' for lead in found)}" for name, found in leads.items()
    )
    return Claim(
        f"{workload}: peaks of {', '.join(RIVALS)} over chain's, with three queries and with one",
        '"as we increase the number of queries the benefits of [...] chain become more pronounced"',
        told,
        all(more > less for one in alone for more, less in zip(together, one, strict=True)),
        Instead(
            f"clearly ahead with one query and with three (at least {CLEARLY:g})",
            SMOOTHER,
            min(map(min, leads.values())) >= CLEARLY,
        ),
    )


EXPERIMENT = experiment(__name__, "Queue size, three queries", plot=plot_queues, note=CHOSEN)
