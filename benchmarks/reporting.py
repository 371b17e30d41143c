"""What the benchmarks share in speaking: options, one JSON line a case, progress, pictures.

Results go to standard output; progress goes to standard error, and only if that is a terminal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from millpond.lab.drawing import STYLE


def options(description: str, rows_help: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller, within five minutes")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write pictures and lines there")
    parser.add_argument("--rows", type=int, help=rows_help)
    return parser


def among(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """An option to run some strategies only, so that a measurement can be taken in parts."""
    known = tuple(names)

    def chosen(text: str) -> tuple[str, ...]:
        wanted = tuple(text.split(","))
        if not set(wanted) <= set(known):
            raise argparse.ArgumentTypeError(f"known are {', '.join(known)}")
        return wanted

    parser.add_argument("--strategies", type=chosen, metavar="A,B", help="only these")


class Report:
    """Prints the cases of one benchmark and keeps them for the pictures."""

    def __init__(self, benchmark: str, out: Path | None) -> None:
        self.benchmark = benchmark
        self.out = out
        self.lines: list[dict[str, Any]] = []

    def ratio(
        self, case: str, ratio: float, goal: float | None = None, at_most: bool = False, **more: Any
    ) -> None:
        """One case against a peer or against itself; a goal is a least unless ``at_most``."""
        line: dict[str, Any] = {"ratio": _rounded(ratio), "goal": goal}
        if goal is not None:
            line["goal_is"] = "at most" if at_most else "at least"
            line["met"] = bool(ratio <= goal if at_most else ratio >= goal)
        self._print(case, line | more)

    def value(self, case: str, value: float, unit: str, **more: Any) -> None:
        """One case that stands for itself."""
        self._print(case, {"value": _rounded(value), "unit": unit, "goal": None} | more)

    def _print(self, case: str, line: dict[str, Any]) -> None:
        """Every line has both sides; where a case stands for itself, it is Millpond's figure."""
        sides = {"millpond": None if "peer" in line else line.get("value"), "peer": None}
        missing = {side: figure for side, figure in sides.items() if side not in line}
        whole = {"benchmark": self.benchmark, "case": case} | _rounded(line | missing)
        self.lines.append(whole)
        print(json.dumps(whole), flush=True)

    def close(self) -> None:
        """Writes the lines beside the pictures."""
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(line) + "\n" for line in self.lines)
            (self.out / f"{self.benchmark}.jsonl").write_text(text, encoding="utf-8")

    def draw(self, name: str, plot: Callable[[Figure], None]) -> None:
        """Writes a picture if pictures are wanted."""
        if self.out is None:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(STYLE):
            figure = Figure(layout="constrained")
            plot(figure)
            figure.savefig(self.out / f"{self.benchmark}_{name}.png", dpi=140)


def _rounded(value: Any) -> Any:
    """Numbers with four digits that count, also inside dicts and lists."""
    match value:
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
        case float():
            return float(f"{value:.4g}")
    return value


def note(text: str) -> None:
    """A remark for people, beside the lines."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar; the function it gives names the work that starts and counts what was before it."""
    columns = (BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    words = (TimeElapsedColumn(), TextColumn("{task.description}"))
    shown = sys.stderr.isatty()
    bar = Progress(
        *columns, *words, console=Console(stderr=True), transient=True, disable=not shown
    )
    with bar:
        task = bar.add_task("", total=total, completed=-1)
        yield lambda text: bar.update(task, advance=1, description=text)
