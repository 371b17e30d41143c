"""Kills engines on a store that an S3 server has: ``python -m tests.object_kills --n 50``.

A process pushes numbered tuples, each with a key, and says which are acknowledged; it is killed at
a random moment and started again until all are. Nothing that was said may be lost, the query must
have each tuple once, and so must the file of its sink.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from millpond import Engine
from tests.crashing import validate_open
from tests.s3_server import S3Server, serving

TUPLES = 30
OPTIONS = {"driver_rows": 10**9, "place_by": "rows"}
STATEMENTS = (
    "CREATE STREAM S (id BIGINT, k INT) TIMESTAMP BY id",
    "CREATE QUERY ids AS SELECT id FROM S INTO csv('{out}')",
    "CREATE QUERY counted AS SELECT k, count(*) AS n FROM S [RANGE 6] GROUP BY k",
)


def work(address: str, out: str) -> None:
    """What the killed process does."""
    with Engine(OPTIONS, store=address) as engine:
        for statement in STATEMENTS:
            engine.execute(statement.format(out=out))
        print("begun", flush=True)  # noqa: T201
        for n in range(TUPLES):
            engine.push("S", [(n, n % 3)], key=f"tuple {n}")
            engine.advance("S", n)
            engine.run_until_idle()
            if n % 10 == 9:
                engine.compact_log()
            print(n, flush=True)  # noqa: T201
        engine.finish()
    print("done", flush=True)  # noqa: T201


class Trial:
    """One store, and the processes that work on it one after the other."""

    def __init__(self, server: S3Server, folder: Path, seed: int) -> None:
        self._server, self._out = server, folder / "ids.csv"
        self._address, self._rng = server.new_address(), random.Random(seed)
        self._said = -1

    def run(self, dies_after: int | None) -> bool:
        """Lets one work, and kills it once it has said so many lines; whether it was killed."""
        command = [sys.executable, "-m", "tests.object_kills", "--work", self._address]
        with subprocess.Popen(
            [*command, str(self._out)],
            stdout=subprocess.PIPE,
            env={**os.environ, **self._server.environment},
            text=True,
        ) as process:
            for count, line in enumerate(process.stdout):
                if line.strip().isdigit():
                    self._said = max(self._said, int(line))
                if count == dies_after:
                    self._kill(process)
                    return True
        assert process.returncode == 0, "the process has failed"
        return False

    def _kill(self, process: subprocess.Popen[str]) -> None:
        """Kills it in the midst of what it does next, with a request under way now and then."""
        if self._rng.random() < 0.5:
            self._server.pause()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self._server.go_on()

    def check(self, is_over: bool) -> None:
        """Nothing is lost, and nothing there twice."""
        with Engine(OPTIONS, store=self._address) as engine:
            engine.validate()
            engine.run_until_idle()
            found = Counter(engine.results("ids")["id"].to_pylist())
            validate_open(engine)
        expected = set(range(TUPLES if is_over else self._said + 1))
        assert expected <= set(found), f"lost: {sorted(expected - set(found))}"
        assert max(found.values(), default=1) == 1, "twice"
        if is_over:
            with self._out.open(newline="") as lines:
                written = Counter(int(row["id"]) for row in csv.DictReader(lines))
            assert written == Counter(range(TUPLES)), "the sink has other tuples"

    def moment(self) -> int:
        """After how many lines to kill next."""
        return self._rng.randrange(0, TUPLES // 2)


def trial(server: S3Server, folder: Path, seed: int, kills: int) -> int:
    """Kills one store's processes so often at most, and looks; how often it was."""
    attempt, done = Trial(server, folder, seed), 0
    while done < kills and attempt.run(attempt.moment()):
        done += 1
        if attempt._said >= 0 and attempt._rng.random() < 0.3:
            attempt.check(is_over=False)
    attempt.run(None)
    attempt.check(is_over=True)
    return done


def main(given=None):
    """Kills until there were ``--n`` kills."""
    parser = argparse.ArgumentParser(prog="python -m tests.object_kills", description=__doc__)
    parser.add_argument("--n", type=int, default=50, help="how many kills")
    parser.add_argument("--each", type=int, default=8, help="how many kills of one store, at most")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.work:
        return work(*chosen.work)
    done, seed = 0, chosen.seed
    with serving() as server:
        while done < chosen.n:
            with tempfile.TemporaryDirectory(prefix="millpond-kills-") as folder:
                done += trial(server, Path(folder), seed, min(chosen.each, chosen.n - done))
            print(f"seed {seed}: {done} kills", flush=True)  # noqa: T201
            seed += 1
    print(f"{done} kills, nothing lost, nothing twice", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
