"""The same burst under FIFO and under Chain at once, each in a process: what waits, as it moves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from millpond.demo import burst_backlog
from millpond.errors import StateError

STRATEGIES = {"FIFO": "fifo(max_tuples = 1)", "Chain": "chain(max_tuples = 1)"}
WIDTH, DRAWN_SECONDS, LINE_SECONDS = 60, 0.2, 1.0
BARS = " ▁▂▃▄▅▆▇█"


@dataclass
class Course:
    """What has waited under one strategy."""

    strategy: str
    seconds: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    @property
    def now_bytes(self) -> int:
        """What waits now."""
        return self.bytes[-1] if self.bytes else 0

    @property
    def peak_bytes(self) -> int:
        """The most that has waited."""
        return max(self.bytes, default=0)

    @property
    def reached_seconds(self) -> float:
        """Up to when samples are there."""
        return self.seconds[-1] if self.seconds else 0.0

    def bars(self, highest: int) -> str:
        """What has waited over time, as a line of bars.

        >>> Course("x", [0.0, 10.9], [4, 8]).bars(8).strip()
        '▄                                                          █'
        """
        tops = [0] * WIDTH
        for seconds, amount in zip(self.seconds, self.bytes, strict=True):
            place = min(WIDTH - 1, int(WIDTH * seconds / burst_backlog.END_SECONDS))
            tops[place] = max(tops[place], amount)
        return "".join(BARS[top * (len(BARS) - 1) // max(highest, 1)] for top in tops)

    def words(self) -> str:
        """What waits, and the most that did."""
        return f"{self.now_bytes / 1e6:5.1f} MB wait, {self.peak_bytes / 1e6:5.1f} at most"


class Comparison:
    """Both strategies at work."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.courses = {name: Course(name) for name in STRATEGIES}
        self._processes = [self._begin(name, text) for name, text in STRATEGIES.items()]

    def _begin(self, name: str, strategy: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", burst_backlog.__name__, strategy, str(self._seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        reader = threading.Thread(
            target=self._read, args=(process, self.courses[name]), daemon=True
        )
        reader.start()
        return process

    def _read(self, process: subprocess.Popen[str], course: Course) -> None:
        for line in process.stdout or ():
            sample = json.loads(line)
            course.bytes.append(sample["bytes"])
            course.seconds.append(sample["seconds"])

    def __enter__(self) -> Comparison:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends both."""
        for process in self._processes:
            process.kill()
            process.wait()

    @property
    def is_over(self) -> bool:
        """Whether both are through."""
        return all(
            process.poll() is not None or course.reached_seconds >= self._seconds
            for process, course in zip(self._processes, self.courses.values(), strict=True)
        )

    def moments(self, pause_seconds: float) -> Iterator[None]:
        """Again and again, until both are through."""
        while not self.is_over:
            time.sleep(pause_seconds)
            yield

    def line(self) -> str:
        """Both in one line."""
        told = [f"{name}: {course.words()}" for name, course in self.courses.items()]
        seconds = max(course.reached_seconds for course in self.courses.values())
        return f"{seconds:5.1f} s | " + " | ".join(told)

    def __rich__(self) -> Panel:
        highest = max(course.peak_bytes for course in self.courses.values())
        parts: list[RenderableType] = [
            Text("The same burst, the same queries, the same machine: who runs next?\n")
        ]
        for name, course in self.courses.items():
            parts.append(Text(f"{name:6} {course.words()}", style="bold"))
            parts.append(Text(course.bars(highest), style="cyan"))
        return Panel(Group(*parts), title="what waits in the queues", width=WIDTH + 6)


class OnDemand:
    """The comparison when somebody asks for it, one at a time: what the page of the demo draws."""

    def __init__(self, seconds: float = burst_backlog.END_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._latest: Comparison | None = None

    def begin(self) -> None:
        """Begins; raises ``StateError`` while another one is under way."""
        with self._lock:
            if self._latest is not None and not self._latest.is_over:
                raise StateError("both strategies are at work already; wait until they are through")
            self._end()
            self._latest = Comparison(self._seconds)

    def told(self) -> dict[str, Any]:
        """What has waited under each strategy, so far, in the last one."""
        with self._lock:
            latest = self._latest
        courses = [] if latest is None else list(latest.courses.values())
        return {
            "is_running": latest is not None and not latest.is_over,
            "seconds": self._seconds,
            "courses": [asdict(course) for course in courses],
        }

    def close(self) -> None:
        """Ends it, if one is under way."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._latest is not None:
            self._latest.close()


def main(seconds: float = burst_backlog.END_SECONDS) -> None:
    """Shows both, drawn where there is a terminal, else as a line a second."""
    with Comparison(seconds) as both:
        if sys.stdout.isatty():
            with Live(both, refresh_per_second=1 / DRAWN_SECONDS):
                for _ in both.moments(DRAWN_SECONDS):
                    pass
        else:
            for _ in both.moments(LINE_SECONDS):
                if any(course.bytes for course in both.courses.values()):
                    _say(both.line())
        fifo, chain = both.courses.values()
        if fifo.peak_bytes and chain.peak_bytes:
            ratio = fifo.peak_bytes / chain.peak_bytes
            _say(f"Under FIFO {ratio:.1f} times as much waited at the worst as under Chain.")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
