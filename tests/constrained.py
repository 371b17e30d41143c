"""Random streams that adhere to constraints, under random ways: answers are those without them.
And streams whose constraints come, grow and go: answers are those of what was not put aside.

    python -m tests.constrained [--n 50] [--seed 1000]

``make fuzz`` runs it. A case that fails is named by its seed.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
from unittest import mock

from rich.console import Console

from tests import changing
from tests import test_clusters as clusters
from tests import test_many_one_joins as many_one
from tests import test_occurrences as occurrences
from tests.adhering import latest_partner
from tests.execution.in_process import InProcess

STRATEGIES = ("fifo", "chain", "round-robin", "greedy")


def checked(seed):
    """Whether a case's answers are those without its constraints, and what it was."""
    rng = random.Random(seed)
    made = rng.choice((_of_occurrences, _of_clusters, _of_changes, _of_many_one))
    plain, constrained, told = made(rng, seed)
    settings = {"strategy": rng.choice(STRATEGIES), "linear": rng.choice(("fused", "apart"))}
    with _way(rng, settings) as more:
        return constrained(**settings, **more) == plain(), f"{told}, {settings | more}"


@contextlib.contextmanager
def _way(rng, settings):
    """A place of steps, how often all rows are looked at, and a store that is begun anew."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch(clusters.SWEEP, rng.choice((1, 3, 10))))
        stack.enter_context(mock.patch("millpond.storage.state.COMPACT_ROWS", rng.choice((0, 4))))
        if rng.random() < 0.5:
            path = "millpond.spark.executor.SparkExecutor"
            stack.enter_context(mock.patch(path, InProcess))
            settings |= {"driver_rows": 0, "place_by": "rows"}
        is_kept = rng.random() < 0.5
        directory = stack.enter_context(tempfile.TemporaryDirectory()) if is_kept else None
        yield {"store": f"{directory}/store", "restarts": True} if is_kept else {}


def _of_occurrences(rng, seed):
    within, doubles = rng.randrange(1, 7), rng.randrange(2)
    rows = occurrences.adhering(random.Random(seed), 60, within, doubles)
    came = {name: [(r[1:3], r[0]) for stream, r in rows if stream == name] for name in "OF"}
    in_time = latest_partner(came["F"], came["O"])
    unique = ("UNIQUE (a, b) WITHIN 1 ROW", "UNIQUE (a, b) WITHIN 1")
    own = rng.choice(("", *unique) if doubles else ("", *unique, "UNIQUE (a, b)"))
    far = rng.choice((f"{within} ROWS", f"{within + 2} ROWS", str(in_time), str(in_time + 1)))
    script = occurrences.declared(own, f"REFERENCES O (a, b) WITHIN {far}")
    return (
        lambda: occurrences.answers(occurrences.declared("", ""), 0, rows=rows),
        lambda **way: occurrences.answers(script, seed, rows=rows, **way),
        script,
    )


def _of_clusters(rng, seed):
    within = rng.randrange(6)
    clause = f"CLUSTERED BY (id) WITHIN {within} ROWS"
    given = {"count": 40, "within": within, "data": seed}
    return (
        lambda: clusters.answers("", 0, **given)[0],
        lambda **way: clusters.answers(clause, seed, **given, **way)[0],
        clause,
    )


def _of_many_one(rng, seed):
    came, said = many_one.random_tuples(rng, 20)
    return (
        lambda: many_one.answers({}, came)[0],
        lambda **way: many_one.answers(said, came, 1 + seed, **way)[0],
        f"{said}",
    )


def _of_changes(rng, seed):
    rows, queries, aside = changing.rows_of(rng, 60), changing.chosen(rng), set()

    def constrained(**way):
        found, put_aside, _ = changing.answers(seed, rows, queries, changes=True, **way)
        aside.update(put_aside)
        return found

    def plain():
        left = [each for each in rows if each[1][2] not in aside]
        return changing.answers(seed, left, queries, changes=False)[0]

    return plain, constrained, f"constraints of {', '.join(queries)} that change"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1000)
    given = parser.parse_args()
    failed, console = [], Console(highlight=False)
    for seed in range(given.seed, given.seed + given.n):
        is_right, told = checked(seed)
        if not is_right:
            console.print(f"seed {seed} failed: {told}")
            failed.append(seed)
    console.print(f"{given.n} cases of constraints, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
