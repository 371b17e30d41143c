"""An hour of `millpond serve --store` under bursts: memory, files and descriptors stay flat.

    python -m benchmarks.soak [--minutes 60] [--quick] [--out DIR] [--rows TUPLES_A_SECOND]

A source by the wall clock sends in bursts, a client pushes on time and late, asks, reads a relation
and registers and drops queries; ten queries keep results, states, windows and late rows. Every few
seconds are looked at: the resident sets of the server's Python processes (the JVM's is told apart),
the files and bytes of the store, and the open descriptors. A measure is flat if a straight line
through the second half of the looks grows by no more over that half than a share of its median; the
first half is for caches, kept results and windows to fill up.
"""

from __future__ import annotations

import argparse
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx
import numpy as np
import psutil
from matplotlib.figure import Figure

from benchmarks.reporting import Report, note, options, progress

MEBIBYTE = 2**20
BUDGET = "64 MB"
RELATION_ROWS = 100
MEASURES = {
    "python": ("memory of the Python processes", "MiB", 0.05, 8.0),
    "files": ("files of the store", "files", 0.10, 40.0),
    "stored": ("bytes of the store", "MiB", 0.10, 8.0),
    "descriptors": ("open descriptors", "descriptors", 0.05, 4.0),
}
"""By measure: words, unit, and how far it may grow: a share of its median, or so much at all."""

SCRIPT = """
SET budget = '{budget}';
SET pace = 'wall';
CREATE STREAM B (key INT, value DOUBLE, note STRING, ts TIMESTAMP) TIMESTAMP BY ts DELAY 1 SECOND
  FROM burst('onoff', on_arrivals_per_second = {rate}, on_seconds = 2, off_seconds = 6,
             off_arrivals_per_second = {calm}, keys = 500, seed = 7);
CREATE STREAM P (key INT, value DOUBLE, ts BIGINT) TIMESTAMP BY ts DELAY 2;
CREATE RELATION R (key INT PRIMARY KEY, name STRING);
CREATE QUERY everything AS SELECT key, value, note FROM B;
CREATE QUERY large AS SELECT key, value FROM B WHERE value > 0.5;
CREATE QUERY counted AS SELECT key, count(*) AS n, max(value) AS top FROM B [RANGE 20 SECONDS]
  GROUP BY key;
CREATE QUERY last_rows AS SELECT key, sum(value) AS s FROM B [PARTITION BY key ROWS 5] GROUP BY key;
CREATE QUERY distinct_keys AS SELECT DISTINCT key FROM B [RANGE 5 SECONDS];
CREATE QUERY pairs AS SELECT B.key, B.value, C.value AS other
  FROM B [RANGE 2 SECONDS], B C [RANGE 2 SECONDS]
  WHERE B.key = C.key AND B.value > 0.9 AND C.value < 0.1;
CREATE QUERY sampled AS SELECT count(*) AS n FROM B SAMPLE(10) [RANGE 10 SECONDS];
CREATE QUERY named AS SELECT P.key, R.name, P.value FROM P [NOW], R WHERE P.key = R.key;
CREATE QUERY pushed AS SELECT key, count(*) AS n FROM P [ROWS 1000] GROUP BY key;
CREATE QUERY every AS ISTREAM(SELECT key, avg(value) AS mean FROM P [RANGE 100] GROUP BY key);
"""


@dataclass(frozen=True)
class Look:
    """What the server holds at some second."""

    second: float
    python: float
    jvm: float
    files: int
    stored: float
    descriptors: int


@dataclass
class Course:
    """What was seen on the way."""

    looks: list[Look] = field(default_factory=list)
    pushed: int = 0
    requests: int = 0

    def second_half(self) -> list[Look]:
        """The looks that are judged."""
        middle = (self.looks[0].second + self.looks[-1].second) / 2
        return [look for look in self.looks if look.second >= middle]

    def growth(self, measure: str) -> tuple[float, float]:
        """By how much a line through the second half grows over it, and its median."""
        half = self.second_half()
        seconds = np.array([look.second for look in half])
        values = np.array([getattr(look, measure) for look in half], dtype=float)
        slope = float(np.polyfit(seconds - seconds[0], values, 1)[0]) if len(half) > 1 else 0.0
        return slope * float(seconds[-1] - seconds[0]), float(np.median(values))


def main() -> None:
    chosen = parsed()
    seconds = 60.0 * (chosen.minutes or (3 if chosen.quick else 60))
    report = Report("soak", chosen.out)
    with tempfile.TemporaryDirectory(prefix="millpond-soak-") as directory:
        course = run(Path(directory), seconds, chosen.rows or 4_000)
    tell(course, report)
    report.draw("course", plot(course))
    report.close()
    sys.exit(0 if all(line["met"] for line in report.lines) else 1)


def parsed() -> argparse.Namespace:
    parser = options(__doc__ or "", "tuples a second in a burst")
    parser.add_argument("--minutes", type=float, help="how long it goes on")
    return parser.parse_args()


