"""A thousand consecutive steps of a grouped aggregate and a join: flat time, flat memory.

    python -m benchmarks.long_run [--quick] [--out DIR] [--rows N]

Two steady streams; windows are full before anything is measured. The ratios compare the last tenth
of the steps with the first tenth after warm-up; they should be about one, whatever the age of the
streams. Memory is looked at between steps, the JVM's heap after a collection.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from benchmarks.memory import driver_mebibytes, heap_mebibytes, resident_mebibytes
from benchmarks.reporting import Report, options, progress
from benchmarks.streams import Stream
from millpond import Engine
from millpond.settings import Settings
from millpond.spark.session import create_session

GOAL = 1.2
WINDOW_PAGES = 10
LOOKS = 20
STREAMS = (Stream("L", 1_000, 4), Stream("R", 1_000, 5))


@dataclass(frozen=True)
class Look:
    """Memory after some step."""

    step: int
    driver: float
    heap: float
    resident: float
    queues: float


@dataclass
class Course:
    """What was seen on the way."""

    step_seconds: list[float] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)

    def ends(self) -> tuple[float, float]:
        """The median milliseconds of the first and of the last tenth."""
        tenth = max(1, len(self.step_seconds) // 10)
        first, last = self.step_seconds[:tenth], self.step_seconds[-tenth:]
        return 1000 * statistics.median(first), 1000 * statistics.median(last)

    def memory(self, name: str) -> tuple[float, float]:
        """The median mebibytes of the first and of the last few looks."""
        values = [getattr(look, name) for look in self.looks]
        few = max(1, len(values) // 5)
        return statistics.median(values[:few]), statistics.median(values[-few:])


def script(page_rows: int) -> str:
    """Two windows of ten pages each, an aggregate over one and the join of both."""
    microseconds = WINDOW_PAGES * page_rows * 1_000_000 // STREAMS[0].tuples_per_second
    window = f"[RANGE {microseconds} MICROSECONDS]"
    declared = " ".join(stream.declaration for stream in STREAMS)
    return f"""{declared}
        CREATE QUERY groups AS
          SELECT key, count(*) AS n, max(value) AS largest FROM L {window} GROUP BY key;
        CREATE QUERY pairs AS
          SELECT L.key, L.value, R.value AS other FROM L {window}, R {window}
          WHERE L.key = R.key AND L.value > 0.9 AND R.value > 0.9;"""


def run(
    steps: int, warm: int, page_rows: int, settings: Settings, doing: Callable[[str], None]
) -> Course:
    """Feeds one page of each stream a step."""
    course, spark = Course(), create_session(settings)
    with Engine(settings, spark, keep_results=False) as engine:
        engine.execute(script(page_rows))
        pages = zip(*(stream.pages(page_rows) for stream in STREAMS), strict=True)
        for step, tables in zip(range(-warm, steps), pages, strict=False):
            doing(f"step {step + 1:,} of {steps:,}" if step >= 0 else "warming up")
            seconds = step_seconds(engine, tables)
            if step >= 0:
                course.step_seconds.append(seconds)
            if step >= 0 and step % max(1, steps // LOOKS) == 0:
                course.looks.append(look(step, engine, spark))
        course.looks.append(look(steps, engine, spark))
    return course


def step_seconds(engine: Engine, tables: Iterator[pa.Table] | tuple[pa.Table, ...]) -> float:
    began = time.perf_counter()
    for stream, table in zip(STREAMS, tables, strict=True):
        engine.push(stream.name, table)
    engine.run_until_idle()
    return time.perf_counter() - began


def look(step: int, engine: Engine, spark: SparkSession) -> Look:
    """Memory now."""
    heap = heap_mebibytes(spark)
    queues = engine.runtime.queue_bytes / 2**20
    return Look(step, driver_mebibytes(), heap, resident_mebibytes(), queues)


MEASURES = {
    "driver": ("driver resident set", "MiB"),
    "heap": ("heap of the JVM (driver and executors) after collection", "MiB"),
    "resident": ("resident set of driver, JVM and workers", "MiB"),
    "queues": ("queues", "MiB"),
}


def tell(course: Course, page_rows: int, report: Report) -> None:
    """One line a measure."""
    first, last = course.ends()
    ordered = sorted(course.step_seconds)
    report.ratio(
        "step time",
        last / first,
        GOAL,
        at_most=True,
        steps=len(ordered),
        page_rows=page_rows,
        unit="ms",
        millpond={"first tenth": first, "last tenth": last},
        ninetieth_percentile=1000 * ordered[int(0.9 * (len(ordered) - 1))],
    )
    for name, (words, unit) in MEASURES.items():
        first, last = course.memory(name)
        found = {"first looks": first, "last looks": last}
        goal = None if name == "resident" else GOAL
        report.ratio(words, last / max(first, 1e-9), goal, at_most=True, unit=unit, millpond=found)


def plot(course: Course) -> Callable[[Figure], None]:
    """Step times above, memory below."""

    def draw(figure: Figure) -> None:
        times, memory = figure.subplots(2, 1, sharex=True)
        times.plot([1000 * seconds for seconds in course.step_seconds], ".", markersize=3)
        times.set_ylabel("milliseconds a step")
        times.set_ylim(bottom=0)
        steps = [each.step for each in course.looks]
        for name, (words, _) in MEASURES.items():
            memory.plot(steps, [getattr(each, name) for each in course.looks], label=words)
        memory.set_ylabel("MiB")
        memory.set_ylim(bottom=0)
        memory.set_xlabel("step")
        memory.legend(fontsize=7)

    return draw


def parsed() -> argparse.Namespace:
    parser = options(__doc__ or "", "tuples of each stream in a step")
    parser.add_argument("--steps", type=int, help="how many steps are measured")
    parser.add_argument("--warm", type=int, help="how many steps come before them")
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    return parser.parse_args()


def main() -> None:
    chosen = parsed()
    steps = chosen.steps or (150 if chosen.quick else 1_000)
    warm = max(chosen.warm or (60 if chosen.quick else 150), WINDOW_PAGES + 2)
    page_rows = chosen.rows or 2_000
    report = Report("long_run", chosen.out)
    settings = Settings(spark_master=chosen.master)
    with progress(steps + warm) as doing:
        course = run(steps, warm, page_rows, settings, doing)
    tell(course, page_rows, report)
    report.draw("course", plot(course))
    report.close()


if __name__ == "__main__":
    main()
