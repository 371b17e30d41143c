"""What only a demo has: the same burst under two strategies, side by side on its page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from millpond.demo.side_by_side import OnDemand
from tests.server.browser_pages import a_browser, visited
from tests.server.serving import Running, running


def test_what_is_no_demo_says_how_to_get_one(server: Running) -> None:
    for answer in (
        server.http.get("/api/demo/comparison"),
        server.http.post("/api/demo/comparison"),
        server.http.post("/api/demo/burst"),
    ):
        assert answer.status_code == 404
        assert "`millpond demo` starts one" in answer.json()["error"]


@pytest.mark.slow
def test_a_burst_under_fifo_and_chain_is_drawn_side_by_side() -> None:
    with running() as server, a_browser() as browser:
        comparing = OnDemand(seconds=4.0)
        server.service.burst, server.service.comparing = (lambda: None), comparing
        try:
            with visited(browser, server.url + "/#charts") as page:
                page.click("#compare")
                expect(page.locator("#chart-compare .u-legend")).to_contain_text("FIFO")
                expect(page.locator("#compare-note")).to_have_text(
                    re.compile(r"^Under FIFO [\d.]+ times as much waited at the worst")
                )
                expect(page.locator("#compare")).to_be_enabled()
            told = server.http.get("/api/demo/comparison").json()
            fifo, chain = told["courses"]
            assert (fifo["strategy"], chain["strategy"]) == ("FIFO", "Chain")
            assert max(fifo["bytes"]) > max(chain["bytes"]) > 0
            assert server.http.post("/api/demo/comparison").status_code == 200
            again = server.http.post("/api/demo/comparison")
            assert again.status_code == 400
            assert "wait until they are through" in again.json()["error"]
        finally:
            comparing.close()
