"""A server under load: many queries, many readers, tuples by POST; and what a slow reader does.

    python -m benchmarks.serve_load [--quick] [--out DIR] [--rows TUPLES_A_SECOND]

1,000 registered queries, 200 readers of server-sent events, 10,000 tuples a second by POST from
this process, all on one machine. Delivery lag is from before the POST until a reader has the row.
Goals: /ping p95 below 100 ms, delivery p95 below 2 s. Five more read a query that puts out every
tuple, or never read it, so that their buffers fill up: the p95 of the others stays within 10 %.
The two are measured one right after the other, in rounds that begin with the one and with the other
in turns, and compared round by round: what else the machine does hits both. The median counts.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress

QUERIES, READERS, TUPLES = 1_000, 200, 10_000
POSTS_A_SECOND = 10
PING_GOAL_SECONDS, LAG_GOAL_SECONDS, HARM_GOAL = 0.1, 2.0, 1.1
LARGE_READERS, ROUNDS, WARM_SECONDS = 5, 6, 2.0
PINGING = """
import http.client, json, sys, time
address, ends, found = sys.argv[1].split("//")[1], time.time() + float(sys.argv[2]), []
connection = http.client.HTTPConnection(address, timeout=30)
while time.time() < ends:
    began = time.perf_counter()
    connection.request("GET", "/ping")
    connection.getresponse().read()
    found.append(time.perf_counter() - began)
    time.sleep(0.1)
