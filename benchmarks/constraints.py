"""What constraints of streams save: rows and bytes kept and time of a step over k, with and without
them, and with punctuations.

    python -m benchmarks.constraints [--quick] [--out DIR] [--rows ROWS] [--only PART]

`kept`: the join of orders and fulfilments, a join of three streams, a grouped aggregate and NOT
EXISTS, all over unbounded windows, in the driver, without Spark; each with every kind of constraint
that frees something of it, and with a punctuation after each page. Numbers rise, and a tuple comes
up to k rows behind a larger one; each number comes once, in fulfilments after its order. What is
kept and the processor's time of a step are those of the last fifth of the run; no more is to be
kept than EXPLAIN states.

`long`: ten million rows of each stream through the first join; the memory of the process in the
last half against that in the second tenth.

`watching`: the share of the processor's time that is spent in it, and its time with and without, of
two engines that take page by page in turns, several times over: the median of what a page costs
more. On a busy machine that says nothing nearer than some percent.

`pushes`: what a push costs with a constraint, against one without.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.adhering import (
    CASES,
    KINDS,
    NO_CONSTRAINT,
    PAGE_ROWS,
    PUNCTUATED,
    REFERENCES,
    Run,
    kept,
    page,
)
from benchmarks.memory import driver_mebibytes
from benchmarks.reporting import Report, options, progress
from millpond import Engine
from millpond.intake.intake import StreamIntake
from millpond.intake.watching import Watches
from millpond.settings import Settings

ROWS, QUICK_ROWS = 1_000_000, 200_000
LONG_ROWS, QUICK_LONG_ROWS = 10_000_000, 1_000_000
KS = (0, 10, 1_000, 100_000)
ROUNDS = 5
WATCHING_GOAL, GROWTH_GOAL = 1.03, 1.05


@dataclass(frozen=True)
class Found:
    """The rows and bytes that states hold at most at the end, the rows stated, and the median
    step."""

    rows: int
    bytes: int
    stated: int
    milliseconds: float


def measured(run: Run, rows: int) -> Found:
    """Runs a query over streams that adhere, and looks at the last fifth."""
    milliseconds, found = list[float](), list[tuple[int, int]]()
    with run.engine() as engine:
        for start in range(0, rows, PAGE_ROWS):
            pages = run.pages(start)
            began = time.process_time()
            run.push(engine, pages, start)
            milliseconds.append(1000 * (time.process_time() - began))
            found.append(kept(engine))
        stated = run.stated(engine)
    last = max(1, len(found) // 5)
    most = max(found[-last:])
    return Found(*most, stated, statistics.median(milliseconds[-last:]))


Lines = dict[tuple[str, str], list[Found]]
"""For each case and kind of constraint what was found for each k."""


def compare(report: Report, rows: int) -> None:
    """Measures all cases over k, and prints."""
    found: Lines = {}
    with progress(len(CASES) * (1 + (len(KINDS) - 1) * len(KS))) as doing:
        for case in CASES:
            doing(f"{case}, {NO_CONSTRAINT}")
            plain = measured(Run(case, NO_CONSTRAINT, 0), rows)
            found[case, NO_CONSTRAINT] = [plain] * len(KS)
            for kind in _kinds(case):
                for within in KS:
                    doing(f"{case}, {kind}, k = {within}")
                    each = measured(Run(case, kind, within), rows)
                    found.setdefault((case, kind), []).append(each)
                    _tell(report, f"{case}, {kind}, k = {within:,}", each, plain)
    report.draw("kept", lambda figure: draw(figure, found))


def _kinds(case: str) -> list[str]:
    skipped = {NO_CONSTRAINT, REFERENCES} if case == "grouped" else {NO_CONSTRAINT}
    return [kind for kind in KINDS if kind not in skipped]


def _tell(report: Report, name: str, found: Found, plain: Found) -> None:
    sides = {"millpond": vars(found), "peer": vars(plain)}
    stated = found.rows / found.stated
    report.ratio(f"{name}: rows kept, against those stated", stated, 1, at_most=True, **sides)
    report.ratio(f"{name}: rows kept, against no constraint", found.rows / plain.rows)
    ratio = found.milliseconds / plain.milliseconds
    report.ratio(f"{name}: a step, against no constraint", ratio)


# -- ten million rows ------------------------------------------------------------------------------


def long(report: Report, rows: int) -> None:
    """Whether an unbounded join needs no more memory the longer it runs."""
    for kind in ("ordered", REFERENCES, PUNCTUATED):
        looks = list[tuple[float, int]]()
        began = time.perf_counter()
        run = Run("orders and fulfilments", kind, 1_000)
        with run.engine() as engine:
            for start in range(0, rows, PAGE_ROWS):
                run.push(engine, run.pages(start), start)
                looks.append((driver_mebibytes(), kept(engine)[0]))
        seconds = time.perf_counter() - began
        tenth = len(looks) // 10
        for place, what in enumerate(("MiB of the process", "rows kept")):
            early = max(look[place] for look in looks[tenth : 2 * tenth])
            late = max(look[place] for look in looks[len(looks) // 2 :])
            report.ratio(
                f"{rows:,} rows a stream, {kind}: {what}, last half against second tenth",
                late / early,
                GROWTH_GOAL,
                at_most=True,
                millpond=late,
                peer=early,
                seconds=seconds,
            )


# -- watching --------------------------------------------------------------------------------------


def watching(report: Report, rows: int) -> None:
    """What it costs to see what streams adhere to, by the processor's time: what is spent in it,
    and what a page costs more."""
    for watch in ("order", "on"):
        for case in CASES:
            spent = Spent()
            pairs = [pair for _ in range(ROUNDS) for pair in _paired(case, watch, rows)]
            with_it = sum(one for one, _ in pairs)
            share = with_it / (with_it - spent.ends())
            _tell_watching(report, f"{case}: watch = '{watch}', by what is spent in it", share)
            more = statistics.median(one - other for one, other in pairs)
            plain = statistics.median(other for _, other in pairs)
            _tell_watching(report, f"{case}: watch = '{watch}', against 'off'", 1 + more / plain)


def _tell_watching(report: Report, case: str, ratio: float) -> None:
    report.ratio(case, ratio, WATCHING_GOAL, at_most=True)


class Spent:
    """The processor's time that is spent with watching, from now on."""

    def __init__(self) -> None:
        self._seconds, self._watched = 0.0, StreamIntake.watches_after

        def timed(intake: StreamIntake, *page: Any) -> Watches:
            began = time.thread_time()
            found = self._watched(intake, *page)
            self._seconds += time.thread_time() - began
            return found

        StreamIntake.watches_after = timed  # type: ignore[method-assign]

    def ends(self) -> float:
        """Until now, in seconds."""
        StreamIntake.watches_after = self._watched  # type: ignore[method-assign]
        return self._seconds


