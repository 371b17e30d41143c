"""Kills `millpond run --store` again and again: ``python -m tests.kills --n 50``.

The same command is started until it ends. Its sinks must then hold what an undisturbed run writes:
no id lost, none twice, text files byte for byte.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.crashing import validate

ROWS = 480
PAGE_ROWS = 60
MOST_SECONDS = 1_800
"""How long one process may take."""

SCRIPT = """\
CREATE STREAM C (id BIGINT, ts BIGINT, k INT, v INT) TIMESTAMP BY ts FROM csv('{data}/c.csv');
CREATE STREAM J (id BIGINT, ts BIGINT, k INT, v INT) TIMESTAMP BY ts FROM json('{data}/j.jsonl');
CREATE STREAM P (id BIGINT, ts BIGINT, k INT, v INT) TIMESTAMP BY ts
  FROM parquet('{data}/p.parquet');
CREATE RELATION R (k INT, name STRING) FROM csv('{data}/r.csv');
INSERT INTO R VALUES (3, 'late');
INSERT INTO R VALUES (3, 'late');
CREATE QUERY filtered AS SELECT id, v FROM C WHERE v % 3 = 0 INTO csv('{out}/filtered.csv');
CREATE QUERY came AS ISTREAM(SELECT id, k FROM P [RANGE 30]) INTO csv('{out}/came.csv');
CREATE QUERY counted AS SELECT k, count(*) AS n, sum(v) AS s FROM J [RANGE 50] GROUP BY k
  INTO json('{out}/counted.json');
CREATE QUERY recent AS SELECT id FROM P [ROWS 5] INTO json('{out}/recent.json');
CREATE QUERY joined AS
  ISTREAM(SELECT C.id AS c, J.id AS j FROM C [RANGE 20], J [RANGE 20] WHERE C.k = J.k)
  INTO parquet('{out}/joined');
CREATE QUERY named AS SELECT C.id, R.name FROM C [NOW], R WHERE C.k = R.k
  INTO parquet('{out}/named');
"""


@dataclass(frozen=True)
class Outcome:
    """What became of one script that was killed so often."""

    kills: int
    lost: int
    twice: int
    differing: tuple[str, ...]
    """The sinks that are not as an undisturbed run writes them."""

    @property
    def is_good(self):
        """Whether the kills have changed nothing."""
        return not (self.lost or self.twice or self.differing)


class Trial:
    """One script over files of its own, run undisturbed and killed."""

    def __init__(self, directory, seed, options=()):
        self._directory, self._rng = Path(directory), random.Random(seed)
        self._options = [f"page_rows={PAGE_ROWS}", "spark_master=local[2]", *options]
        self._processes = []
        self.log_bytes = 0
        self._make_data()

    def _make_data(self):
        data = self._directory / "data"
        data.mkdir(parents=True)
        tables = {name: self._tuples() for name in "cjp"}
        columns = ["id", "ts", "k", "v"]
        with (data / "c.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns, *tables["c"]])
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in tables["j"])
        (data / "j.jsonl").write_text("".join(line + "\n" for line in lines))
        pq.write_table(
            pa.table(dict(zip(columns, map(list, zip(*tables["p"], strict=True)), strict=True))),
            data / "p.parquet",
        )
        (data / "r.csv").write_text("k,name\n1,one\n2,two\n2,zwei\n")
        self._ids = {
            "came": [row[0] for row in tables["p"]],
            "filtered": [row[0] for row in tables["c"] if row[3] % 3 == 0],
        }

    def _tuples(self):
        rng = self._rng
        return [(n, n // 3, rng.randrange(8), rng.randrange(100)) for n in range(ROWS)]

    # -- processes -------------------------------------------------------------------------

    def _start(self, name):
        """Starts the command whose files carry a name."""
        script, out = self._directory / f"{name}.cql", self._directory / name
        script.write_text(SCRIPT.format(data=self._directory / "data", out=out))
        command = [sys.executable, "-m", "millpond", "run", str(script), "--store"]
        command += [str(self._directory / f"{name}.store"), "--format", "jsonl"]
        command += [word for option in self._options for word in ("--set", option)]
        output = (self._directory / f"{name}.err").open("ab")
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=output, start_new_session=True
        )
        self._processes.append(process)
        return process

    def _end(self, process):
        """Kills what is left of a process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _log(self, name):
        file = self._directory / f"{name}.store" / "commits.log"
        return file.stat().st_size if file.exists() else 0

    def run(self, name):
        """Runs the command to its end."""
        process = self._start(name)
        try:
            code = process.wait(MOST_SECONDS)
        finally:
            self._end(process)
        self.log_bytes = self._log(name)
        assert code == 0, (self._directory / f"{name}.err").read_text()[-4_000:]

    def run_and_kill(self, name, moment):
        """Runs the command until ``moment(started)`` says so; whether it was killed."""
        process, began, before = self._start(name), time.monotonic(), self._log(name)
        try:
            while process.poll() is None:
                if moment(time.monotonic() - began, self._log(name) - before):
                    process.kill()  # the JVM and its workers may still be at work for a while
                    process.wait()
                    return True
                time.sleep(0.005)
                assert time.monotonic() - began < MOST_SECONDS, "the command does not end"
        finally:
            if self._rng.random() < 0.5 or process.poll() is None:
                self._end(process)
        assert process.returncode == 0, (self._directory / f"{name}.err").read_text()[-4_000:]
        return False

    def close(self):
        """Ends whatever is left."""
        for process in self._processes:
            self._end(process)

    def moment(self, name, kills):
        """When to kill next of so often: after the log has grown by some bytes, or at the start."""
        if self._rng.random() < 0.15:
            seconds = self._rng.uniform(0.5, 5)
            return lambda passed, _: passed > seconds
        left = max(0.7 * self.log_bytes - self._log(name), 0.1 * self.log_bytes)
        bytes_ = self._rng.uniform(1, 2 * left / kills)
        return lambda _, grown: grown >= bytes_

    # -- what the sinks hold ---------------------------------------------------------------

    def outcome(self, name, kills):
        """Compares a killed run with the undisturbed one."""
        whole, killed = self._directory / "whole", self._directory / name
        differing = [
            file.name for file in sorted(whole.iterdir()) if not _same(file, killed / file.name)
        ]
        lost = twice = 0
        for query, expected in self._ids.items():
            found = Counter(int(row["id"]) for row in _rows(killed / f"{query}.csv"))
            lost += sum((Counter(expected) - found).values())
            twice += sum((found - Counter(expected)).values())
        validate(self._directory / f"{name}.store")
        return Outcome(kills, lost, twice, tuple(differing))