print(json.dumps(found))
"""
STREAM = """
CREATE STREAM S (k INT, sent DOUBLE);
CREATE QUERY everything AS SELECT k, sent FROM S;
"""


@dataclass
class Load:
    """What was seen in one run."""

    lags: list[float] = field(default_factory=list)
    pings: list[float] = field(default_factory=list)
    posts: list[float] = field(default_factory=list)
    sent: int = 0
    taken: int = 0
    """How many of the tuples count: those of before are to fill buffers."""
    counts_after: float = 0.0
    server_seconds: float = 0.0
    """The processor time of the server."""
    is_over: bool = False

    def add(self, other: Load) -> None:
        self.lags += other.lags
        self.pings += other.pings
        self.posts += other.posts
        self.sent += other.sent
        self.taken += other.taken
        self.server_seconds += other.server_seconds

    def lag(self) -> float:
        """How long delivery takes at most, for 95 of 100."""
        return self.p95(self.lags)

    def p95(self, values: list[float]) -> float:
        return float(np.percentile(values, 95)) if values else float("nan")


def main() -> None:
    parser = options(__doc__ or "", "tuples a second")
    asked = parser.parse_args()
    report = Report("serve_load", asked.out)
    seconds = 24.0 if asked.quick else 80.0
    rate = asked.rows or TUPLES
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "load.cql"
        script.write_text(STREAM)
        port = _free_port()
        command = [sys.executable, "-m", "millpond", "serve", str(script), "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _measure(report, f"http://127.0.0.1:{port}", server.pid, seconds, rate)
        finally:
            server.terminate()
            server.wait(60)
    report.close()


def _measure(report: Report, url: str, pid: int, seconds: float, rate: int) -> None:
    _wait_until_ready(url)
    registration = _register(url)
    calm, quick, slow = Load(), Load(), Load()
    harms: list[float] = []
    with progress(2 + 2 * ROUNDS) as work:
        work("warming up")
        _ = asyncio.run(_run(url, 5.0, rate, 0, 0))
        work("200 readers")
        calm.add(asyncio.run(_run(url, seconds, rate, 0, 0)))
        for number in range(ROUNDS):
            found = {}
            for never in (0, LARGE_READERS) if number % 2 else (LARGE_READERS, 0):
                work(f"and {LARGE_READERS} more, of which {never} never read")
                before = _processor_seconds(pid)
                found[never] = asyncio.run(_run(url, seconds / ROUNDS, rate, LARGE_READERS, never))
                found[never].server_seconds = _processor_seconds(pid) - before
            harms.append(found[LARGE_READERS].lag() / found[0].lag())
            quick.add(found[0])
            slow.add(found[LARGE_READERS])
    rss = psutil.Process(pid).memory_info().rss
    about = {"queries": QUERIES, "readers": READERS, "tuples_per_second": calm.taken / seconds}
    report.value("registration of a query", 1e3 * registration / QUERIES, "ms")
    report.value("tuples taken", calm.taken / seconds, "tuples/s", **about)
    report.value("events delivered", len(calm.lags) / seconds, "events/s", **about)
    _goal(report, "delivery lag p95", calm.lag(), LAG_GOAL_SECONDS, about)
    _goal(report, "/ping p95", calm.p95(calm.pings), PING_GOAL_SECONDS, about)
    report.value("POST p95", 1e3 * calm.p95(calm.posts), "ms")
    report.value("RSS of the server", rss / 2**20, "MB")
    report.ratio(
        "neighbours of slow readers, p95, median of rounds",
        float(np.median(harms)),
        HARM_GOAL,
        at_most=True,
        millpond=slow.lag(),
        peer=quick.lag(),
        rounds=[round(each, 3) for each in harms],
    )
    report.ratio(
        "processor time of the server with slow readers, a tuple",
        (slow.server_seconds / slow.sent) / (quick.server_seconds / quick.sent),
        millpond=slow.server_seconds,
        peer=quick.server_seconds,
    )
    report.draw("lag", lambda figure: _plot(figure, quick, slow))


def _processor_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _goal(report: Report, case: str, seconds: float, goal: float, about: dict[str, Any]) -> None:
    report.value(case, 1e3 * seconds, "ms", **about, goal=1e3 * goal, met=seconds < goal)


def _plot(figure: Figure, calm: Load, slow: Load) -> None:
    axes = figure.subplots()
    for name, load in (("all read", calm), (f"{LARGE_READERS} never read", slow)):
        lags = np.sort(load.lags)
        axes.plot(lags, np.linspace(0, 1, len(lags)), label=name)
    axes.set_xlabel("delivery lag in seconds")
    axes.set_ylabel("share of events")
    axes.legend()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str) -> None:
    for _ in range(600):
        try:
            if httpx.get(url + "/ready", timeout=1).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit("the server never came up")


def _register(url: str) -> float:
    began = time.perf_counter()
    for first in range(0, QUERIES, 100):
        text = ";".join(
            f"CREATE QUERY q{n} AS SELECT k, sent FROM S WHERE k = {n}"
            for n in range(first, first + 100)
        )
        httpx.post(url + "/api/execute", json={"text": text}, timeout=120).raise_for_status()
    return time.perf_counter() - began


async def _run(url: str, seconds: float, rate: int, many: int, slow: int) -> Load:
    """A load with so many readers of everything, of which some never read."""
    load = Load()
    host, port = url.removeprefix("http://").split(":")
    readers = [
        asyncio.create_task(_read(load, host, int(port), number)) for number in range(READERS)
    ]
    large = [await _open(host, int(port), "everything") for _ in range(many - slow)]
    readers += [asyncio.create_task(_drain(reader)) for reader, _ in large]
    deaf = [_open_deaf(host, int(port), "everything") for _ in range(slow)]
    await asyncio.sleep(1.0)
    load.counts_after = time.time() + WARM_SECONDS
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        await asyncio.gather(
            _every(
                1 / POSTS_A_SECOND,
                WARM_SECONDS + seconds,
                lambda: _post(load, http, rate // POSTS_A_SECOND),
            ),
            _ping(load, url, seconds),
        )
    await asyncio.sleep(2.0)
    load.is_over = True
    for task in readers:
        task.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    for _, writer in large:
        writer.close()
    for connection in deaf:
        connection.close()
    return load


async def _every(pause: float, seconds: float, action: Callable[[], Awaitable[None]]) -> None:
    """Begins an action again and again, whether or not the one before is over."""
    loop = asyncio.get_running_loop()
    began, tasks = loop.time(), []
    for number in range(int(seconds / pause)):
        await asyncio.sleep(max(0.0, began + number * pause - loop.time()))
        tasks.append(asyncio.ensure_future(action()))
    await asyncio.gather(*tasks)


async def _post(load: Load, http: httpx.AsyncClient, rows: int) -> None:
    began = time.time()
    first = load.sent
    load.sent += rows
    lines = [f'{{"k":{(first + n) % QUERIES},"sent":{began!r}}}' for n in range(rows)]
    answer = await http.post("/api/streams/S/tuples", content="\n".join(lines))
    answer.raise_for_status()
    if began >= load.counts_after:
        load.taken += rows
        load.posts.append(time.time() - began)


async def _ping(load: Load, url: str, seconds: float) -> None:
    """Pings from a process of its own, which has nothing else to do."""
    command = (sys.executable, "-c", PINGING, url, str(seconds))
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    told, _ = await process.communicate()
    load.pings += json.loads(told)


async def _open(
    host: str, port: int, query: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port, limit=2**22)
    writer.write(_request(host, port, query))
    await writer.drain()
    return reader, writer


def _open_deaf(host: str, port: int, query: str) -> socket.socket:
    """A reader that takes nothing, with so little room that the server notices at once."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect((host, port))
    connection.sendall(_request(host, port, query))
    return connection


def _request(host: str, port: int, query: str) -> bytes:
    path = f"/api/queries/{query}/results?format=sse"
    return f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


async def _read(load: Load, host: str, port: int, query: int) -> None:
    reader, writer = await _open(host, port, f"q{query}")
    try:
        while line := await reader.readline():
            if line.startswith(b"data: [{"):
                now = time.time()
                sent = [row["row"]["sent"] for row in json.loads(line[6:])]
                load.lags += [now - each for each in sent if each >= load.counts_after]
    finally:
        writer.close()


if __name__ == "__main__":
    main()
