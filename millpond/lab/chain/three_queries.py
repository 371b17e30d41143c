"""Chain paper, last figures: a window-join query and two single-stream queries together."""

from __future__ import annotations

from millpond.lab.chain.bursts import Setting, queue_size_experiment
from millpond.lab.chain.four_operators import POINTS as FOUR_OPERATORS
from millpond.lab.chain.window_join import add_window_join
from millpond.simulator import SimulatedPlan

OTHER_FOUR = ((0.0, 1.0), (0.001, 0.95), (0.002, 0.93), (0.004, 0.1), (0.008, 0.0))


def plan() -> SimulatedPlan:
    """All three queries."""
    made = SimulatedPlan()
    add_window_join(made, "join", "r", "s")
    made.chart("first", made.stream("a"), FOUR_OPERATORS)
    made.chart("second", made.stream("b"), OTHER_FOUR)
    return made


SETTING = Setting(plan, {"r": 30.0, "s": 30.0, "a": 30.0, "b": 30.0})

EXPERIMENT = queue_size_experiment(
    name="chain-three-queries",
    title="Queue size, three queries",
    claim=(
        "With more operators to choose from, Chain beats all others by a huge margin: Round-robin "
        "and FIFO run the best chain ever less often, Greedy does not recognise it."
    ),
    setting=SETTING,
    limits=(("chain", "greedy", 0.5), ("chain", "fifo", 0.5), ("chain", "round-robin", 0.65)),
    note=(
        "Chosen: the window-join query, the four-operator query and one with chart (0, 1), (1 ms, "
        "0.95), (2 ms, 0.93), (4 ms, 0.1), (8 ms, 0); 30 tuples a second on each of four streams."
    ),
)
