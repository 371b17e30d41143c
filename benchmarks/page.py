"""The page with many queries and readers: what it fetches, and what it costs tab and server.

    python -m benchmarks.page [--quick] [--out DIR] [--rows TUPLES_A_SECOND]

10,000 registered queries of a few shapes, 200 readers of server-sent events, 1,000 tuples a second
by POST, and one visitor: a real browser (chromium) that looks at each view of the page for a while.
For each view, and for nobody looking: bytes fetched, processor time of the tab and of the server,
all of them for a second, and /ping p95. Goal: /ping p95 below 100 ms whatever is looked at.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import CDPSession, Page, async_playwright

from benchmarks import serve_load
from benchmarks.reporting import Report, options, progress

QUERIES, TUPLES, KEYS = 10_000, 1_000, 1_000
PING_GOAL_SECONDS = 0.1
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
STREAM = """
CREATE STREAM S (k INT, sent DOUBLE);
CREATE QUERY everything AS SELECT k, sent FROM S;
CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM S [RANGE 60 SECONDS] GROUP BY k;
"""
SHAPES = (
    "SELECT k, sent FROM S WHERE k = {n}",
    "SELECT COUNT(*) AS n FROM S [RANGE 60 SECONDS] WHERE k = {n}",
    "SELECT MAX(sent) AS last FROM S [ROWS 10] WHERE k > {n}",
    "SELECT k, COUNT(*) AS n FROM S [RANGE 10 SECONDS] WHERE k < {n} GROUP BY k",
)
LARGE_SHAPES = 2
"""The first shapes have almost all queries; of the others there are a few hundred."""


@dataclass(frozen=True)
class Looked:
    """What a while of looking at one view took, a second."""

    fetched_bytes: float
    tab_seconds: float
    server_seconds: float
    pings: list[float]


class Tab:
    """What a page has fetched and worked so far, as the browser tells it."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self.bytes = 0

    @staticmethod
    async def of(page: Page) -> Tab:
        """Watches a page from now on."""
        tab = Tab(await page.context.new_cdp_session(page))
        tab._session.on("Network.dataReceived", tab._received)
        await tab._session.send("Network.enable")
        await tab._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        return tab

    def _received(self, event: dict[str, Any]) -> None:
        self.bytes += event["dataLength"]

    async def seconds(self) -> float:
        """The processor time of its tasks."""
        found = await self._session.send("Performance.getMetrics")
        named = {each["name"]: each["value"] for each in found["metrics"]}
        return float(named["TaskDuration"])


