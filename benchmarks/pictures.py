"""The pictures of the README and of docs/server.md: the demo's page, as a browser shows it.

    python -m benchmarks.pictures [--out docs]

The demo is served, Chromium looks at it, presses *Burst*, and goes from the queries to the charts
while it is worked off. Frames become a GIF that fits into 2 MB: frames that show nothing new last
longer, and of the colours those are kept that the page has most of. Then each view is taken once.
"""

from __future__ import annotations

import argparse
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, sync_playwright

from millpond.demo import live
from millpond.demo.side_by_side import OnDemand
from millpond.server.serve import ServeOptions, make_server, make_service
from millpond.settings import Settings
from tests.server.browsing import installed_browser
from tests.server.serving import free_port

WIDTH, HEIGHT = 1_180, 740
FRAME_SECONDS = 0.3
BEFORE_SECONDS, QUERIES_SECONDS, CHARTS_SECONDS = 3.0, 4.0, 14.0
SETTLED_SECONDS, AWAITED_SECONDS = 6.0, 300.0
COLOURS = 128
MOST_BYTES = 2_000_000
ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def served_demo() -> Iterator[str]:
    """The demo behind a port of its own, with some traffic to look back at."""
    options = ServeOptions(port=free_port())
    service = make_service(Settings(strategy="chain"), options)
    traffic = live.Traffic(service.engine)
    comparing = OnDemand()
    service.burst, service.comparing = traffic.burst, comparing
    service.engine.execute(live.SCRIPT, name="demo")
    server = make_server(service, options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    traffic.start()
    while not service.is_ready:
        time.sleep(0.1)
    try:
        yield f"http://127.0.0.1:{options.port}/"
    finally:
        comparing.close()
        traffic.close()
        server.handle_exit(15, None)
        thread.join(30)
        service.engine.close()


def frames(page: Page, seconds: float) -> Iterator[Image.Image]:
    """What the page shows, as often as a second has frames."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.monotonic()
        yield Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        page.wait_for_timeout(max(1.0, 1_000 * (FRAME_SECONDS - (time.monotonic() - began))))


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser."""
    path, reason = installed_browser()
    if path is None:
        raise SystemExit(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def filmed(browser: Browser, url: str) -> list[Image.Image]:
    """The burst, from a moment before it until it is worked off."""
    page = browser.new_page(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", timezone_id="UTC"
    )
    page.goto(url)
    page.get_by_text("traffic", exact=True).first.click()
    page.wait_for_timeout(8_000)  # so that the charts have something to begin with
    taken = list(frames(page, BEFORE_SECONDS))
    page.click("#burst")
    taken += frames(page, QUERIES_SECONDS)
    page.click("#tab-charts")
    taken += frames(page, CHARTS_SECONDS)
    page.close()
    return taken


@dataclass(frozen=True)
class Still:
    """A view of the page: how large it is, in which colours, and where one clicks to see it."""

    clicks: tuple[str, ...]
    size: tuple[int, int] = (1_300, 820)
    scheme: Literal["light", "dark"] = "light"
    entity: str = ""
    """What is chosen in the plan."""
    awaited: str = ""
    """What has to be there before it is taken."""

    def take(self, browser: Browser, url: str, file: Path) -> None:
        """Writes the picture."""
        width, height = self.size
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=self.scheme, timezone_id="UTC"
        )
        page.goto(url)
        for selector in self.clicks:
            page.click(selector)
        if self.entity:
            page.select_option("#plan-entity", self.entity)
            page.click("#watch")
        page.wait_for_timeout(SETTLED_SECONDS * 1_000)
        if self.awaited:
            page.wait_for_selector(self.awaited, timeout=AWAITED_SECONDS * 1_000)
        page.screenshot(path=file)
        page.close()


STILLS = {
    "page_queries.png": Still((".item[data-key=traffic]",)),
    "page_plan.png": Still(("#tab-plan",)),
    "page_input.png": Still(("#input-list .item[data-key=Requests]",)),
    "page_charts.png": Still(
        ("#tab-charts", "#compare"), (1_300, 1_360), awaited="text=times as much waited"
    ),
    "page_dark.png": Still(("#tab-plan",), scheme="dark", entity="queue\tstream:requests"),
    "page_phone.png": Still((".item[data-key=traffic]",), (390, 844)),
}


def joined(taken: list[Image.Image]) -> tuple[list[Image.Image], list[int]]:
    """The frames that differ from the one before, and for how many milliseconds each is shown."""
    kept, lasting = [taken[0]], [FRAME_SECONDS]
    for frame in taken[1:]:
        if ImageChops.difference(frame, kept[-1]).getbbox() is None:
            lasting[-1] += FRAME_SECONDS
        else:
            kept.append(frame)
            lasting.append(FRAME_SECONDS)
    lasting[-1] += 2.0
    return kept, [round(1_000 * each) for each in lasting]


def write(taken: list[Image.Image], file: Path) -> int:
    """Writes the frames; the bytes of the file."""
    kept, lasting = joined(taken)
    palette = _palette(kept)
    drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in kept]
    drawn[0].save(
        file, save_all=True, append_images=drawn[1:], duration=lasting, loop=0, optimize=True
    )
    return file.stat().st_size


def _palette(kept: list[Image.Image]) -> Image.Image:
    """The colours that some of the frames have most of."""
    some = kept[:: max(1, len(kept) // 4)]
    width, height = some[0].size
    sheet = Image.new("RGB", (width, height * len(some)))
    for number, frame in enumerate(some):
        sheet.paste(frame, (0, number * height))
    return sheet.quantize(COLOURS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where they are put")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    with served_demo() as url, browsing() as browser:
        taken = filmed(browser, url)
        for name, still in STILLS.items():
            still.take(browser, url, folder / name)
            print(folder / name)
    file = folder / "page_burst.gif"
    size = write(taken, file)
    print(f"{file}: {len(taken)} frames, {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"more than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
