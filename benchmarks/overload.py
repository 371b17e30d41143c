"""More input than can be done, in bursts: memory, latency, and how wrong the answers are.

    python -m benchmarks.overload [--quick] [--out DIR] [--rows A_SECOND]

Bursts of ten seconds at 1, 2, 5 and 10 times what can be done, with ten calm seconds behind each;
100 bursts in all, four with ``--quick``. The query counts, sums and averages by group; each answer
is compared with the exact one, which is computed apart. The same bursts go to Millpond with
``overload = 'wait'``, where sources wait, and to Structured Streaming, where the source keeps what
waits (see ``benchmarks/overload_peer.py``).

Seconds are those of a clock that stands while others use the machine: the processor seconds of this
process, and those that a function says it takes for a tuple, as a call to something slow would.
Tuples come at their times by this clock, also while a step is under way. So figures do not depend
on what else the machine does, and an hour of bursts takes less than an hour.

Goals, with ``overload = 'approximate'``: what the engine accounts for is at most 105 % of the
budget; three seconds into a burst answers are no later than ``latency`` allows; they are exact
again within five seconds after a burst; of the answers in confident bounds at 95 % no more are
missed than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks.overload_feed import (
    CALM_SECONDS,
    FACTORS,
    PRESENT,
    SLIDE_TICKS,
    WINDOW_TICKS,
    Burst,
    Clock,
    Feed,
    Load,
    load_of,
    slow,
)
from benchmarks.overload_peer import peer_run
from benchmarks.reporting import Report, note, options, progress
from millpond import Engine

LATENCY_SECONDS, SETTLING_SECONDS, EXACT_SECONDS = 1.0, 3.0, 5.0
BUDGET_BYTES = 8 * 2**20
MEMORY_GOAL, CONFIDENCE = 1.05, 0.95
ROWS_PER_SECOND = 5_000
"""What can be done, about."""
MODES = ("approximate", "wait")
PEER = "structured streaming"
QUERY = f"""
    CREATE QUERY answers TOLERATE (CONFIDENCE {100 * CONFIDENCE:g} PERCENT) AS
      SELECT k, count(*) AS n, sum(x) AS s, avg(x) AS m
      FROM S [RANGE {WINDOW_TICKS} SLIDE {SLIDE_TICKS}] WHERE slow(x) < 2 GROUP BY k
