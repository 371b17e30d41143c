"""The query of the HMTS paper's Figures 7 and 8: five selections behind an autonomous source.

A selection costs 530 ns, as the paper measures one in section 6.6. What a queue costs is not
printed: enqueue and dequeue together are set to 1.5 µs, with which direct interoperability is 40 %
ahead of OTS for one query. One simulated tuple stands for ten elements.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from millpond.scheduling.strategies.direct_interoperability import DirectInteroperability
from millpond.scheduling.strategies.gts import Gts
from millpond.scheduling.strategies.ots import Ots
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate

SELECTIVITIES = (0.998, 0.996, 0.994, 0.992, 0.990)
SELECTION_SECONDS = 530e-9
QUEUE_SECONDS = 1.5e-6
THREAD_SWITCH_SECONDS = 5e-6
ELEMENTS_PER_SECOND = 500_000.0
ELEMENTS_IN_TUPLE = 10
BLOCK_SECONDS = 1e-3
"""The source hands over what it has made every millisecond."""
TURN_SECONDS = 0.02
CONFIGURATIONS: Mapping[str, Callable[[], Strategy]] = {
    "di": lambda: DirectInteroperability(turn_seconds=TURN_SECONDS),
    "ots": lambda: Ots(TURN_SECONDS),
    "gts chain": lambda: Gts("chain", slice_seconds=TURN_SECONDS),
    "gts fifo": lambda: Gts("fifo", slice_seconds=TURN_SECONDS),
}


def simulated(
    configuration: str,
    elements: int,
    queries: int = 1,
    queue_seconds: float = QUEUE_SECONDS,
    switch_seconds: float = THREAD_SWITCH_SECONDS,
    seed: int = 0,
    selectivities: Sequence[float] = SELECTIVITIES,
    by_chance: bool = False,
) -> Record:
    """Serve so many elements by so many queries alike on two processors.

    The source makes them evenly, or with inter-arrival times `by_chance`.
    """
    plan = SimulatedPlan()
    stream = plan.stream("s")
    for number in range(queries):
        cost = SELECTION_SECONDS * ELEMENTS_IN_TUPLE
        plan.path(f"q{number}", stream, [(cost, each) for each in selectivities])
    conditions = Conditions(
        processors=2,
        seed=seed,
        enqueue_seconds=queue_seconds * ELEMENTS_IN_TUPLE / 2,
        dequeue_seconds=queue_seconds * ELEMENTS_IN_TUPLE / 2,
        thread_switch_seconds=switch_seconds,
    )
    made = np.arange(1, elements // ELEMENTS_IN_TUPLE + 1) * ELEMENTS_IN_TUPLE
    come = made / ELEMENTS_PER_SECOND
    if by_chance:
        gap = ELEMENTS_IN_TUPLE / ELEMENTS_PER_SECOND
        come = np.cumsum(np.random.default_rng(seed).exponential(gap, len(made)))
    times = np.ceil(come / BLOCK_SECONDS) * BLOCK_SECONDS
    return simulate(plan, CONFIGURATIONS[configuration](), {"s": times}, conditions)
