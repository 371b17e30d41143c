"""Answers cross on the way to the page: one that comes late, or not at all, does not mislead it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.server.browser_pages import a_browser, settled, visited
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT PRIMARY KEY, name STRING);
CREATE VIEW v AS SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY a;
CREATE QUERY named AS SELECT name, a FROM R;
CREATE QUERY large AS SELECT n FROM v WHERE n > 2;
CREATE QUERY small AS SELECT n FROM v WHERE n < 2;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running(SCRIPT) as server:
        engine = server.service.engine
        engine.push("R", [(n, f"name {n}") for n in range(10)])
        server.wait(lambda: engine.result_count("named") == 10)
        yield server


@pytest.fixture
def page(browser: Browser, served: Running) -> Iterator[Page]:
    with visited(browser, served.url) as made:
        expect(made.locator("#query-name")).to_have_text("named")
        yield made


class Held:
    """The first request that is meant, which is not passed on until somebody lets it go."""

    def __init__(self, page: Page, is_meant: Callable[[str], bool]) -> None:
        self._page = page
        self._route: Route | None = None
        page.route(lambda url: self._route is None and is_meant(url), self._hold)

    def _hold(self, route: Route) -> None:
        if self._route is None:
            self._route = route
        else:
            route.continue_()

    def wait(self) -> None:
        """Waits until it was asked."""
        while self._route is None:
            self._page.wait_for_timeout(10)

    def let_go(self) -> None:
        """Has it answered, and the page see the answer."""
        assert self._route is not None
        request = self._route.request
        with self._page.expect_event("requestfinished", lambda each: each == request):
            self._route.continue_()
        settled(self._page, "() => document.body.innerText")


def test_an_order_that_was_asked_for_before_is_not_shown(page: Page) -> None:
    page.click("#input-list .item[data-key=R]")
    expect(page.locator("#input-note")).to_have_text("10 rows")
    upwards = Held(page, lambda url: "/content" in url and "sort=name" in url)
    page.click("#input-rows button:has-text('name')")
    upwards.wait()
    page.click("#input-rows button:has-text('name')")
    first = page.locator("#input-rows tbody tr").first
    expect(first).to_contain_text("name 9")
    upwards.let_go()
    assert "name 9" in first.inner_text()


def test_changes_are_counted_once_where_two_looks_cross(page: Page, served: Running) -> None:
    engine = served.service.engine
    expect(page.locator("#result-note")).to_have_text("10 rows")
    page.click("#result-table button:has-text('name')")
    upwards = Held(page, lambda url: "/present" in url)
    page.click("#result-table button:has-text('name')")
    upwards.wait()
    with page.expect_request(lambda request: "/results" in request.url):
        page.click("#result-table button:has-text('name')")
    upwards.let_go()
    engine.push("R", [(77, "another")])
    table = page.locator("#result-table")
    expect(table).to_contain_text("another")
    engine.execute("DELETE FROM R WHERE a = 77")
    expect(table).not_to_contain_text("another")
    assert "×" not in table.inner_text()


def test_a_box_that_was_unfolded_is_not_folded_by_a_look_before(page: Page) -> None:
    page.click("#tab-plan")
    view = page.locator("#plan-views button", has_text="v")
    expect(view).to_have_attribute("aria-pressed", "true")
    folded = Held(page, lambda url: "/api/plan?" in url)
    folded.wait()
    view.click()
    expect(view).to_have_attribute("aria-pressed", "false")
    folded.let_go()
    expect(view).to_have_attribute("aria-pressed", "false", timeout=1)


def test_a_table_that_comes_late_takes_no_knob_away(page: Page) -> None:
    page.click("#tab-plan")
    queue = Held(page, lambda url: "/entities/queue/" in url)
    page.select_option("#plan-entity", "queue\tstream:s")
    queue.wait()
    page.select_option("#plan-entity", "engine\tengine")
    expect(page.locator("#knob-step_rows")).to_be_visible()
    queue.let_go()
    assert page.locator("#knob-step_rows").is_visible()
    assert page.inner_text("#control-title") == "engine"


def test_what_was_typed_is_not_replaced_by_a_suggestion(page: Page) -> None:
    page.click("#tab-plan")
    first = Held(page, lambda url: "/api/queries?limit=20" in url)
    page.select_option("#plan-mode", "query")
    first.wait()
    page.fill("#plan-query", "small")
    first.let_go()
    assert page.input_value("#plan-query") == "small"


def test_a_query_whose_first_answer_is_lost_is_shown_with_the_next(page: Page) -> None:
    lost: list[str] = []

    def lose(route: Route) -> None:
        lost.append(route.request.url)
        route.fulfill(status=429, json={"error": "come back in a while"})

    page.route("**/api/queries/large", lose, times=1)
    page.click(".item[data-key=large]")
    expect(page.locator("#query-name")).to_have_text("large")
    expect(page.locator("#query-text")).to_contain_text("n > 2")
    expect(page.locator("#result-note")).to_contain_text("Nothing yet")
    assert len(lost) == 1


def test_a_button_of_a_failure_stays_the_same_button(page: Page, served: Running) -> None:
    engine = served.service.engine
    engine.execute("CREATE QUERY bad AS SELECT 9223372036854775807 + a AS x FROM R")
    page.click("#tab-faults")
    button = page.locator(".fault button").first
    expect(button).to_be_visible()
    button.evaluate("button => { button.isPressed = true; }")
    for _ in range(2):
        with page.expect_response(lambda answer: answer.url.endswith("/api/failures")) as coming:
            pass
        coming.value.finished()
    assert settled(page, "() => document.querySelector('.fault button').isPressed")
    engine.execute("DROP QUERY bad")
    expect(page.locator("#fault-list")).to_contain_text("All queries are well")
