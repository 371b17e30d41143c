"""Cases whose streams break what they promise: answers are those of what was not put aside.

Some of the constraints that a stream adheres to are told narrower than they are, so that tuples
break them; these go aside, or have k grow.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace

from millpond.storage import state
from tests.adhering import adhering
from tests.cases import Push
from tests.history import ticks

MOST_CLAUSES = 3


def breaking(case, seed):
    """The case with some constraints that its streams may break; all that can be freed is freed in
    every step."""
    state.COMPACT_ROWS = 0
    rng = random.Random(seed)
    streams = [
        replace(stream, constraints=tuple(_narrowed(rng, stream.constraints)))
        for stream in adhering(case).streams
    ]
    return replace(case, streams=tuple(streams))


def _narrowed(rng, clauses):
    for clause in rng.sample(clauses, min(len(clauses), rng.randrange(MOST_CLAUSES + 1))):
        within = int(re.search(r"WITHIN (\d+)", clause)[1])
        told = re.sub(r"WITHIN \d+", f"WITHIN {rng.randrange(within + 1)}", clause)
        policy = rng.choice(("COUNT", "WIDEN"))
        yield told if "ON VIOLATION" in told else f"{told} ON VIOLATION {policy}"


@dataclass(frozen=True)
class Aside:
    """A tuple arrives that is put aside: of it nothing counts but the time."""

    target: str
    row: tuple

    def happen(self, history):
        """What it does."""
        (stream,) = (s for s in history.case.streams if s.name == self.target)
        ts = ticks(self.row[0], history.case.tick_microseconds)
        if ts > history.promised[self.target]:
            history.reached[self.target] = max(history.reached[self.target], ts)
            history.advance(self.target, history.reached[self.target] - stream.delay - 1)


def without_aside(case, aside):
    """The case as it is without the tuples of streams that were put aside; None: it is not known
    which they are, as others are the same."""
    came = {stream.name: Counter() for stream in case.streams}
    for action in case.schedule:
        if isinstance(action, Push) and action.target in came:
            came[action.target].update(action.rows)
    left = {name: Counter(rows) for name, rows in aside.items()}
    if any(came[name][row] != n for name, rows in left.items() for row, n in rows.items()):
        return None
    return case.with_schedule(done for action in case.schedule for done in _split(action, left))


def _split(action, aside):
    """A push row by row, if something of it was put aside."""
    if not isinstance(action, Push) or not any(map(aside.get(action.target, {}).get, action.rows)):
        return [action]
    gone = aside[action.target]
    return [
        Aside(action.target, row) if gone[row] else Push(action.target, (row,))
        for row in action.rows
    ]
