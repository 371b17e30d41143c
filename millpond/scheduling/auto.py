"""Auto: stays within a memory budget and, as far as that allows, within a latency goal.

Beyond the papers. A chart may weigh both objectives of the Unified paper at once: what is left of a
tuple is (1 - λ) times the outputs it still owes plus λ times the bytes it still takes, both in units
of the plan's mean. Partitioned like any progress chart, it gives the best index for that weighing:
λ = 0 carries tuples through like Path Capacity, λ = 1 is Chain, and in between no tuple is held back
further than the memory it saves is worth. Auto moves λ with the queue memory and the age of the
oldest tuple, in steps, so that a decision costs O(log n) and an order of operators lasts a while.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from millpond.errors import StrategyError
from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.progress_chart import Point, partition, path_chart
from millpond.scheduling.ready_queue import ReadyQueue
from millpond.snapshot import Observation, OperatorPath, OperatorState, PlanSnapshot

MEBIBYTE = 2**20
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""The weights λ of memory that Auto chooses from."""