def main() -> None:
    """Measures it."""
    asked = options(__doc__ or "", "tuples a second").parse_args()
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        raise SystemExit("a browser is needed: apt-get install chromium")
    report = Report("page", asked.out)
    seconds = 10.0 if asked.quick else 60.0
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "page.cql"
        script.write_text(STREAM + ";\n".join(_registered()))
        port = serve_load._free_port()
        command = [sys.executable, "-m", "millpond", "serve", str(script), "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url)
            visit = Visit(url, server.pid, program, seconds, asked.out)
            measured = _measured(visit, asked.rows or TUPLES)
            for view, found in asyncio.run(measured).items():
                _report(report, view, found, seconds)
        finally:
            server.terminate()
            server.wait(60)
    report.close()


def _wait_until_ready(url: str) -> None:
    """Waits for a server that has much to register, and takes no time from it."""
    with httpx.Client(base_url=url, timeout=30) as http:
        while True:
            time.sleep(1)
            with suppress(httpx.HTTPError):
                if http.get("/ready").status_code == 200:
                    return


def _registered() -> list[str]:
    """The statements that register almost all queries."""
    large = QUERIES - 400 - 2
    texts = [SHAPES[n % LARGE_SHAPES].format(n=n % KEYS) for n in range(large)]
    texts += [SHAPES[LARGE_SHAPES + n % 2].format(n=n % KEYS) for n in range(400)]
    return [f"CREATE QUERY q{n} AS {text}" for n, text in enumerate(texts)]


@dataclass(frozen=True)
class Visit:
    """Which server is looked at, by which browser, and for how long each view."""

    url: str
    pid: int
    program: str
    seconds: float
    pictures: Path | None
    """Where pictures of the views go, if anywhere."""


async def _measured(visit: Visit, rate: int) -> dict[str, Looked]:
    """What looking at each view takes, while readers read and tuples come."""
    load = serve_load.Load()
    host, port = visit.url.removeprefix("http://").split(":")
    readers = [
        asyncio.create_task(serve_load._read(load, host, int(port), number))
        for number in range(serve_load.READERS)
    ]
    feeding = asyncio.create_task(_feed(visit.url, rate))
    try:
        return await _views(visit)
    finally:
        for task in (*readers, feeding):
            task.cancel()
        await asyncio.gather(*readers, feeding, return_exceptions=True)


async def _feed(url: str, rate: int) -> None:
    """Sends tuples, ten times a second, until it is cancelled."""
    number = 0
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        while True:
            began = time.time()
            lines = [f'{{"k":{(number + n) % KEYS},"sent":{began!r}}}' for n in range(rate // 10)]
            number += len(lines)
            answer = await http.post("/api/streams/S/tuples", content="\n".join(lines))
            answer.raise_for_status()
            await asyncio.sleep(max(0.0, began + 0.1 - time.time()))


async def _views(visit: Visit) -> dict[str, Looked]:
    looks: dict[str, Callable[[Page], Awaitable[None]]] = {
        "queries": lambda page: page.click("#tab-queries"),
        "the plan by shape": lambda page: page.click("#tab-plan"),
        "charts": lambda page: page.click("#tab-charts"),
        "failures": lambda page: page.click("#tab-faults"),
    }
    found: dict[str, Looked] = {}
    with progress(1 + len(looks)) as work:
        work("nobody looks")
        found["nobody looks"] = await _look(visit, None)
        async with async_playwright() as playwright:
            arguments = ["--no-sandbox", "--disable-gpu"]
            browser = await playwright.chromium.launch(
                executable_path=visit.program, args=arguments
            )
            page = await browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            await page.goto(visit.url)
            await page.wait_for_selector("#query-list li")
            tab = await Tab.of(page)
            for name, look in looks.items():
                work(name)
                await look(page)
                await asyncio.sleep(3.0)
                found[name] = await _look(visit, tab)
                if visit.pictures is not None:
                    await page.screenshot(path=visit.pictures / f"page_{name.split()[-1]}.png")
            await browser.close()
    return found


async def _look(visit: Visit, tab: Tab | None) -> Looked:
    load = serve_load.Load()
    fetched, worked = (tab.bytes, await tab.seconds()) if tab else (0, 0.0)
    served = serve_load._processor_seconds(visit.pid)
    began = time.monotonic()
    await serve_load._ping(load, visit.url, visit.seconds)
    took = time.monotonic() - began
    return Looked(
        ((tab.bytes if tab else 0) - fetched) / took,
        ((await tab.seconds() if tab else 0.0) - worked) / took,
        (serve_load._processor_seconds(visit.pid) - served) / took,
        load.pings,
    )


def _report(report: Report, view: str, found: Looked, seconds: float) -> None:
    about = {"queries": QUERIES, "readers": serve_load.READERS, "seconds": seconds}
    ping = serve_load.Load().p95(found.pings)
    report.value(f"{view}: fetched", found.fetched_bytes / 1e3, "kB/s", **about)
    report.value(f"{view}: the tab works", 100 * found.tab_seconds, "% of a core", **about)
    report.value(f"{view}: the server works", 100 * found.server_seconds, "% of a core", **about)
    met = ping < PING_GOAL_SECONDS
    report.value(
        f"{view}: /ping p95", 1e3 * ping, "ms", **about, goal=1e3 * PING_GOAL_SECONDS, met=met
    )


if __name__ == "__main__":
    main()