def _paired(case: str, watch: str, rows: int) -> list[tuple[float, float]]:
    """The processor's time for each page with watching and without, in turns."""
    run, found = Run(case, NO_CONSTRAINT, 10), list[tuple[float, float]]()
    engines = run.engine(watch), run.engine()
    gc.collect()
    for number, start in enumerate(range(0, rows, PAGE_ROWS)):
        turns = (0, 1) if number % 2 else (1, 0)
        spent = {each: _taken(run, engines[each], start) for each in turns}
        found.append((spent[0], spent[1]))
    for engine in engines:
        engine.close()
    return found


def _taken(run: Run, engine: Engine, start: int) -> float:
    pages = run.pages(start)
    began = time.process_time()
    run.push(engine, pages, start)
    return time.process_time() - began


# -- pushes ----------------------------------------------------------------------------------------

PROMISES = {
    "ordered": "ORDERED BY (id) WITHIN {} ROWS",
    "clustered": "CLUSTERED BY (id) WITHIN {} ROWS",
    "unique": "UNIQUE (id) WITHIN {} ROWS",
    "references": "REFERENCES O (id) WITHIN {} ROWS",
}


def pushes(report: Report, rows: int) -> None:
    """What a push of many and of few rows costs with each constraint, against none."""
    for size in (PAGE_ROWS, 100):
        plain = push_seconds("", size, rows)
        for kind, clause in PROMISES.items():
            for within in (10, 100_000):
                spent = push_seconds(clause.format(within), size, rows)
                report.ratio(
                    f"a push of {size:,} rows, {kind}, k = {within:,}, against no constraint",
                    spent / plain,
                    millpond=1000 * spent,
                    peer=1000 * plain,
                    unit="ms of the processor",
                )


