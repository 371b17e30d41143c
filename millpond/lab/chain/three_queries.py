"""Chain paper, last figures: a window-join query and two single-stream queries together.

With more operators to choose from, Chain beats all others by a huge margin, and by more than with
one query: Round-robin and FIFO run the best chain ever less often, Greedy does not recognise it.

The window-join query and the chart of four operators are those of their own figures, the latter
once as it is and once faster or slower; by how much, loads, the join's part of the work and whether
the streams are parts of one traffic were searched for (see docs/papers.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import median
from typing import TypeAlias

from millpond.lab.chain import four_operators, searched_chart, sentences, window_join
from millpond.lab.chain.bursts import CHOSEN, SEEDS, Setting, plot_queues, run_setting
from millpond.lab.chain.searched_chart import SCREEN_SECONDS, SCREEN_TOLERANCE
from millpond.lab.experiment import Claim, Instead, Tables, experiment
from millpond.lab.search import Margins, Point, Search
from millpond.lab.sentences import ABOVE_ONE
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY, HUGE, MUCH, on_most_seeds
from millpond.scheduling.charts.progress_chart import Point as ChartPoint
from millpond.simulator import SimulatedPlan

RIVALS, ROBIN = sentences.STRATEGIES[1:], "round-robin"
OVER_CHAIN = [sentences.Ratio(rival, "chain") for rival in RIVALS]
Leads: TypeAlias = Sequence[Sequence[float]]
"""Over each rival, seed by seed."""
ALONE = {"window join": window_join.SETTING, "four operators": four_operators.SETTING}
FIRST = searched_chart.chart(four_operators.SEARCH.found)
PLAIN_CHARTS: Sequence[Sequence[ChartPoint]] = (
    ((0.0, 1.0), (0.002, 0.9), (0.004, 0.89), (0.005, 0.1), (0.009, 0.0)),
    ((0.0, 1.0), (0.001, 0.95), (0.002, 0.93), (0.004, 0.1), (0.008, 0.0)),
)


def plan(join: window_join.JoinQuery, charts: Sequence[Sequence[ChartPoint]]) -> SimulatedPlan:
    """All three queries."""
    made = SimulatedPlan()
    join.add_to(made, "join", "r", "s")
    for name, stream, chart in zip(("first", "second"), "ab", charts, strict=True):
        made.chart(name, made.stream(stream), chart)
    return made


PLAIN_SETTING = Setting(
    partial(plan, window_join.JoinQuery(), PLAIN_CHARTS), dict.fromkeys("rsab", 30.0)
)
"""Queries of that shape at a lower load, for what does not depend on it."""


def setting(point: Point) -> Setting:
    """The three queries at a load, of which the join has its part and the others what is left."""
    join = window_join.query(window_join.SEARCH.found)
    second = [(point["second slower"] * time, size) for time, size in FIRST]
    works = [chart[-1][0] for chart in (FIRST, second)]
    load, part = point["load"], point["join part"]
    pair = load * part / join.work_seconds
    alone = [load * (1 - part) / 2 / work for work in works]
    return Setting(
        partial(plan, join, (FIRST, second)),
        dict(zip("rsab", (pair, pair, *alone), strict=True)),
        split=bool(point["one traffic"]),
        trace_factor=point["trace load"] / load,
    )


def run(seeds: Sequence[int]) -> Tables:
    """The three queries together, and how far Chain is ahead on each kind of them alone."""
    together = run_setting(setting(SEARCH.found), seeds)
    runs = {"three queries": together} | {
        name: run_setting(each, seeds) for name, each in ALONE.items()
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
        *sentences.check_sentences(SENTENCES, tables),
        *(_more_pronounced(tables, workload) for workload in sentences.WORKLOADS),
    ]


LOW_BURSTS = "in some draws no burst is long, and of a short one every strategy must hold most"
SATURATED = (
    "Greedy and FIFO keep the selective operators from work with one query as with three; it is "
    "Round-robin whose time is spread over more operators"
)


def _huge(rival: str) -> sentences.Sentence:
    least = CLEARLY if rival == ROBIN else MUCH
    return sentences.Sentence(
        "chain beats all others by a huge margin",
        sentences.Ratio(rival, "chain", HUGE),
        sentences.Otherwise(
            "clearly, if not by so much" if rival == ROBIN else "by twice as much at least",
            LOW_BURSTS,
            (sentences.Ratio(rival, "chain", least),),
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
    at = RIVALS.index(ROBIN)
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
            f"in the middle all leads are huge ({HUGE:g}), and that over Round-robin grows",
            SATURATED,
            min(map(median, together)) >= HUGE
            and all(median(together[at]) > median(leads[at]) for leads in alone),
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


SENTENCES = [_huge(rival) for rival in RIVALS]


def measure(point: Point, seed: int) -> Margins:
    """Margins of all sentences on one draw of both workloads."""
    tables = run_setting(setting(point), [seed])
    return {**sentences.margins_of(SENTENCES, tables), **dict(_growth(tables, seed))}


def _growth(tables: Tables, seed: int) -> Iterator[tuple[str, float]]:
    """By how much every lead is above that with one query, at least."""
    for workload in sentences.WORKLOADS:
        together, alone = _leads(tables, workload), _leads_alone(workload, seed)
        grown = min(
            mine / theirs for leads in alone for mine, theirs in zip(together, leads, strict=True)
        )
        yield f"{workload}: leads with three queries and with one", grown / ABOVE_ONE


def _leads(tables: Tables, workload: str) -> list[float]:
    return [ratio.of(tables, workload)[0] for ratio in OVER_CHAIN]


@cache
def _leads_alone(workload: str, seed: int) -> list[list[float]]:
    return [_leads(run_setting(each, [seed], (workload,)), workload) for each in ALONE.values()]


def screen(point: Point, seed: int) -> Margins:
    """By what margin Chain is ahead on a short run, which may miss by a tenth."""
    short = replace(setting(point), seconds=SCREEN_SECONDS)
    found = sentences.margins_of(SENTENCES, run_setting(short, [seed]))
    return {name: margin / SCREEN_TOLERANCE for name, margin in found.items()}


SEARCH = Search(
    "chain-three-queries",
    '"a sliding-window join query similar to the one presented in the last experiment, and two '
    'single-stream queries with selectivities less than 1 similar to those presented"; "the '
    'queries consist of highly selective operators sandwiched between not so selective ones"; the '
    "real data set is one trace of packets",
    {
        "second slower": (0.25, 0.5, 1.0, 2.0),
        "join part": (0.1, 0.2, 0.33, 0.5),
        "load": (0.8, 0.9, 0.95),
        "trace load": (0.7, 0.8, 0.9),
        "one traffic": (0.0, 1.0),
    },
    lambda point: True,
    measure,
    screen,
)
EXPERIMENT = experiment(
    __name__, "Queue size, three queries", plot=plot_queues, note=CHOSEN, seeds=SEEDS, long=True
)
