"""How the simulated machine behaves."""

import math
from dataclasses import dataclass
from typing import Literal

from millpond.errors import StrategyError


@dataclass(frozen=True)
class Conditions:
    """The machine and the tuple model; the defaults are the papers' ideal ones.

    - `tuples`: "discrete" tuples yield whole tuples; "fluid" ones shrink by the selectivity.
    - `preemptive`: the end of a time slice cuts work on a tuple; else it is completed first.
    - `shared_queues`: readers of one output share its tuples, else each has its own copy.
    - `on_demand_timestamps`: a join learns that an empty input cannot hold older tuples.
    - `clairvoyant`: strategies see the cost and the outputs of every waiting tuple.
    - `measure_seconds`: tell strategies the averages of the last such window, not the true ones.
    - `commits`: what a step puts out is there when the step ends, not tuple by tuple.
    - `turn_seconds`: so much of each operator's fixed part a virtual operator's step has but once.
    - `trace`: keep a list of all steps.
    """

    tuples: Literal["discrete", "fluid"] = "discrete"
    processors: int = 1
    seed: int = 0
    enqueue_seconds: float = 0.0
    dequeue_seconds: float = 0.0
    switch_seconds: float = 0.0
    thread_switch_seconds: float = 0.0
    preemptive: bool = True
    shared_queues: bool = True
    on_demand_timestamps: bool = False
    clairvoyant: bool = False
    measure_seconds: float | None = None
    until_seconds: float = math.inf
    commits: bool = False
    turn_seconds: float = 0.0
    trace: bool = False

    def __post_init__(self) -> None:
        if self.processors < 1:
            raise StrategyError(f"processors is {self.processors}; give at least 1")
        if self.tuples not in ("discrete", "fluid"):
            raise StrategyError(f'tuples is "{self.tuples}"; choose discrete or fluid')
        if self.measure_seconds is not None and not self.measure_seconds > 0:
            raise StrategyError(f"measure_seconds is {self.measure_seconds}; give more than 0")


IDEAL = Conditions()
