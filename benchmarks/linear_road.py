"""Linear Road: a program of many small views over bursts of position reports.

    python -m benchmarks.linear_road [--quick] [--out DIR] [--rows LARGEST]

The program (road/linear_road.cql) is 26 views and 3 queries after the benchmark of Arasu et al.,
VLDB 2004; the traffic (road/traffic.py) is made here. Before anything is timed, the answers to a
small input are compared with those computed by hand (road/by_hand.py), row for row.

As the specification has it: expressways with two directions, 100 segments of a mile and lanes for
entering, travel and leaving; a report of each vehicle every 30 seconds; the latest average velocity
of a segment as the mean of the means of five minutes, each the mean over vehicles of their mean
speed; the number of cars in the minute before; an accident where two vehicles have each reported
four times in a row from the same place, until one of them moves; it counts for the minute after and
for up to four segments upstream; a toll of 2·(cars - 50)² where the velocity is below 40, more than
50 cars were there and no accident is ahead; it is told on entering a segment, and charged on
entering the next one, so that whoever leaves by the exit lane does not pay for the last; balances
of accounts on request.

Left out: daily expenditures and travel time estimates (request types 3 and 4), which ask a table of
the past; vehicles that come back for a second trip; the response time of five seconds, as the input
is read as fast as it can be, not at its own pace; the time at which the last toll of a balance was
charged. The expressways are as full as in the third hour of the original, for a shorter time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.reporting import Report, note, options, progress
from benchmarks.road.by_hand import Answers, answers_by_hand
from benchmarks.road.traffic import Traffic
from millpond import Engine

PROGRAM = Path(__file__).parent / "road" / "linear_road.cql"
FILE = "linear_road.csv"
"""What the program calls its input."""
SIZES, QUICK_SIZES = (10_000, 100_000, 300_000), (10_000, 30_000)
CHECKED, COMMANDED = 10_000, 11_500
GOAL_SIZE, TUPLES_PER_SECOND = 100_000, 20_000
COMMAND_SECONDS, REGISTRATION_SECONDS = 5.0, 1.0
STREAM_2004 = 114_000
"""Tuples a second that the STREAM prototype is said to have done, on one core."""


def answers(engine: Engine) -> Answers:
    """What the queries of an engine have answered."""
    found: Answers = {}
    for query in ("toll_alerts", "accident_alerts", "balance_answers"):
        rows = Counter[tuple[object, ...]]()
        for row in engine.results(query).to_pylist():
            weight = row.pop("weight")
            rows[tuple(row.values())] += weight
        found[query] = rows
    return found


def check() -> dict[str, int]:
    """Fails unless the answers to a small input are those computed by hand; how many there are."""
    traffic = Traffic(CHECKED)
    expected = answers_by_hand(traffic.table().to_pylist())
    with tempfile.TemporaryDirectory() as directory:
        traffic.write(Path(directory) / FILE)
        with Engine(directory=directory) as engine:
            engine.execute(PROGRAM.read_text(encoding="utf-8"))
            engine.finish()
            found = answers(engine)
    if found != expected:
        raise SystemExit("Linear Road: the answers are not those computed by hand")
    return {query: rows.total() for query, rows in found.items()}


def child(tuples: int) -> None:
    """One run in a process of its own, as a JSON line: a young engine, as a command has it."""
    with tempfile.TemporaryDirectory() as directory:
        Traffic(tuples).write(Path(directory) / FILE)
        with Engine(directory=directory, keep_results=False) as engine:
            began = time.perf_counter()
            engine.execute(PROGRAM.read_text(encoding="utf-8"))
            registered = time.perf_counter()
            engine.finish()
            ended = time.perf_counter()
            steps = engine.show("STEPS").to_pylist()
    line = {
        "registration": registered - began, "running": ended - registered,
        "steps": sum(each["steps"] for each in steps),
        "on_executors": sum(each["on executors"] for each in steps),
        "operators": _by_kind(steps),
    }  # fmt: skip
    print(json.dumps(line), flush=True)


def _by_kind(steps: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of the operators by the first word of what they do."""
    seconds: Counter[str] = Counter()
    for each in steps:
        seconds[each["does"].split()[0]] += each["seconds"]
    return dict(seconds.most_common())