def push_seconds(clause: str, size: int, rows: int) -> float:
    """The processor's time for a push, once as many values are remembered as may be."""
    with Engine(Settings(watch="off")) as engine:
        engine.execute("CREATE STREAM O (t BIGINT, id BIGINT, v BIGINT) TIMESTAMP BY t")
        engine.execute(f"CREATE STREAM F (t BIGINT, id BIGINT, v BIGINT) TIMESTAMP BY t {clause}")
        for start in range(0, 120_000, PAGE_ROWS):
            engine.push("F", page(start, 0, 0))
        pages = [page(120_000 + n * PAGE_ROWS, 0, 0).slice(0, size) for n in range(rows // 10_000)]
        taken = []
        for each in pages:
            began = time.process_time()
            engine.push("F", each)
            taken.append(time.process_time() - began)
        return statistics.median(taken)


# -- the plot --------------------------------------------------------------------------------------

MEASURES = {"rows": "rows kept + 1", "bytes": "bytes kept + 1", "milliseconds": "ms a step"}


def draw(figure: Figure, found: Lines) -> None:
    """Rows, bytes and time over k, a column a case and a line a kind of constraint."""
    figure.set_size_inches(13, 8)
    grid = figure.subplots(len(MEASURES), len(CASES), sharex=True, sharey="row")
    for row, (measure, label) in enumerate(MEASURES.items()):
        for column, case in enumerate(CASES):
            _draw(grid[row][column], found, case, measure)
            grid[0][column].set_title(case)
            grid[-1][column].set_xlabel("k + 1")
        grid[row][0].set_ylabel(label)
    grid[-1][0].set_ylim(0, None)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


def _draw(axes: Axes, found: Lines, case: str, measure: str) -> None:
    is_time = measure == "milliseconds"
    for number, kind in enumerate(KINDS):
        if (case, kind) in found:
            line = [getattr(each, measure) + (not is_time) for each in found[case, kind]]
            style = "--" if kind == NO_CONSTRAINT else "-"
            colour = "0.3" if kind == NO_CONSTRAINT else f"C{number}"
            width = 1.2 * (len(KINDS) - number) if number else 1.5  # all are seen that meet
            axes.plot([k + 1 for k in KS], line, style, lw=width, color=colour, label=kind)
    axes.set(xscale="log", yscale="linear" if is_time else "log")


def main() -> None:
    parser = options(__doc__ or "", "rows of each stream")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    given = parser.parse_args()
    report = Report("constraints", given.out)
    for name, (part, rows, quick_rows) in PARTS.items():
        if given.only in (None, name):
            part(report, given.rows or (quick_rows if given.quick else rows))
    report.close()


PARTS = {
    "kept": (compare, ROWS, QUICK_ROWS),
    "long": (long, LONG_ROWS, QUICK_LONG_ROWS),
    "watching": (watching, ROWS // 2, QUICK_ROWS),
    "pushes": (pushes, ROWS, QUICK_ROWS),
}


if __name__ == "__main__":
    main()
