"""Chain paper, second figure pair: a selective operator sandwiched between unproductive ones."""

from __future__ import annotations

from functools import partial

from millpond.lab.chain.bursts import Setting, path_plan, queue_size_experiment

POINTS = ((0.0, 1.0), (0.002, 0.9), (0.004, 0.89), (0.005, 0.1), (0.009, 0.0))
SETTING = Setting(partial(path_plan, POINTS), {"s": 80.0})

EXPERIMENT = queue_size_experiment(
    name="chain-four-operators",
    title="Queue size, four operators",
    claim=(
        "Chain recognises the fast, selective third operator although two unproductive ones stand "
        "before it; Greedy does not, and does as badly as FIFO; Round-robin does badly too."
    ),
    setting=SETTING,
    limits=(("chain", "greedy", 0.5), ("chain", "fifo", 0.5), ("chain", "round-robin", 0.8)),
    note=(
        "Chart chosen: (0, 1), (2 ms, 0.9), (4 ms, 0.89), (5 ms, 0.1), (9 ms, 0); 80 tuples a "
        "second, load 0.72."
    ),
)
