"""Kills residents at random moments, and breaks their connections.

``python -m tests.resident_kills --n 200``: queries of every kind run on one to four residents, that
are killed (``kill -9``) and talk with the driver through a proxy that delays, cuts and goes silent.
What the queries put out must be what the driver alone puts out: nothing lost, nothing twice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from unittest import mock

from millpond.execution.residents import pool
from millpond.execution.residents.encryption import made_certificate
from tests.execution.faulty_connections import CUT, DROPPED, Proxy
from tests.execution.test_executor import QUERIES, answers
from tests.execution.with_residents import crew, executor

SILENCE_SECONDS = 3.0
"""Who has not been heard for so long is gone: so long a run stands where a connection is silent."""

LATEST_SECONDS = 0.05
"""So long after a job has begun somebody is killed, at most."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    kills: int
    cuts: int
    drops: int
    lost: int
    twice: int
    differing: tuple[str, ...]
    """The queries that put out something else, or in another order."""

    @property
    def is_good(self):
        """Whether nothing has changed."""
        return not (self.lost or self.twice or self.differing)


@cache
def expected(*names):
    """What the driver alone puts out for some queries."""
    return answers(10**9, queries={name: QUERIES[name] for name in names})[0]


def compared(found, kills=0, cuts=0, drops=0):
    """What is other than it should be."""
    lost = twice = 0
    known = expected(*found)
    for query, rows in known.items():
        should, has = (Counter(map(repr, each)) for each in (rows, found[query]))
        lost, twice = lost + (should - has).total(), twice + (has - should).total()
    differing = tuple(query for query, rows in known.items() if found[query] != rows)
    return Outcome(kills, cuts, drops, lost, twice, differing)


class Killer:
    """Kills residents: about so many, each a moment after a job has begun."""

    def __init__(self, chance, kills, share):
        self._chance, self._left, self._share = chance, kills, share
        self.crew, self.kills = None, 0
        self._timers = []

    def strike(self):
        """A job begins."""
        if self._left > 0 and self._chance.random() < self._share:
            self._left -= 1
            moment, which = self._chance.random() * LATEST_SECONDS, self._chance.randrange(4)
            self._timers.append(threading.Timer(moment, self._kill, (which,)))
            self._timers[-1].start()

    def _kill(self, which):
        pids = self.crew.pids
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[which % len(pids)], signal.SIGKILL)
                self.kills += 1

    def join(self):
        """Waits for those that are to come."""
        for timer in self._timers:
            timer.join()


def trial(seed, kills=10, cuts=2, drops=1, queries=QUERIES):
    """Runs queries once under faults."""
    chance = random.Random(seed)
    count, tasks = chance.randint(1, 4), chance.randint(1, 5)
    certificate = made_certificate() if chance.random() < 0.2 else None
    proxy, killer = (
        Proxy(seed, cuts=cuts, drops=drops),
        Killer(chance, kills, kills / len(queries) / 5),
    )
    with contextlib.ExitStack() as opened:
        opened.callback(proxy.close)
        # what is killed here is not the task's fault, however often it is the same one
        opened.enter_context(mock.patch.object(pool, "MOST_LOSSES", sys.maxsize))
        opened.enter_context(mock.patch.object(pool, "SILENCE_SECONDS", SILENCE_SECONDS))
        killer.crew = opened.enter_context(crew(count, proxy.way, certificate))
        way = executor(killer.crew, killer.strike)
        opened.enter_context(mock.patch("millpond.spark.executor.SparkExecutor", way))
        is_stored = chance.random() < 0.5
        store = opened.enter_context(tempfile.TemporaryDirectory()) if is_stored else None
        found = answers(0, store, queries, tasks)[0]
        killer.join()
    return compared(found, killer.kills, proxy.done[CUT], proxy.done[DROPPED])


def main(given=None):
    """Kills until there were ``--n`` kills; how many runs went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.resident_kills", description=__doc__)
    parser.add_argument("--n", type=int, default=50, help="how many kills")
    parser.add_argument("--each", type=int, default=20, help="how many kills of one run, about")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    chosen = parser.parse_args(given)
    say, done, bad, seed = partial(print, flush=True), 0, 0, chosen.seed
    while done < chosen.n:
        outcome = trial(seed, min(chosen.each, chosen.n - done))
        say(f"seed {seed}: {outcome}")
        done, bad, seed = done + outcome.kills, bad + (not outcome.is_good), seed + 1
    say(f"{done} kills, {bad} runs went wrong")
    return bad


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
