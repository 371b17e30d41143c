"""Pages in a real browser for tests: what goes wrong in one fails the test that looked at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from millpond.server.routes import statements
from tests.patience import PATIENCE_SECONDS
from tests.server.browsing import installed_browser

expect.set_options(timeout=1000 * PATIENCE_SECONDS)

EXPECTED = (
    "status of 4",
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
)
"""What a browser says by itself of requests that are refused, or of a server that is gone."""

SAID = """() => {
    const of = CanvasRenderingContext2D.prototype, { fillText, clearRect } = of;
    of.clearRect = function (...box) { this.canvas.said = []; clearRect.apply(this, box); };
    of.fillText = function (text, ...at) {
        (this.canvas.said ??= []).push(text); fillText.call(this, text, ...at);
    };
}"""
"""Has each chart remember the texts of its last drawing."""

SETTLED = """async () => {
    const look = LOOK;
    const frame = () => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    for (let before; ;) {
        const found = look();
        if (JSON.stringify(found) === before) return found;
        before = JSON.stringify(found);
        await frame();
        await frame();
    }
}"""
"""Looks at a page again and again, until two looks with frames between them are alike."""


@contextmanager
def a_browser() -> Iterator[Browser]:
    path, reason = installed_browser()
    if path is None:
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def visited(browser: Browser, url: str, width: int = 1300, height: int = 900) -> Iterator[Page]:
    """A page in a zone of time that is not ours, so that what is of UTC can be told apart."""
    faults: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(each in message.text for each in EXPECTED):
            faults.append(message.text)

    context = browser.new_context(
        viewport={"width": width, "height": height}, timezone_id="Asia/Kathmandu"
    )
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE_SECONDS)
    page.on("console", heard)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(url)
    yield page
    context.close()
    assert not faults, faults


def settled(page: Page, look: str) -> Any:
    """What a function of JavaScript finds once nothing moves: charts are fitted a frame later."""
    return page.evaluate(SETTLED.replace("LOOK", look))


def preview_at_leisure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has previews go on as long as somebody looks: ten seconds are few on a busy machine."""
    previewed = statements._previewed

    def unhurried(*given: Any) -> AsyncIterator[bytes]:
        return previewed(*given[:-1], PATIENCE_SECONDS)

    monkeypatch.setattr(statements, "_previewed", unhurried)


def write(page: Page, text: str, name: str = "") -> None:
    """Writes a text into the editor, which is opened if need be."""
    if page.locator("#editor-card").is_hidden():
        page.click("#new-query")
    page.fill("#new-name", name)
    page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", text)