"""
NUMBERS = ("n", "s", "m")


@dataclass
class Answer:
    """One answer: when it was put out, for which time, and its numbers with their bounds."""

    seconds: float
    tick: int
    row: dict[str, float]

    @property
    def latency_seconds(self) -> float:
        """How far it is behind the time that it is of."""
        return self.seconds - self.tick / 1000

    @property
    def is_exact(self) -> bool:
        """Whether it says that it is."""
        return all(self.row[f"{name}_low"] == self.row[f"{name}_high"] for name in NUMBERS)


@dataclass
class Run:
    """What a run of one mode came to."""

    load: Load
    answers: list[Answer] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    kept: list[tuple[float, float]] = field(default_factory=list)
    seconds: float = 0.0

    def during(self, first: float, last: float) -> list[Answer]:
        """The answers for the times between two moments."""
        return [each for each in self.answers if first < each.tick / 1000 <= last]

    def latency(self, burst: Burst) -> float:
        """The latest answer for times in a burst, once it has been seen that it is one."""
        found = self.during(burst.first + SETTLING_SECONDS, burst.last)
        return max((each.latency_seconds for each in found), default=0.0)

    def exact_after(self, burst: Burst) -> float:
        """How long after a burst the last answer came that is not exact."""
        before_the_next = burst.last + CALM_SECONDS - 0.001
        found = self.during(burst.last, before_the_next)
        late = [each.seconds - burst.last for each in found if not each.is_exact]
        return max((*late, 0.0))

    def bounds(self) -> Iterator[tuple[Answer, str, float, float, bool]]:
        """Each number of an answer: its error and half of its bounds, both relative to the truth,
        and whether the truth is within these."""
        for each in self.answers:
            truth = self.load.truth(int(each.row["k"]), each.tick)
            for name in NUMBERS:
                value, low, high = (each.row[name + side] for side in ("", "_low", "_high"))
                if value is None or not truth["n"]:  # nothing to estimate from, or of nothing
                    continue
                size = abs(truth[name]) or 1.0
                room = 1e-9 * size
                is_within = low - room <= truth[name] <= high + room
                yield (
                    each,
                    name,
                    abs(value - truth[name]) / size,
                    (high - low) / 2 / size,
                    is_within,
                )


def run_of(mode: str, load: Load, rows_per_second: float) -> Run:
    """Feeds a load at its times, or as soon after them as there is room."""
    settings = {"overload": mode, "latency": f"{LATENCY_SECONDS:g} second"}
    settings |= {"budget": f"{BUDGET_BYTES} B", "driver_rows": 10**9, "place_by": "rows"}
    run, clock, real = Run(load), Clock(), time.monotonic
    time.monotonic = clock
    try:
        with Engine(settings, keep_results="1000 rows") as engine:
            engine.execute("CREATE STREAM S (k INT, x DOUBLE, at BIGINT) TIMESTAMP BY at")
            feed = Feed(engine, load, clock)
            PRESENT[:] = [(feed, 1 / rows_per_second)]
            engine.register_function("slow", slow, ["DOUBLE"], "DOUBLE")
            engine.execute(QUERY)
            engine.subscribe("answers", lambda table: _put_down(run, table, feed.now))
            feed.work()
            run.seconds, run.memory, run.kept = feed.now, feed.memory, feed.kept
    finally:
        time.monotonic = real
    return run


def run_of_peer(load: Load, rows_per_second: float) -> Run:
    """The same in Structured Streaming, which puts out windows that are complete."""
    found = peer_run(load, rows_per_second)
    answers = [Answer(*each) for each in found.answers]
    return Run(load, answers, found.memory, [(0.0, 100.0)], found.seconds)


def _put_down(run: Run, table: pa.Table, now: float) -> None:
    for row in table.to_pylist():
        if row["weight"] > 0 and row["ts"] is not None and row["n"] is not None:
            run.answers.append(Answer(now, row.pop("ts"), row))


def judge(report: Report, runs: dict[str, Run], load: Load) -> None:
    """The goals."""
    run = runs["approximate"]
    peak = max(size for _, size in run.memory)
    report.ratio("memory to the budget", peak / BUDGET_BYTES, MEMORY_GOAL, at_most=True)
    for factor in FACTORS:
        bursts = [each for each in load.bursts if each.factor == factor]
        latency = max(run.latency(each) for each in bursts)
        beside = {
            name: max(map(run.latency, bursts)) for name, run in runs.items() if name != MODES[0]
        }
        report.ratio(
            f"latency in bursts at {factor} times, to that allowed",
            latency / LATENCY_SECONDS,
            1.0,
            at_most=True,
            waiting_seconds=beside.get(MODES[1]),
            **({"millpond": latency, "peer": beside[PEER]} if PEER in beside else {}),
        )
        exact = max(run.exact_after(each) for each in bursts)
        report.ratio(
            f"exact again after bursts at {factor} times, to {EXACT_SECONDS:g} s",
            exact / EXACT_SECONDS,
            1.0,
            at_most=True,
        )
    found = [each for each in run.bounds() if not each[0].is_exact]
    missed = sum(not is_within for *_, is_within in found)
    wrong = sum(not within for each, *_, within in run.bounds() if each.is_exact)
    part = missed / max(1, len(found))
    report.ratio("approximate numbers outside of bounds", part, 1 - CONFIDENCE, True, of=len(found))
    report.ratio("exact numbers that are not", wrong, 0, at_most=True)


def told(report: Report, name: str, run: Run) -> None:
    """A mode as it stands for itself."""
    found = [(each, error, bound) for each, _, error, bound, _ in run.bounds()]
    errors = [error for each, error, _ in found if not each.is_exact]
    bounds = [bound for each, _, bound in found if not each.is_exact]
    latencies = [each.latency_seconds for each in run.answers]
    report.value(
        name,
        float(np.quantile(latencies, 0.99)),
        "seconds of latency, 99 %",
        most_seconds=max(latencies),
        peak_bytes=max(size for _, size in run.memory),
        seconds=run.seconds,
        median_error=float(np.median(errors)) if errors else 0.0,
        median_bound=float(np.median(bounds)) if bounds else 0.0,
        least_kept_percent=min(percent for _, percent in run.kept),
    )


def course(runs: dict[str, Run]) -> Callable[[Figure], None]:
    """Error and bound of the sum, what is kept, latency and memory over time."""

    def plot(figure: Figure) -> None:
        upper, middle, lower, lowest = figure.subplots(4, 1, sharex=True)
        figure.set_size_inches(9, 9)
        run = runs["approximate"]
        sums = [each for each in run.bounds() if each[1] == "s"]
        times = [answer.tick / 1000 for answer, *_ in sums]
        upper.plot(times, [100 * bound for *_, bound, _ in sums], ".", ms=2, label="bound")
        upper.plot(times, [100 * error for _, _, error, *_ in sums], ".", ms=2, label="error")
        upper.set(ylabel="of the sum, %", yscale="symlog")
        middle.plot(*zip(*run.kept, strict=True))
        middle.set(ylabel="kept, %", yscale="log")
        for name, each in runs.items():
            seconds = [answer.latency_seconds for answer in each.answers]
            ticks = [answer.tick / 1000 for answer in each.answers]
            lower.plot(ticks, seconds, ".", ms=2, label=name)
            lowest.plot(*zip(*((at, size / 2**20) for at, size in each.memory), strict=True))
        lower.axhline(LATENCY_SECONDS, lw=0.8)
        lower.set(ylabel="latency, s", yscale="log")
        lowest.axhline(BUDGET_BYTES / 2**20, lw=0.8)
        lowest.set(ylabel="memory, MB", xlabel="seconds")
        for axes in (upper, lower):
            axes.legend(fontsize="small")

    return plot


def main() -> None:
    """Runs the modes and prints."""
    parser = options(__doc__ or "", "how many rows can be done in a second")
    parser.add_argument("--bursts", type=int, help="how many bursts there are")
    parser.add_argument("--alone", action="store_true", help="without those beside it")
    chosen = parser.parse_args()
    rows_per_second = chosen.rows or ROWS_PER_SECOND
    bursts = chosen.bursts or (len(FACTORS) if chosen.quick else 100)
    load = load_of(bursts, rows_per_second)
    names = MODES[:1] if chosen.alone else (*MODES, PEER)
    runs: dict[str, Run] = {}
    with progress(len(names)) as working_on:
        for name in names:
            working_on(name)
            if name == PEER:
                runs[name] = run_of_peer(load, rows_per_second)
            else:
                runs[name] = run_of(name, load, rows_per_second)
    report = Report("overload", chosen.out)
    for name, run in runs.items():
        told(report, name, run)
    judge(report, runs, load)
    report.draw("course", course(runs))
    note(f"{len(load.ticks):,} tuples in {len(load.bursts)} bursts")
    report.close()


if __name__ == "__main__":
    main()
