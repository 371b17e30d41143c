"""The page in a real browser: a query is registered, watched, tuned, fails and is dropped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect, sync_playwright
from pyspark.sql import SparkSession

from millpond.demo.live import SCRIPT, Traffic
from millpond.server.limits import Limits
from tests.patience import PATIENCE_SECONDS
from tests.server.browser_pages import preview_at_leisure, settled
from tests.server.browsing import installed_browser
from tests.server.serving import Running, running

expect.set_options(timeout=1000 * PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def browser_program() -> str:
    path, reason = installed_browser()
    if path is None:
        pytest.skip(reason)
    return path


@pytest.fixture
def demo(spark: SparkSession) -> Iterator[Running]:
    with running(SCRIPT, spark=spark, limits=Limits(ask_seconds=PATIENCE_SECONDS)) as server:
        traffic = Traffic(server.service.engine)
        server.service.burst = traffic.burst
        traffic.start()
        yield server
        traffic.close()


@pytest.fixture
def page(demo: Running, browser_program: str) -> Iterator[Page]:
    faults: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error" and "status of 40" not in message.text:
            faults.append(message.text)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
        page.on("console", heard)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(demo.url)
        yield page
        browser.close()
    assert faults == []


def write(page: Page, name: str, text: str) -> None:
    page.click("#new-query")
    page.fill("#new-name", name)
    page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", text)


@pytest.mark.slow
def test_a_visit(page: Page, demo: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(page.locator("#query-name")).to_have_text("traffic")

    # a mistake is marked where it is, and its mend registered
    write(page, "busy", "SELECT domain, COUNT(*) AS n\nFROM Requests [ROWS 50] GROUP BY domian")
    expect(page.locator("#check")).to_contain_text('line 2, column 34: no column "domian"')
    expect(page.locator(".wrong")).to_have_text("domian")
    write(page, "busy", "SELECT domain, COUNT(*) AS n FROM Requests [ROWS 50] GROUP BY domain")
    page.click("#explain")
    expect(page.locator("#editor-output")).to_contain_text("Aggregate")
    preview_at_leisure(monkeypatch)
    page.click("#preview")
    expect(page.locator("#preview-table tbody tr").first).to_be_visible()
    page.click("#register")
    expect(page.locator("#query-name")).to_have_text("busy")

    # its results move
    expect(page.locator("#result-table tbody tr").first).to_be_visible()
    before = page.inner_text("#result-table tbody")
    page.wait_for_function(
        "text => document.querySelector('#result-table tbody').innerText !== text", arg=before
    )

    # a knob of the query
    page.fill("#query-weight", "3")
    page.press("#query-weight", "Enter")
    demo.wait(lambda: demo.service.engine.query_entry("busy").weight == 3)

    # the plan: an entity, a knob, the tuples that pass a queue
    page.click("#tab-plan")
    page.select_option("#plan-entity", "queue\tstream:requests")
    expect(page.locator("#control-title")).to_have_text("queue of stream Requests")
    page.click("#watch")
    expect(page.locator("#watch-table tbody tr").first).to_be_visible()
    page.click("#watch")
    page.select_option("#plan-entity", "engine\tengine")
    page.fill("#knob-step_rows", "12345")
    page.press("#knob-step_rows", "Enter")
    demo.wait(lambda: demo.service.engine.settings.step_rows == 12345)
    page.select_option("#plan-mode", "query")
    page.fill("#plan-query", "busy")
    page.press("#plan-query", "Enter")
    expect(page.locator("#progress canvas")).to_be_visible()

    # another strategy in the midst of a burst, and its mark
    page.click("#burst")
    page.select_option("#strategy", "chain")
    demo.wait(lambda: demo.service.engine.settings.strategy == "chain")
    page.select_option("#mode", "gts")
    demo.wait(lambda: demo.service.engine.settings.mode == "gts")
    page.click("#tab-charts")
    expect(page.locator("#marks")).to_contain_text("strategy = chain")
    expect(page.locator("#marks")).to_contain_text("burst")
    expect(page.locator("#chart-backlog canvas")).to_be_visible()

    # where would other strategies lie?
    page.click("#plane-predict")
    expect(page.locator("#plane-note")).to_contain_text("predicted by the simulator")
    expect(page.locator("#plane-table tbody tr").first).to_be_visible()

    # a query that fails is shown with its rows
    bad = {"name": "bad", "text": "SELECT 9223372036854775807 + client_id AS x FROM Requests"}
    assert demo.http.post("/api/queries", json=bad).status_code == 201
    page.click("#tab-faults")
    expect(page.locator(".fault")).to_contain_text("leaves the range")
    expect(page.locator(".fault pre")).to_be_visible()

    # and dropped
    page.click("#tab-queries")
    page.click(".item[data-key=bad]")
    expect(page.locator("#query-state")).to_have_text("failed")
    page.click("#query-drop")
    expect(page.locator(".item[data-key=bad]")).to_have_count(0)
    assert demo.http.get("/api/queries/bad").status_code == 404


@pytest.mark.slow
def test_the_page_by_keyboard_on_a_phone_and_in_the_dark(page: Page, demo: Running) -> None:
    expect(page.locator("#query-name")).to_have_text("traffic")
    page.focus("#tab-queries")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-plan")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") in ("dark", "light")
    page.set_viewport_size({"width": 390, "height": 844})
    fits = "() => document.documentElement.scrollWidth <= innerWidth + 1"
    shown = {
        "queries": "#result-table td",
        "plan": "#plan canvas",
        "charts": "#chart-steps canvas",
        "faults": "#late-list p",
    }
    for tab, part in shown.items():
        page.click(f"#tab-{tab}")
        expect(page.locator(part).first).to_be_visible()
        assert settled(page, fits), f"{tab} is wider than a phone"


@pytest.mark.slow
def test_an_empty_server_says_what_to_do(browser_program: str) -> None:
    with running("") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
        page.goto(server.url)
        expect(page.locator("#empty-card")).to_be_visible()
        page.click("#empty-new")
        expect(page.locator("#check")).to_contain_text("No errors")
        page.click("#register")
        expect(page.locator("#query-name")).to_have_text("popular")
        server.service.engine.push("Clicks", [{"page": "<b>x</b>", "user_id": 1}])
        expect(page.locator("#result-table tbody")).to_contain_text("<b>x</b>")
        browser.close()