def run(directory: Path, seconds: float, rate: int) -> Course:
    """Serves, feeds and looks for some seconds."""
    script, store = directory / "soak.cql", directory / "store"
    text = SCRIPT.format(budget=BUDGET, rate=rate, calm=max(1, rate // 40))
    script.write_text(text, encoding="utf-8")
    course, every = Course(), min(5.0, max(1.0, seconds / 200))
    with serving(script, store) as (url, process), httpx.Client(base_url=url, timeout=600) as http:
        began = time.monotonic()
        with progress(int(seconds / every)) as doing:
            for turn in itertools.count():
                passed = time.monotonic() - began
                if passed >= seconds:
                    break
                course.looks.append(look(passed, process, store))
                doing(f"{course.looks[-1].python:,.0f} MiB, {course.looks[-1].files} files")
                use(http, course, turn)
                time.sleep(max(0.0, (turn + 1) * every - (time.monotonic() - began)))
                if process.poll() is not None:
                    raise SystemExit(f"the server ended with {process.returncode}")
    return course


@contextmanager
def serving(script: Path, store: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server of its own, until the block ends."""
    port = _free_port()
    command = [sys.executable, "-m", "millpond", "serve", str(script), "--port", str(port)]
    process = subprocess.Popen([*command, "--store", str(store)], stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process)
        yield url, process
    finally:
        process.terminate()
        process.wait(120)


def use(http: httpx.Client, course: Course, turn: int) -> None:
    """What a client does in one turn: pushes, asks, reads, registers and drops."""
    now = 10 * turn
    rows = [{"key": n % 100, "value": n / 7, "ts": now + n // 50} for n in range(500)]
    late = [{"key": n, "value": 0.0, "ts": now - 50} for n in range(20 if turn else 0)]
    fresh = f"CREATE QUERY passing_{turn} AS SELECT key FROM P [ROWS 10] WHERE value > {turn % 9}"
    calls: list[Callable[[], httpx.Response]] = [
        lambda: http.post("/api/streams/P/tuples", json=rows),
        lambda: http.post("/api/streams/P/tuples", json=late or rows[:1]),
        lambda: http.post("/api/execute", json={"text": fresh}),
        lambda: http.post("/api/ask", json={"text": "SELECT count(*) FROM P [ROWS 100]"}),
        lambda: http.get("/api/queries/counted/present"),
        lambda: http.get("/api/queries/large/results", params={"from": "oldest", "follow": False}),
        lambda: http.get("/api/streams/P/late"),
        lambda: http.get("/metrics"),
    ]
    if turn < RELATION_ROWS:
        named = [{"key": turn, "name": f"name {turn}"}]
        calls.append(lambda: http.post("/api/relations/R/rows", json=named))
    if turn:
        calls.append(lambda: http.delete(f"/api/queries/passing_{turn - 1}"))
    for call in calls:
        answer = call()
        if answer.status_code >= 400:
            raise SystemExit(f"{answer.request.method} {answer.request.url}: {answer.text[:500]}")
        course.requests += 1
    course.pushed += len(rows) + len(late)


def look(second: float, process: subprocess.Popen[bytes], store: Path) -> Look:
    """Memory, files and descriptors now."""
    python, jvm, descriptors = 0, 0, 0
    here = psutil.Process(process.pid)
    for each in [here, *here.children(recursive=True)]:
        try:
            size, is_java = each.memory_info().rss, "java" in each.name()
            descriptors += 0 if is_java else each.num_fds()
        except psutil.Error:
            continue
        jvm, python = jvm + size * is_java, python + size * (not is_java)
    files, stored = _stored(store)
    sizes = python / MEBIBYTE, jvm / MEBIBYTE
    return Look(second, *sizes, files, stored / MEBIBYTE, descriptors)


def _stored(store: Path) -> tuple[int, int]:
    """How many files a store has, and their bytes; some may go while one looks."""
    files, size = 0, 0
    for directory, _, names in os.walk(store):
        for name in names:
            try:
                size += (Path(directory) / name).stat().st_size
            except FileNotFoundError:
                continue
            files += 1
    return files, size


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1_200):
        if process.poll() is not None:
            break
        try:
            if httpx.get(url + "/ready", timeout=60).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise SystemExit("the server never came up")


def tell(course: Course, report: Report) -> None:
    """One line a measure."""
    about = {
        "seconds": course.looks[-1].second,
        "looks": len(course.looks),
        "requests": course.requests,
    }
    for measure, (words, unit, share, least) in MEASURES.items():
        growth, median = course.growth(measure)
        allowed = max(share * median, least)
        first, last = getattr(course.looks[0], measure), getattr(course.looks[-1], measure)
        report.value(
            f"{words}: growth over the second half",
            growth,
            unit,
            **about,
            goal=allowed,
            goal_is="at most",
            met=bool(growth <= allowed),
            median=median,
            first=first,
            last=last,
        )
    note(f"the JVM at the end: {course.looks[-1].jvm:,.0f} MiB")


def plot(course: Course) -> Callable[[Figure], None]:
    """One picture a measure, each over time."""

    def draw(figure: Figure) -> None:
        seconds = [each.second / 60 for each in course.looks]
        for axes, (measure, (words, unit, *_)) in zip(
            figure.subplots(len(MEASURES), 1, sharex=True), MEASURES.items(), strict=True
        ):
            axes.plot(seconds, [asdict(each)[measure] for each in course.looks])
            axes.set_ylim(bottom=0)
            axes.set_title(words, fontsize=8)
            axes.set_ylabel(unit, fontsize=7)
        axes.set_xlabel("minutes")

    return draw


if __name__ == "__main__":
    main()
