"""Chain paper, figures of a sliding-window join of two streams and three selections.

Greedy gives the join before the very selective selection a low priority and does much worse than
Chain, as does FIFO; Round-robin compares well with Chain on the trace and does really badly on the
bursts.

Chosen: selection 2 ms and 0.9 on R; join 2 ms, both semijoins 1; selections 1 ms and 0.1, 20 ms and
0.8; 70 tuples a second on each stream. The join takes its inputs in order of time and blocks while
one is empty.
"""

from millpond.lab.chain.bursts import Setting, queue_size_experiment
from millpond.lab.chain.sentences import Otherwise, Ratio, Sentence
from millpond.lab.words import CLEARLY, MUCH, SAME
from millpond.simulator import SimulatedPlan


def add_window_join(plan: SimulatedPlan, query: str, left: str, right: str) -> None:
    """Add σ(R) joined with S, then a very selective and a not very selective selection."""
    narrowed = plan.operator(f"{query}.select-1", plan.stream(left), 0.002, 0.9)
    joined = plan.join(
        f"{query}.join", narrowed, plan.stream(right), cost_seconds=0.002, selectivity=1.0
    )
    few = plan.operator(f"{query}.select-2", joined, 0.001, 0.1)
    plan.query(query, plan.operator(f"{query}.select-3", few, 0.020, 0.8))


def plan() -> SimulatedPlan:
    """The query alone."""
    made = SimulatedPlan()
    add_window_join(made, "q", "r", "s")
    return made


SETTING = Setting(plan, {"r": 70.0, "s": 70.0})

MUCH_WORSE = "greedy and fifo perform much worse than chain"
BY_DRAW = (
    "in some draws the join waits for one of its inputs while the other brings a burst, and then "
    "every strategy holds the same tuples"
)


def _not_better(rival: str) -> Otherwise:
    ratios = (Ratio(rival, "chain", 1 - SAME),)
    return Otherwise(
        "not better than Chain, by how much differs from draw to draw", BY_DRAW, ratios
    )


SENTENCES = (
    Sentence(MUCH_WORSE, Ratio("greedy", "chain", MUCH), _not_better("greedy")),
    Sentence(MUCH_WORSE, Ratio("fifo", "chain", MUCH), _not_better("fifo")),
    Sentence(
        "round-robin compares well with chain for the real data set",
        Ratio("round-robin", "chain", most=CLEARLY),
        _not_better("round-robin"),
        ("trace",),
    ),
    Sentence(
        "[round-robin] does really badly on the synthetic data set",
        Ratio("round-robin", "chain", MUCH),
        _not_better("round-robin"),
        ("bursts",),
    ),
)

EXPERIMENT = queue_size_experiment(__name__, "Queue size, sliding-window join", SETTING, SENTENCES)
