"""Predictions in a process of their own: measured statistics come in, a line a strategy goes out.

`python -m millpond.simulator.predicting` reads one JSON object from its input, at the lowest
priority, so that whoever was measured goes on undisturbed.
"""

import json
import os
import sys
from dataclasses import asdict
from operator import add
from typing import Any

from millpond.simulator.prediction import Refusal, predicted


def line_of(measured: dict[str, Any], strategy: str, budget_bytes: float, blocks: int) -> str:
    """What one strategy would have done, as JSON."""
    (found,) = predicted(measured, [strategy], budget_bytes, blocks)
    if isinstance(found, Refusal):
        return json.dumps(asdict(found))
    told = ("strategy", "mean_bytes", "peak_bytes", "mean_latency_seconds", "p95_latency_seconds")
    return json.dumps({name: getattr(found, name) for name in told})


def merge_slots(stream: dict[str, Any], most: int) -> None:
    """Has the arrivals of a stream, and the pages they came in, in few and longer slots of time.

    >>> stream = {"slot_seconds": 0.5, "arrivals": [1.0, 2.0, 0.0, 4.0], "pages": [1.0, 2.0, 0, 1]}
    >>> merge_slots(stream, 2)
    >>> stream
    {'slot_seconds': 1.0, 'arrivals': [3.0, 4.0], 'pages': [3.0, 1]}
    """
    while sum(map(bool, stream["arrivals"])) > most:
        for name in {"arrivals", "pages"} & stream.keys():
            stream[name] = _in_pairs(stream[name])
        stream["slot_seconds"] *= 2


def _in_pairs(slots: list[float]) -> list[float]:
    """Two slots as one."""
    even = [*slots, *[0.0] * (len(slots) % 2)]
    return list(map(add, even[::2], even[1::2]))


def main() -> None:
    """Answers one question."""
    os.nice(19)
    asked = json.load(sys.stdin)
    for stream in asked["measured"]["streams"].values():
        merge_slots(stream, asked["blocks"])
    for strategy in asked.pop("strategies"):
        sys.stdout.write(line_of(strategy=strategy, **asked) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
