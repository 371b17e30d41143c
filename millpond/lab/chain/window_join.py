"""Chain paper, sliding-window join: a join and a very selective operator behind it.

Greedy and FIFO do much worse than Chain: the join's low priority keeps Greedy from the selective
operator behind it. Round-robin compares well on the trace and really badly on the bursts.

Times, selectivities, loads, and whether both streams are parts of one traffic were searched for
(see docs/papers.md). The join takes its inputs in order of time and blocks while one is empty.
"""

from dataclasses import dataclass, replace

from millpond.lab.chain.bursts import Setting, queue_size_experiment, run_setting
from millpond.lab.chain.searched_chart import SCREEN_SECONDS, SCREEN_TOLERANCE
from millpond.lab.chain.sentences import Otherwise, Ratio, Sentence, margins_of
from millpond.lab.search import Margins, Point, Search
from millpond.lab.words import CLEARLY, MUCH
from millpond.simulator import SimulatedPlan

LAST_PASSES = 0.8


@dataclass(frozen=True)
class JoinQuery:
    """σ1(R) joined with S, then σ2 and σ3: seconds a tuple and what each yields for one."""

    first_seconds: float = 0.002
    first_passes: float = 0.9
    join_seconds: float = 0.002
    matches: float = 1.0
    selective_seconds: float = 0.001
    selective_passes: float = 0.1
    last_seconds: float = 0.020

    def add_to(self, plan: SimulatedPlan, query: str, left: str, right: str) -> None:
        """Put it behind two streams."""
        narrowed = plan.operator(
            f"{query}.select-1", plan.stream(left), self.first_seconds, self.first_passes
        )
        joined = plan.join(
            f"{query}.join", narrowed, plan.stream(right), self.join_seconds, self.matches
        )
        few = plan.operator(
            f"{query}.select-2", joined, self.selective_seconds, self.selective_passes
        )
        plan.query(query, plan.operator(f"{query}.select-3", few, self.last_seconds, LAST_PASSES))

    def plan(self) -> SimulatedPlan:
        """The query alone."""
        made = SimulatedPlan()
        self.add_to(made, "q", "r", "s")
        return made

    @property
    def work_seconds(self) -> float:
        """What a tuple of R and a tuple of S mean together."""
        behind = self.selective_seconds + self.selective_passes * self.last_seconds
        return self.first_seconds + (1 + self.first_passes) * (
            self.join_seconds + self.matches * behind
        )


PLAIN_SETTING = Setting(JoinQuery().plan, {"r": 70.0, "s": 70.0})
"""A query of that shape at a lower load, for what does not depend on it."""
MUCH_WORSE = "greedy and fifo perform much worse than chain"
BETWEEN = Otherwise(
    "clearly worse than Chain and clearly better than Greedy, on both workloads",
    "of four operators that have work it gives the slow one a quantum in turn, the others three, "
    "so that it is behind Chain wherever a burst is more than three quarters of what can be done; "
    "in no setting that was tried do all six sentences stand",
    (Ratio("round-robin", "chain", CLEARLY), Ratio("round-robin", "greedy", most=1 / CLEARLY)),
)
SENTENCES = (
    Sentence(MUCH_WORSE, Ratio("greedy", "chain", MUCH)),
    Sentence(MUCH_WORSE, Ratio("fifo", "chain", MUCH)),
    Sentence(
        "round-robin compares well with chain for the real data set",
        Ratio("round-robin", "chain", most=CLEARLY),
        BETWEEN,
        ("trace",),
    ),
    Sentence(
        "[round-robin] does really badly on the synthetic data set",
        Ratio("round-robin", "chain", MUCH),
        BETWEEN,
        ("bursts",),
    ),
)


def query(point: Point) -> JoinQuery:
    """The query of a point, in seconds."""
    return JoinQuery(
        point["ms 1"] / 1000,
        point["passes 1"],
        point["ms join"] / 1000,
        point["matches"],
        point["ms 2"] / 1000,
        point["passes 2"],
        point["ms 3"] / 1000,
    )


def setting(point: Point) -> Setting:
    """That query, at a load."""
    chosen = query(point)
    rate = point["load"] / chosen.work_seconds
    return Setting(
        chosen.plan,
        {"r": rate, "s": rate},
        split=bool(point["one traffic"]),
        trace_factor=point["trace load"] / point["load"],
    )


def is_possible(point: Point) -> bool:
    """What the text says of the operators."""
    chosen = query(point)
    left = chosen.matches * chosen.selective_passes
    greedy = (1 - chosen.matches) / chosen.join_seconds, (1 - left) / chosen.join_seconds
    chained = (1 - left) / (chosen.join_seconds + chosen.matches * chosen.selective_seconds)
    last = 1 / chosen.last_seconds
    slow = MUCH * chosen.selective_seconds <= chosen.last_seconds
    return slow and greedy[0] <= 0 and chained > max(last, _first_slope(chosen))


def _first_slope(chosen: JoinQuery) -> float:
    return (1 - chosen.first_passes) / chosen.first_seconds


def measure(point: Point, seed: int) -> Margins:
    """Margins of all sentences on one draw of both workloads."""
    return margins_of(SENTENCES, run_setting(setting(point), [seed]))


def screen(point: Point, seed: int) -> Margins:
    """The same on short runs, which may miss by a tenth what long ones have."""
    found = margins_of(
        SENTENCES, run_setting(replace(setting(point), seconds=SCREEN_SECONDS), [seed])
    )
    return {name: margin / SCREEN_TOLERANCE for name, margin in found.items()}


SEARCH = Search(
    "chain-window-join",
    '"both semijoins [...] have an average selectivity of" a whole number; two selections "are not '
    'very selective, while [...] the selection following the join is very selective"; "low '
    'priority of the join"; "a less selective operator [...] with relatively high tuple processing '
    'time"; the real data set is one trace of packets',
    {
        "ms 1": (0.25, 0.5, 1.0),
        "passes 1": (0.9, 0.8),
        "ms join": (0.25, 0.5, 1.0),
        "matches": (1.0, 2.0),
        "ms 2": (0.1, 0.25),
        "passes 2": (0.05, 0.1),
        "ms 3": (10.0, 20.0, 40.0),
        "load": (0.8, 0.9, 0.95),
        "trace load": (0.6, 0.7, 0.8, 0.9),
        "one traffic": (0.0, 1.0),
    },
    is_possible,
    measure,
    screen,
)
SETTING = setting(SEARCH.found)
EXPERIMENT = queue_size_experiment(__name__, "Queue size, sliding-window join", SETTING, SENTENCES)
