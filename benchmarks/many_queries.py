"""Many continuous queries at once: queries are rows of constants, so their number hardly matters.

    python -m benchmarks.many_queries [--quick] [--out DIR] [--rows TUPLES]

1 to 10,000 queries (``--quick``: 1,000) of one shape over the same tuples: alerts by equality and
by range, counts and maxima by key over three window lengths, joins with a relation, window joins,
a mix of 40 shapes; then queries that all match every tuple. Each against one query that puts out
what they put out together: about a row a tuple; the mix, which puts out streams and relations,
against two, and beside that against a projection of all tuples. Fifty counts by 50 Structured
Streaming queries and merged by hand in one foreachBatch. Last 10,000 alerts and 10,000 of the mix
at 10,000 tuples a second, by the wall clock. Seconds of one and of many are taken in one run, page
by page in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from benchmarks.memory import driver_mebibytes
from benchmarks.mix_of_shapes import KEYS, mixed, union_of_mix
from benchmarks.reporting import Report, options, progress
from benchmarks.streams import Stream, scratch_directory
from millpond import Engine
from millpond.settings import Settings
from millpond.spark.session import create_session

NUMBERS = (1, 10, 100, 1_000, 10_000)
JUDGED = 1_000
PAGE_ROWS = 10_000
PEER_QUERIES = 50
RATE = 10_000
LENGTHS = (1, 5, 10)
"""Seconds of the windows of several lengths."""

RELATION = "CREATE RELATION R (key INT PRIMARY KEY, name STRING);"

Text = Callable[[int, int], str]
"""The n-th of so many queries."""


def equality(i: int, of: int) -> str:
    """There are as many keys as queries, so each tuple matches one."""
    return f"SELECT ts, value FROM S WHERE key = {i}"


def ranges(i: int, of: int) -> str:
    """Each tuple matches about one of the queries: their limits are near the largest value."""
    return f"SELECT ts, key, value FROM S WHERE value > {1 - 2 * (i + 1) / of**2:.9f}"


def counts(i: int, of: int) -> str:
    """Windows of three lengths."""
    length = LENGTHS[i % len(LENGTHS)]
    return (
        f"SELECT key, count(*) AS n, max(value) AS top FROM S [RANGE {length} SECONDS] "
        f"WHERE key = {i} GROUP BY key"
    )


def relation(i: int, of: int) -> str:
    """A join with a relation, the tuples being selected."""
    return f"SELECT S.ts, R.name FROM S [NOW], R WHERE S.key = R.key AND S.key = {i}"


JOIN = (
    "SELECT S.key, S.value, T.value AS other FROM S [RANGE {of} MILLISECONDS], "
    "T [RANGE {of} MILLISECONDS] WHERE S.key = T.key"
)
"""There are as many keys as queries, so windows as long as that have a tuple meet equally many."""


def windows(i: int, of: int) -> str:
    """A join of two windows."""
    return f"{JOIN.format(of=of)} AND S.key = {i}"


def everything(i: int, of: int) -> str:
    """Every query matches every tuple."""
    return f"SELECT ts, key, value FROM S WHERE value > {-i - 1}"


@dataclass(frozen=True)
class Kind:
    """Queries of one kind, and one query that puts out what they put out together."""

    name: str
    text: Text
    union: str | None
    """None: those written by hand for the mix."""
    goal: float | None
    is_by_row: bool = False
    """Whether what counts is the time for a row of output."""

    def unions(self, number: int) -> list[str]:
        """What puts out the same as so many of them."""
        return union_of_mix(number) if self.union is None else [self.union.format(of=number)]


ALL_ALERTS = "SELECT ts, value FROM S"
KINDS = (
    Kind("equality alerts", equality, ALL_ALERTS, 2.0),
    Kind("range alerts", ranges, "SELECT ts, key, value FROM S", 2.0),
    Kind(
        "counts and maxima",
        counts,
        "SELECT key, count(*) AS n, max(value) AS top FROM S [RANGE 5 SECONDS] GROUP BY key",
        2.0,
    ),
    Kind(
        "joins with a relation",
        relation,
        "SELECT S.ts, R.name FROM S [NOW], R WHERE S.key = R.key",
        2.0,
    ),
    Kind(
        "window joins",
        windows,
        JOIN,
        2.0,
    ),
    Kind("a mix of 40 shapes", mixed, None, 8.0),
    Kind("a mix of 40 shapes over one projection of all tuples", mixed, ALL_ALERTS, None),
    Kind("every query matches every tuple", everything, ALL_ALERTS, 2.0, is_by_row=True),
)


class Fed:
    """An engine with its queries, fed page by page."""

    def __init__(self, texts: list[str], spark: SparkSession | None, keys: int = KEYS) -> None:
        self.engine = Engine(Settings(spark_master="local[2]"), spark, keep_results=False)
        self.streams = Stream("S", keys, seed=1), Stream("T", keys, seed=2)
        self.engine.execute("\n".join([*(each.declaration for each in self.streams), RELATION]))
        self.engine.push("R", [(key, f"n{key % 7}") for key in range(keys)])
        began = time.perf_counter()
        self.engine.execute(";\n".join(f"CREATE QUERY q{i} AS {t}" for i, t in enumerate(texts)))
        self.registering = time.perf_counter() - began
        self.queries = len(texts)
        self.streams = self.streams if " T [" in texts[0] else self.streams[:1]
        self.next = 0

    def page(self, rows: int) -> float:
        """The seconds of one page."""
        pages = {stream.name: stream.page(self.next, rows) for stream in self.streams}
        self.next += rows
        began = time.perf_counter()
        for name, page in pages.items():
            self.engine.push(name, page)
        self.engine.run_until_idle()
        return time.perf_counter() - began

    @property
    def results(self) -> int:
        """How many rows were put out."""
        return sum(self.engine.result_count(f"q{i}") for i in range(self.queries))

    @property
    def steps(self) -> int:
        """How many steps were made."""
        return self.engine.runtime.tally.steps


class Bench:
    """All measurements of this benchmark."""

    def __init__(self, chosen: argparse.Namespace, report: Report, scratch: Path) -> None:
        self.quick: bool = chosen.quick
        self.rows: int = chosen.rows or (100_000 if chosen.quick else 1_000_000)
        self.numbers = [n for n in NUMBERS if n <= (JUDGED if chosen.quick else max(NUMBERS))]
        self.report, self.scratch = report, scratch
        self.found: dict[str, dict[int, float]] = {}

    def kind(self, kind: Kind, doing: Callable[[str], None]) -> None:
        """N queries of a kind, and the one query for all, page by page in turn."""
        taken = self.found[kind.name] = {}
        numbers = [n for n in self.numbers if n <= (100 if kind.is_by_row else max(self.numbers))]
        for number in numbers if not self.quick else numbers[-1:]:
            doing(f"{kind.name}, {number:,} queries")
            keys = KEYS if kind.text is mixed else number
            one = Fed(kind.unions(number), None, keys)
            many = Fed([kind.text(i, number) for i in range(number)], None, keys)
            with one.engine, many.engine:
                pages = max(5, self.rows // PAGE_ROWS // (10 if kind.is_by_row else 1))
                both = [(one.page(PAGE_ROWS), many.page(PAGE_ROWS)) for _ in range(pages)][2:]
                peer, ours = (statistics.median(side) for side in zip(*both, strict=True))
                rows = many.results / max(1, one.results) if kind.is_by_row else 1.0
                taken[number] = ours
                is_judged = number == max(n for n in numbers if n <= JUDGED)
                self.report.ratio(
                    f"{kind.name}, {number:,} queries",
                    ours / peer / rows,
                    kind.goal if is_judged else None,
                    at_most=True,
                    millpond={"ms a page": 1000 * ours, "steps a page": many.steps / pages},
                    peer={"ms a page": 1000 * peer, "results": one.results},
                    registered_seconds=many.registering,
                    operators=len(many.engine.graph.operators),
                    results=many.results,
                )

    def against_structured_streaming(self, spark: SparkSession) -> None:
        """Fifty counts there, as fifty queries and merged by hand, and here."""
        directory = self.scratch / "pages"
        rows = min(self.rows, 200_000)
        texts = [counts(i, PEER_QUERIES) for i in range(PEER_QUERIES)]
        fed = Fed(texts, spark, PEER_QUERIES)
        fed.streams[0].write(directory, rows, PAGE_ROWS * 5)
        with fed.engine:
            fed.page(PAGE_ROWS)
            ours = sum(fed.page(PAGE_ROWS) for _ in range(rows // PAGE_ROWS))
        apart = self._seconds(lambda: self._apart(spark, directory))
        merged = self._seconds(lambda: self._merged(spark, directory))
        for name, peer, goal in (("50 queries", apart, 30.0), ("merged by hand", merged, None)):
            self.report.ratio(
                f"50 counts against Structured Streaming, {name}",
                peer / ours,
                goal,
                millpond={"seconds": ours},
                peer={"seconds": peer},
                rows=rows,
            )

    @staticmethod
    def _seconds(work: Callable[[], None]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def _read(self, spark: SparkSession, directory: Path) -> DataFrame:
        reader = spark.readStream.schema("ts TIMESTAMP_LTZ, key INT, value DOUBLE")
        return reader.option("maxFilesPerTrigger", 1).parquet(str(directory))

    def _apart(self, spark: SparkSession, directory: Path) -> None:
        queries = []
        for i in range(PEER_QUERIES):
            length = f"{LENGTHS[i % len(LENGTHS)]} seconds"
            groups = (
                self._read(spark, directory)
                .withWatermark("ts", "0 seconds")
                .filter(sql.col("key") == i)
                .groupBy(sql.window("ts", length), "key")
            )
            writer = groups.agg(sql.count("*"), sql.max("value")).writeStream.format("noop")
            writer = writer.option("checkpointLocation", str(self.scratch / f"apart{i}"))
            queries.append(writer.trigger(availableNow=True).start())
        for query in queries:
            query.awaitTermination()

    def _merged(self, spark: SparkSession, directory: Path) -> None:
        def batch(frame: DataFrame, _: int) -> None:
            wanted = frame.filter(sql.col("key") < PEER_QUERIES)
            wanted.groupBy("key").agg(sql.count("*"), sql.max("value")).collect()

        writer = self._read(spark, directory).writeStream.foreachBatch(batch)
        writer = writer.option("checkpointLocation", str(self.scratch / "merged"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def live(self, name: str, text: Text, seconds: float) -> None:
        """So many queries at a rate by the wall clock: latency and memory."""
        number = JUDGED if self.quick else max(NUMBERS)
        before = driver_mebibytes()
        fed = Fed([text(i, number) for i in range(number)], None, number)
        with fed.engine as engine:
            for _ in range(3):
                fed.page(RATE // 10)
            engine.start()
            began = time.perf_counter()
            sent = 0
            while (passed := time.perf_counter() - began) < seconds:
                due = int(passed * RATE)
                if due - sent >= RATE // 20:
                    engine.push("S", fed.streams[0].page(fed.next, due - sent))
                    fed.next, sent = fed.next + due - sent, due
                else:
                    time.sleep(0.005)
            engine.stop()
            some = range(0, number, max(1, number // 40))
            latencies = [engine.latency(f"q{i}").p95_seconds for i in some]
            self.report.ratio(
                f"{name}, {number:,} queries at {RATE:,} tuples/s, p95 latency in seconds",
                max(latencies, default=0.0),
                2.0,
                at_most=True,
                millpond={"mebibytes more": driver_mebibytes() - before},
                registered_seconds=fed.registering,
                tuples=sent,
            )


def main() -> None:
    """Runs all kinds, the peer, and the live runs."""
    chosen = options(__doc__ or "", "tuples in all").parse_args()
    report = Report("many_queries", chosen.out)
    with scratch_directory() as scratch:
        bench = Bench(chosen, report, scratch)
        runs = len(KINDS) * (1 if chosen.quick else len(bench.numbers)) + 3
        with progress(runs) as doing:
            for kind in KINDS:
                bench.kind(kind, doing)
            doing("10,000 tuples a second, alerts")
            bench.live("equality alerts", equality, 5.0 if chosen.quick else 30.0)
            doing("10,000 tuples a second, the mix")
            bench.live("a mix of 40 shapes", mixed, 5.0 if chosen.quick else 30.0)
            doing("Structured Streaming")
            spark = create_session(Settings(spark_master="local[2]"))
            try:
                bench.against_structured_streaming(spark)
            finally:
                spark.stop()
        report.draw("seconds", lambda figure: plot(figure, bench.found))
    report.close()


def plot(figure: Figure, found: dict[str, dict[int, float]]) -> None:
    """Milliseconds a page over the number of queries."""
    axes = figure.subplots()
    for name, taken in found.items():
        axes.plot(list(taken), [1000 * t for t in taken.values()], marker="o", lw=1, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("queries")
    axes.set_ylabel(f"ms a page of {PAGE_ROWS:,} tuples")
    axes.legend(fontsize=6)


if __name__ == "__main__":
    main()
