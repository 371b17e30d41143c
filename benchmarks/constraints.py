"""What constraints of streams save: rows kept and time of a step over k, with and without them.

    python -m benchmarks.constraints [--quick] [--out DIR] [--rows ROWS]

The join of orders and fulfilments, a join of three streams and a grouped aggregate, all over
unbounded windows, in the driver, without Spark. Each stream rises, and a tuple comes up to k rows
behind a larger one. What is kept and the time of a step are those of the last tenth of the run.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress
from millpond import Engine
from millpond.settings import Settings

PAGE_ROWS = 10_000
ROWS, QUICK_ROWS = 1_000_000, 200_000
KS = (0, 10, 1_000, 100_000)
CASES = {
    "orders and fulfilments": "SELECT O.id, F.v FROM O, F WHERE O.id = F.id",
    "three streams": "SELECT O.id, P.v FROM O, F, P WHERE O.id = F.id AND F.id = P.id",
    "grouped": "SELECT id, count(*) AS n, sum(v) AS s FROM O GROUP BY id",
}


@dataclass(frozen=True)
class Found:
    """The rows and bytes that states hold at most at the end, and the median step."""

    rows: int
    bytes: int
    milliseconds: float


def page(start: int, within: int, seed: int) -> pa.Table:
    """Rows that come up to so many rows behind a larger one, by blocks of so many turned round."""
    numbers = np.arange(start, start + PAGE_ROWS)
    block = within + 1
    turned = numbers // block * block + (block - 1 - numbers % block)
    values = np.random.default_rng(seed + start).integers(0, 100, PAGE_ROWS)
    columns = {"t": numbers, "id": turned, "v": values}
    return pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()})


def measured(text: str, within: int, is_declared: bool, rows: int) -> Found:
    """Runs a query over streams that adhere, and looks at the last tenth."""
    clause = f"ORDERED BY (id) WITHIN {within} ROWS" if is_declared else ""
    milliseconds, kept = list[float](), list[tuple[int, int]]()
    everything = Settings(driver_rows=10**12)
    with Engine(everything, keep_results=False) as engine:
        for name in "OFP":
            engine.execute(
                f"CREATE STREAM {name} (t BIGINT, id BIGINT, v BIGINT) TIMESTAMP BY t {clause}"
            )
        engine.execute(f"CREATE QUERY q AS {text}")
        read = [name for name in "OFP" if f"stream:{name.lower()}" in str(engine.explain("q"))]
        for start in range(0, rows, PAGE_ROWS):
            pages = {name: page(start, within, seed) for seed, name in enumerate(read)}
            began = time.perf_counter()
            for name, each in pages.items():
                engine.push(name, each)
            engine.run_until_idle()
            milliseconds.append(1000 * (time.perf_counter() - began))
            kept.append(_kept(engine))
    last = max(1, len(kept) // 10)
    most = max(kept[-last:])
    return Found(*most, statistics.median(milliseconds[-last:]))


def _kept(engine: Engine) -> tuple[int, int]:
    """The rows and bytes of all states."""
    rows = size = 0
    for running in engine.runtime.running.values():
        state = running.state
        for part in () if state is None else getattr(state, "versions", None) or (state.version,):
            rows += sum(delta.rows for deltas in part.buckets for delta in deltas)
        size += 0 if state is None else state.bytes
    return rows, size


def compare(report: Report, rows: int) -> None:
    """Measures all cases over k, and prints."""
    found: dict[tuple[str, bool], list[Found]] = {}
    with progress(len(CASES) * len(KS) * 2) as doing:
        for name, text in CASES.items():
            for within in KS:
                pair = []
                for is_declared in (True, False):
                    doing(f"{name}, k = {within}")
                    pair.append(measured(text, within, is_declared, rows))
                    found.setdefault((name, is_declared), []).append(pair[-1])
                report.ratio(
                    f"{name}: rows kept, k = {within:,}, against no constraint",
                    pair[0].rows / pair[1].rows,
                    millpond=vars(pair[0]),
                    peer=vars(pair[1]),
                )
    report.draw("kept", lambda figure: draw(figure, found))


def draw(figure: Figure, found: dict[tuple[str, bool], list[Found]]) -> None:
    """Rows kept over k, a line a case."""
    axes = figure.subplots()
    for (name, is_declared), line in found.items():
        label = name if is_declared else f"{name}, no constraint"
        axes.plot([k + 1 for k in KS], [each.rows for each in line], marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="k + 1", ylabel="rows kept")
    axes.legend()


def main() -> None:
    parser = options(__doc__ or "", "rows of each stream")
    given = parser.parse_args()
    report = Report("constraints", given.out)
    compare(report, given.rows or (QUICK_ROWS if given.quick else ROWS))
    report.close()


if __name__ == "__main__":
    main()