def _rows(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _same(expected, found):
    if expected.is_file():
        return found.is_file() and expected.read_bytes() == found.read_bytes()
    return _parquet_rows(expected) == _parquet_rows(found)


def _parquet_rows(directory):
    return [
        row
        for part in sorted(directory.glob("*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]


def trial(directory, seed, kills, options=()):
    """Runs a script undisturbed, then killed so often, and compares.

    A run that was quicker than who is to kill it is compared as well, and another one begun.
    """
    attempt, outcomes = Trial(directory, seed, options), []
    try:
        attempt.run("whole")
        while (left := kills - sum(each.kills for each in outcomes)) > 0:
            outcomes.append(_killed(attempt, f"killed{len(outcomes)}", left))
    finally:
        attempt.close()
    differing = tuple(name for each in outcomes for name in each.differing)
    lost, twice = (sum(getattr(each, what) for each in outcomes) for what in ("lost", "twice"))
    return Outcome(kills, lost, twice, differing)


def _killed(attempt, name, kills):
    """What becomes of one run that is killed so often, unless it ends before."""
    done = 0
    while done < kills and attempt.run_and_kill(name, attempt.moment(name, kills - done)):
        done += 1
    attempt.run(name)
    return attempt.outcome(name, done)


def main(given=None):
    """Kills until there were ``--n`` kills; how many trials went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--n", type=int, default=50, help="how many kills")
    parser.add_argument("--each", type=int, default=10, help="how many kills of one script, about")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    chosen = parser.parse_args(given)
    done, bad, seed = 0, 0, chosen.seed
    while done < chosen.n:
        with tempfile.TemporaryDirectory(prefix="millpond-kills-") as directory:
            options = [f"driver_rows={(50_000, 0)[seed % 2]}"]
            outcome = trial(
                Path(directory) / "trial", seed, min(chosen.each, chosen.n - done), options
            )
        print(f"seed {seed}, {options[0]}: {outcome}", flush=True)  # noqa: T201
        done, bad, seed = done + outcome.kills, bad + (not outcome.is_good), seed + 1
    print(f"{done} kills, {bad} trials went wrong", flush=True)  # noqa: T201
    return bad


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
