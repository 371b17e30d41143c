"""Chain paper, figure of a join with a stored relation: an operator of selectivity above one."""

from __future__ import annotations

from functools import partial

from millpond.lab.chain.bursts import Setting, path_plan, queue_size_experiment

POINTS = ((0.0, 1.0), (0.001, 0.9), (0.003, 1.5), (0.004, 0.1), (0.009, 0.0))
"""The second operator is the join."""
SETTING = Setting(partial(path_plan, POINTS), {"s": 80.0})

EXPERIMENT = queue_size_experiment(
    name="chain-stored-join",
    title="Queue size, join with a stored relation",
    claim=(
        "The first three operators, the second a join of selectivity above one, are one chain, so "
        "Chain uses the selective operator behind the join during bursts; Greedy does not."
    ),
    setting=SETTING,
    limits=(("chain", "greedy", 0.5), ("chain", "fifo", 0.5), ("chain", "round-robin", 0.8)),
    note=(
        "Chart chosen: (0, 1), (1 ms, 0.9), (3 ms, 1.5), (4 ms, 0.1), (9 ms, 0); 80 tuples a "
        "second, load 0.72. Round-robin does better here than the paper's text says (as badly as "
        "Greedy), but stays behind Chain."
    ),
)