def run_child(tuples: int) -> dict[str, Any]:
    code = f"from benchmarks.linear_road import child; child({tuples})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"a run of {tuples} tuples failed")
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def seconds_of_command(tuples: int) -> float:
    """From the start of `millpond run` to its end, its answers printed as lines of JSON."""
    command = [sys.executable, "-m", "millpond", "run", str(PROGRAM), "--format", "jsonl"]
    with tempfile.TemporaryDirectory() as directory:
        Traffic(tuples).write(Path(directory) / FILE)
        began = time.perf_counter()
        done = subprocess.run(command, check=False, cwd=directory, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - began
    if done.returncode or not done.stdout:
        raise SystemExit(f"millpond run of {tuples} tuples failed")
    return seconds


def report_size(report: Report, tuples: int, runs: list[dict[str, Any]]) -> float:
    """The line of one size; tuples a second."""
    running = statistics.median(each["running"] for each in runs)
    middle = min(runs, key=lambda each: abs(each["running"] - running))
    rate, goal = tuples / running, TUPLES_PER_SECOND if tuples == GOAL_SIZE else None
    report.value(
        f"{tuples} tuples", rate, "tuples/s",
        goal=goal, **({} if goal is None else {"goal_is": "at least", "met": rate >= goal}),
        millpond={
            "tuples_per_second": rate, "seconds": running, "steps": middle["steps"],
            "on_executors": middle["on_executors"], "operator_seconds": middle["operators"],
        },
        peer={"stream_2004_tuples_per_second": STREAM_2004},
    )  # fmt: skip
    return rate


def report_seconds(report: Report, case: str, seconds: list[float], goal: float) -> None:
    middle = statistics.median(seconds)
    report.value(case, middle, "s", goal=goal, goal_is="at most", met=middle <= goal)


def draw(figure: Figure, rates: dict[int, float], operators: dict[str, float]) -> None:
    """Tuples a second by size, and which operators the largest run spent its time in."""
    left, right = figure.subplots(1, 2)
    left.semilogx(list(rates), list(rates.values()), marker="o")
    left.axhline(TUPLES_PER_SECOND, linestyle="--", label="goal at 100,000")
    left.set(xlabel="tuples", ylabel="tuples/s", ylim=(0, None))
    left.legend()
    right.barh(list(operators)[::-1], list(operators.values())[::-1])
    right.set(xlabel=f"seconds at {max(rates)} tuples, by operator")


def main() -> None:
    """Checks, measures and prints."""
    chosen = options(__doc__ or "", "the largest number of tuples").parse_args()
    sizes = QUICK_SIZES if chosen.quick else SIZES
    sizes = tuple(size for size in sizes if not chosen.rows or size <= chosen.rows)
    times = 1 if chosen.quick else 3
    report, rates, runs = Report("linear_road", chosen.out), {}, []
    with progress(1 + times * (len(sizes) + 1)) as doing:
        doing("answers by hand")
        rows = check()
        report.value("equal to the answers by hand", rows["toll_alerts"], "tolls", **rows)
        for size in sizes:
            of_size = []
            for _ in range(times):
                doing(f"{size} tuples")
                of_size.append(run_child(size))
            rates[size] = report_size(report, size, of_size)
            runs += of_size
        seconds = []
        for _ in range(times):
            doing("the command")
            seconds.append(seconds_of_command(COMMANDED))
    registration = [each["registration"] for each in runs]
    report_seconds(report, "registration", registration, REGISTRATION_SECONDS)
    report_seconds(report, f"millpond run, {COMMANDED} tuples", seconds, COMMAND_SECONDS)
    if rates:
        report.draw("rates", lambda figure: draw(figure, rates, runs[-1]["operators"]))
    report.close()
    note("linear_road.py: done")


if __name__ == "__main__":
    main()
