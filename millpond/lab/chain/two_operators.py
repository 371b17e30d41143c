"""Chain paper, first figure pair: one stream, a fast selective operator before a slow one."""

from __future__ import annotations

from functools import partial

from millpond.lab.chain.bursts import Setting, path_plan, queue_size_experiment

POINTS = ((0.0, 1.0), (0.001, 0.2), (0.006, 0.0))
SETTING = Setting(partial(path_plan, POINTS), {"s": 120.0})

EXPERIMENT = queue_size_experiment(
    name="chain-two-operators",
    title="Queue size, two operators",
    claim=(
        "With a fast, selective operator before a slow one, Chain and Greedy are almost identical, "
        "Round-robin does almost as well, and FIFO does badly."
    ),
    setting=SETTING,
    limits=(
        ("chain", "greedy", 1.01),
        ("greedy", "chain", 1.01),
        ("round-robin", "chain", 1.15),
        ("chain", "fifo", 0.5),
    ),
    note="Chart chosen: (0, 1), (1 ms, 0.2), (6 ms, 0); 120 tuples a second, load 0.72.",
)
