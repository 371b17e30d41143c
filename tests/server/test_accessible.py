"""The page for whoever cannot see it, or not all of its colours: axe-core finds nothing serious."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from millpond.demo.side_by_side import OnDemand
from tests.drawn_examples import TIMES
from tests.server.browser_pages import a_browser, visited, write
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT, b DOUBLE) TIMESTAMP BY t;
CREATE RELATION R (a INT PRIMARY KEY, name STRING) FROM push();
CREATE VIEW v AS SELECT a, b FROM S WHERE b > 0;
CREATE QUERY every AS SELECT a, b FROM v;
CREATE QUERY named AS
  SELECT name, COUNT(*) AS n FROM S [RANGE 100], R WHERE S.a = R.a GROUP BY name;
CREATE QUERY failing AS SELECT CAST(a * 1000000000 AS INT) AS c FROM S;
"""
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running(SCRIPT) as server:
        server.service.burst, server.service.comparing = (lambda: None), OnDemand()
        engine = server.service.engine
        engine.push("R", [(1, "one"), (2, "two")])
        engine.push("S", [(t, t % 4, t / 2) for t in range(1, 40)])
        server.wait(lambda: engine.result_count("every") > 20)
        yield server


def findings(page: Page) -> list[str]:
    """What is serious, each with the elements it is about."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:150]} {node['any'][:1]}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("theme", "width"), [("light", 1300), ("dark", 390)])
def test_no_view_has_a_serious_fault(
    browser: Browser, served: Running, theme: str, width: int
) -> None:
    with visited(browser, served.url, width) as page:
        page.emulate_media(color_scheme=theme)
        expect(page.locator("#query-list")).to_contain_text("named")
        found = {}
        for tab in ("queries", "plan", "charts", "faults"):
            page.click(f"#tab-{tab}")
            expect(page.locator(f"#view-{tab}")).to_be_visible()
            found[tab] = findings(page)
        page.click("#tab-queries")
        page.click("#input-list .item[data-key=R]")
        expect(page.locator("#input-readers")).to_contain_text("named")
        found["input"] = findings(page)
        write(page, "SELECT a FROM S", "other")
        found["editor"] = findings(page)
        page.click("#tab-plan")
        operator = page.locator("#plan-entity option[value^=operator]").first
        page.select_option("#plan-entity", operator.get_attribute("value"))
        expect(page.locator("#box-queries li").first).to_be_visible()
        found["control"] = findings(page)
    assert {view: faults for view, faults in found.items() if faults} == {}


@pytest.mark.parametrize("width", [1300, 390] if TIMES else [1300])
def test_the_description_of_the_api_has_no_serious_fault(
    browser: Browser, served: Running, width: int
) -> None:
    with visited(browser, served.url + "/docs", width) as page:
        expect(page.locator(".opblock-summary-path").first).to_be_visible()
        page.add_style_tag(content="* { transition: none !important; animation: none !important }")
        found = {"folded": findings(page)} if TIMES else {}  # as most of it is when unfolded, too
        for method in ("get", "post", "put", "delete"):
            page.locator(f".opblock-{method} .opblock-summary-control").first.click()
            expect(page.locator(f".opblock-{method} .opblock-body").first).to_be_visible()
        page.locator(".opblock-post .try-out__btn").first.click()
        expect(page.locator(".opblock-post .execute").first).to_be_visible()
        found["unfolded"] = findings(page)
    assert {view: faults for view, faults in found.items() if faults} == {}


def test_a_fault_would_be_found(browser: Browser, served: Running) -> None:
    with visited(browser, served.url) as page:
        page.evaluate("document.querySelector('main').prepend(document.createElement('button'))")
        page.add_style_tag(content="h2 { color: #777 !important; background: #888 !important }")
        assert {each.split(":")[0] for each in findings(page)} >= {"button-name", "color-contrast"}
