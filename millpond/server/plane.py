"""The plane of memory against latency: where each strategy would lie with what was measured.

The simulator predicts it when somebody asks, in a process of its own: the engine's loop is held up
for as long as it takes to copy the statistics.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from millpond.errors import StateError
from millpond.facade.engine import Engine
from millpond.scheduling.strategy_text import driving_spark
from millpond.simulator import predicting

BLOCKS = 120
"""So many tuples stand for all rows of a stream: enough to see where strategies lie."""

MOST_SECONDS = 20.0
"""What has not been predicted by then is not told."""

KEPT_SECONDS = 10.0
"""So long an answer is good for all who ask."""

MOST_OPERATORS = 300
"""Larger plans are not simulated while somebody waits."""


class Plane:
    """Predicts where strategies lie, for one who asks at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._known_until = 0.0

    def predicted(self) -> dict[str, Any]:
        """The points of all strategies, those that have none, and when it was measured."""
        with self._lock:
            if time.monotonic() >= self._known_until:
                self._known = self._predict()
                self._known_until = time.monotonic() + KEPT_SECONDS
            return self._known

    def _predict(self) -> dict[str, Any]:
        measured, present = self._engine.statistics(), self._engine.settings.strategy
        strategies = sorted(driving_spark(), key=lambda name: name != present)
        count = len(measured["operators"])
        if count > MOST_OPERATORS:
            raise StateError(
                f"{count:,} operators are too many to predict while you wait; `millpond run "
                "--statistics FILE` and `millpond simulate --from-statistics FILE` take their time"
            )
        asked = {
            "measured": measured,
            "strategies": strategies,
            "budget_bytes": self._engine.settings.budget_bytes,
            "blocks": BLOCKS,
        }
        when = time.time()
        found = [json.loads(line) for line in _lines(json.dumps(asked))]
        told = {each["strategy"] for each in found}
        return {
            "time": when,
            "strategies": [each for each in found if "reason" not in each],
            "refused": [each for each in found if "reason" in each]
            + [
                {"strategy": name, "reason": "the prediction took too long"}
                for name in strategies
                if name not in told
            ],
        }


def _lines(asked: str) -> list[str]:
    """What the other process answers, as far as it comes in time."""
    command = [sys.executable, "-m", predicting.__name__]
    surroundings = os.environ | {
        "PYTHONPATH": os.pathsep.join(each or str(Path.cwd()) for each in sys.path),
        "OMP_NUM_THREADS": "1",
    }
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=surroundings,
    ) as process:
        try:
            answer, trouble = process.communicate(asked, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            answer, trouble = process.communicate()
        else:
            if process.returncode:
                last = (trouble.strip().splitlines() or [f"status {process.returncode}"])[-1]
                raise StateError(f"the strategies could not be predicted: {last}")
    whole, _, _ = answer.rpartition("\n")
    return whole.splitlines()
