"""The page at eight queries and at many: folded plans, lists in pages, inputs, edits, files.

One test a sentence, with one server and one browser; none needs a JVM.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.patience import wait_until
from tests.server.browser_pages import SAID, a_browser, settled, visited
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow

ALIKE = 120
SCRIPT = """
CREATE STREAM Trades (t BIGINT, symbol STRING, price DOUBLE) TIMESTAMP BY t;
CREATE RELATION Names (symbol STRING PRIMARY KEY, whole STRING);
CREATE VIEW per_symbol AS SELECT symbol, COUNT(*) AS n FROM Trades [RANGE 1000000] GROUP BY symbol;
CREATE QUERY busy AS SELECT symbol, n FROM per_symbol WHERE n > 2;
CREATE QUERY quiet AS SELECT COUNT(*) AS symbols FROM per_symbol;
CREATE QUERY named AS
  SELECT whole, MAX(price) AS top FROM Trades [RANGE 1000000], Names
  WHERE Trades.symbol = Names.symbol GROUP BY whole;
CREATE QUERY dear AS SELECT symbol, price FROM Trades WHERE price > 90;
""" + "".join(
    f"CREATE QUERY of_{number:03} AS SELECT price FROM Trades WHERE symbol = 'S{number}';\n"
    for number in range(ALIKE)
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running(SCRIPT) as server:
        engine = server.service.engine
        engine.push("Names", [(f"S{n}", f"Number {n}") for n in range(300)])
        engine.push("Trades", [(t, f"S{t % 400}", float(t % 100)) for t in range(1, 2000)])
        server.wait(lambda: engine.result_count("dear") > 150)
        yield server


@pytest.fixture
def page(browser: Browser, served: Running) -> Iterator[Page]:
    with visited(browser, served.url) as made:
        expect(made.locator("#query-name")).to_have_text("busy")
        yield made


def nodes(page: Page) -> list[str]:
    """The labels of the boxes that are drawn."""
    found: list[str] = page.evaluate(
        "() => document.querySelector('#plan')._cyreg.cy.nodes('[kind]').map(n => n.data('label'))"
    )
    return found


def tap(page: Page, selector: str) -> None:
    """Clicks an element of the plan, found by a selector of its own."""
    page.evaluate(
        "s => { document.querySelector('#plan')._cyreg.cy.elements(s)[0].emit('tap'); }", selector
    )


def test_queries_of_one_shape_are_one_box(page: Page) -> None:
    page.click("#tab-plan")
    box = page.locator("#plan-entity option", has_text=f"{ALIKE} queries of one shape")
    expect(box).to_have_count(1)
    assert len(nodes(page)) < 30
    value = box.get_attribute("value")
    assert value is not None
    page.select_option("#plan-entity", value)
    listed = page.locator("#box-queries li")
    expect(listed).to_have_count(20)
    page.fill("#box-queries input", "of_117")
    expect(listed).to_have_count(1)
    listed.locator("button").click()
    expect(page.locator("#control-title")).to_have_text("query of_117")
    page.select_option("#plan-mode", "query")
    page.fill("#plan-query", "named")
    page.press("#plan-query", "Enter")
    expect(page.locator("#plan-entity option", has_text="stream Trades").first).to_be_attached()
    expect(page.locator("#plan-entity option", has_text="of one shape")).to_have_count(0)


def test_views_are_folded_and_unfolded(page: Page) -> None:
    page.click("#tab-plan")
    view = page.locator("#plan-views button", has_text="per_symbol")
    expect(view).to_have_attribute("aria-pressed", "true")
    assert any(label.startswith("view per_symbol") for label in nodes(page))
    view.click()
    expect(view).to_have_attribute("aria-pressed", "false")
    assert not any(label.startswith("view per_symbol") for label in nodes(page))
    page.click("#plan-fold")
    expect(view).to_have_attribute("aria-pressed", "true")


def test_the_plan_is_searched_zoomed_and_has_a_map(page: Page) -> None:
    page.click("#tab-plan")
    page.fill("#plan-find", "of_042")
    expect(page.locator("#plan-note")).to_contain_text("1 of the boxes have to do with")
    page.fill("#plan-find", "nothing like it")
    expect(page.locator("#plan-note")).to_contain_text("Nothing in the plan")
    page.fill("#plan-find", "")
    zoom = "() => document.querySelector('#plan')._cyreg.cy.zoom()"
    before = page.evaluate(zoom)
    for _ in range(4):
        page.click("#plan-in")
    assert page.evaluate(zoom) > 2 * before
    expect(page.locator("#plan-map")).to_have_css("visibility", "visible")
    pan = "() => document.querySelector('#plan')._cyreg.cy.pan()"
    was = page.evaluate(pan)
    page.locator("#plan-map").click(position={"x": 20, "y": 20})
    assert page.evaluate(pan) != was
    page.click("#plan-fit")
    expect(page.locator("#plan-map")).to_have_css("visibility", "hidden")


def test_texts_of_the_plan_can_be_read_at_eight_queries(browser: Browser) -> None:
    script = "CREATE STREAM S (t BIGINT, a INT, b INT) TIMESTAMP BY t;" + "".join(
        f"CREATE QUERY q{n} AS SELECT {what} FROM S [RANGE {n + 1}0] {rest};"
        for n, (what, rest) in enumerate(
            [
                ("a, COUNT(*) AS n", "GROUP BY a"),
                ("b, SUM(a) AS n", "GROUP BY b"),
                ("MAX(a) AS m", ""),
                ("DISTINCT a", ""),
                ("a, b", "WHERE a > b"),
                ("AVG(b) AS m", "WHERE a < 5"),
                ("a, MIN(b) AS m", "GROUP BY a"),
                ("COUNT(*) AS n", "WHERE b = 3"),
            ]
        )
    )
    with running(script) as server, visited(browser, server.url + "/#plan", 1440) as page:
        server.service.engine.push("S", [(t, t % 7, t % 3) for t in range(100)])
        expect(page.locator("#plan-entity option", has_text="stream S").first).to_be_attached()
        smallest = settled(
            page,
            """() => { const plan = document.querySelector('#plan')._cyreg.cy;
                 const sizes = plan.elements().map((each) => each.numericStyle('font-size'));
                 return plan.zoom() * Math.min(...sizes); }""",
        )
        assert smallest >= 8


LONG = "trades_that_meet_names_of_their_symbol_within_half_a_minute_or_so"


def test_texts_of_boxes_stay_inside_them(browser: Browser) -> None:
    script = f"""
        CREATE STREAM Trades (t BIGINT, symbol STRING, price DOUBLE) TIMESTAMP BY t;
        CREATE QUERY {LONG} AS SELECT symbol, MAX(price) AS dear, MIN(price) AS cheap, COUNT(*) AS n
          FROM Trades [RANGE 1000] GROUP BY symbol;
    """
    with running(script) as server, visited(browser, server.url + "/#plan") as page:
        expect(page.locator("#plan-entity option", has_text="query trades").first).to_be_attached()
        outside = settled(
            page,
            """() => document.querySelector('#plan')._cyreg.cy.nodes('[kind]').filter((node) => {
                 const text = node.boundingBox({ includeNodes: false, includeOverlays: false });
                 return text.w > node.outerWidth() || text.h > node.outerHeight();
               }).map((node) => node.data('label'))""",
        )
        assert outside == []


def test_a_plan_that_is_too_large_begins_at_its_first_input(
    browser: Browser, served: Running
) -> None:
    with visited(browser, served.url + "/#plan", 390, 844) as page:
        expect(page.locator("#plan-entity option", has_text="stream Trades").first).to_be_attached()
        shown = settled(
            page,
            """() => { const plan = document.querySelector('#plan')._cyreg.cy;
                 const box = plan.nodes('[kind = "input"]').first().renderedBoundingBox();
                 return box.x1 >= 0 && box.y1 >= 0
                   && box.x2 <= plan.width() && box.y2 <= plan.height(); }""",
        )
        assert shown
        assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize("view", ["queries", "plan", "charts"])
def test_nothing_is_wider_than_a_phone(browser: Browser, view: str) -> None:
    script = f"""
        CREATE STREAM Trades (t BIGINT, price DOUBLE) TIMESTAMP BY t;
        CREATE QUERY {LONG} AS SELECT price FROM Trades;
    """
    with running(script) as server, visited(browser, f"{server.url}/#{view}", 390, 844) as page:
        shown = {"queries": "#query-name", "plan": "#plan canvas", "charts": "#chart-steps canvas"}
        expect(page.locator(shown[view]).first).to_be_visible()
        assert settled(page, "() => document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_bar_covers_no_card_that_is_gone_to(browser: Browser, served: Running) -> None:
    with visited(browser, served.url, 390, 844) as page:
        expect(page.locator("#query-name")).to_have_text("busy")
        page.evaluate("document.getElementById('burst').hidden = false")  # as in the demo
        covered = page.evaluate(
            """() => ['query-card', 'input-card', 'editor-card'].filter((id) =>
                 parseFloat(getComputedStyle(document.getElementById(id)).scrollMarginTop)
                   < document.querySelector('.bar').offsetHeight)"""
        )
        assert covered == []


def test_whatever_is_clicked_shows_its_control_table(page: Page) -> None:
    page.click("#tab-plan")
    title = page.locator("#control-title")
    expect(page.locator("#plan-entity option", has_text="stream Trades").first).to_be_attached()
    tap(page, 'node[kind = "input"]')
    expect(title).to_have_text(re.compile("^(stream|relation) "))
    expect(page.locator("#control-rows")).to_contain_text("promised")
    tap(page, "edge")
    expect(title).to_have_text(re.compile("^queue "))
    page.select_option("#plan-mode", "whole")
    expect(page.locator("#plan-entity option", has_text="synopsis of").first).to_be_attached()
    tap(page, 'node[kind = "synopsis"]')
    expect(title).to_have_text(re.compile("^synopsis op"))
    tap(page, 'node[kind = "operator"]')
    expect(title).to_have_text(re.compile("^operator op"))
    page.click("#control-near button:has-text('its unit')")
    expect(title).to_have_text(re.compile("^unit op"))
    page.click("#control-near button:has-text('the operator')")
    page.click("#control-near button:has-text('its thread')")
    expect(title).to_have_text("thread thread0")
    expect(page.locator("#control-rows")).to_contain_text("operators")


def test_the_priority_of_a_partition_is_a_knob_on_the_page(browser: Browser) -> None:
    script = """
        CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
        CREATE PARTITION urgent PRIORITY 3;
        CREATE QUERY q PARTITION urgent AS SELECT a FROM S;
    """
    with running(script) as server, visited(browser, server.url + "/#plan") as page:
        server.service.engine.push("S", [(1, 1)])
        option = page.locator("#plan-entity option")
        expect(option.filter(has_text=re.compile("^op"))).to_be_attached()
        tap(page, 'node[kind = "operator"]')
        page.click("#control-near button:has-text('its partition')")
        expect(page.locator("#control-title")).to_have_text("partition urgent")
        page.fill("#knob-priority", "5")
        page.press("#knob-priority", "Enter")
        partition = server.service.engine.entities().get("partition", "urgent")
        server.wait(lambda: partition.get("priority") == 5)
        page.select_option("#plan-entity", "partition\turgent")
        expect(page.locator("#knob-priority")).to_have_value("5")


def test_lists_are_searched_ordered_and_in_pages(page: Page, served: Running) -> None:
    names = page.locator("#query-list .name")
    expect(page.locator("#query-list .pager")).to_contain_text("1–50 of 124")
    expect(names).to_have_count(50)
    page.click("#query-list [aria-label^='Next page']")
    expect(page.locator("#query-list .pager")).to_contain_text("51–100 of 124")
    page.fill("#query-list input", "of_11")
    expect(names).to_have_count(10)
    page.fill("#query-list input", "per_symbol")  # what their texts have counts too
    expect(names).to_have_count(2)
    page.fill("#query-list input", "")
    page.select_option("#query-list select", "results down")
    results = served.service.engine.result_count
    expect(names.first).to_have_text(
        max((e.name for e in served.service.registered()), key=results)
    )


def test_a_stream_can_be_browsed(page: Page, served: Running) -> None:
    page.click("#input-list .item[data-key=Trades]")
    expect(page.locator("#query-card")).to_be_hidden()
    expect(page.locator("#input-columns")).to_contain_text("priceDOUBLE")
    expect(page.locator("#input-columns")).to_contain_text("tBIGINTits time")
    for label in ("rows a second", "heartbeat", "too late", "may be late by", "tuples so far"):
        expect(page.locator("#input-figures")).to_contain_text(label)
    first = page.locator("#input-rows tbody tr").first
    expect(first).to_contain_text("1999")
    served.service.engine.push("Trades", [(5000, "S1", 1.25), (5001, "S2", 2.5)])
    expect(first).to_contain_text("5001")
    expect(page.locator("#input-figures")).to_contain_text("5000")
    readers = page.locator("#input-readers .name")
    expect(readers.first).to_have_text("per_symbol")
    page.fill("#input-readers input", "dear")
    expect(readers).to_have_count(1)
    page.click("#input-readers .item")
    expect(page.locator("#query-name")).to_have_text("dear")
    expect(page.locator("#input-card")).to_be_hidden()


def test_a_relation_can_be_browsed(page: Page, served: Running) -> None:
    page.click("#input-list .item[data-key=Names]")
    expect(page.locator("#input-note")).to_have_text("300 rows, the first 100 shown")
    page.fill("#input-find", "number 29")
    expect(page.locator("#input-note")).to_have_text("11 of 300 rows")
    page.click("#input-rows button:has-text('whole')")
    page.click("#input-rows button:has-text('whole')")
    expect(page.locator("#input-rows tbody tr").first).to_contain_text("Number 299")
    expect(page.locator("#input-readers .name")).to_have_text(["named"])


def test_a_query_is_edited_altered_or_replaced(page: Page, served: Running) -> None:
    engine = served.service.engine
    engine.execute("CREATE QUERY mine WEIGHT 3 AS SELECT MAX(price) AS m FROM Trades [RANGE 60]")
    page.fill("#query-list input", "mine")
    page.click(".item[data-key=mine]")
    page.click("#query-edit")
    expect(page.locator("#editor-title")).to_have_text("Edit query mine")
    edit(page, "SELECT MAX(price) AS m FROM Trades [RANGE 90]")
    expect(page.locator("#difference .new")).to_contain_text("RANGE 90")
    expect(page.locator("#difference .gone")).to_contain_text("RANGE 60")
    page.click("#apply:has-text('Alter it')")
    expect(page.locator("#query-text")).to_contain_text("[RANGE 90]")
    page.click("#query-edit")
    edit(page, "SELECT MIN(price) AS least\nFROM Trades [RANGE 90]\nGROUP BY nothing")
    expect(page.locator("#check")).to_contain_text('line 3, column 10: no column "nothing"')
    edit(page, "SELECT MIN(price) AS least FROM Trades [RANGE 90]")
    page.click("#apply:has-text('Replace it')")
    expect(page.locator("#query-text")).to_contain_text("MIN(price) AS least")
    assert engine.query_entry("mine").weight == 3
    engine.execute("DROP QUERY mine")


def edit(page: Page, text: str) -> None:
    page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", text)
    page.click("#register")


def test_results_are_ordered_searched_and_paged(page: Page) -> None:
    page.fill("#query-list input", "busy")
    page.click(".item[data-key=busy]")
    note = page.locator("#result-note")
    expect(note).to_contain_text("400 rows, the first 200 shown")
    first = page.locator("#result-table tbody tr").first
    page.click("#result-after")
    expect(note).to_contain_text("201 to 400 shown")
    page.click("#result-before")
    page.click("#result-table button:has-text('symbol')")
    page.click("#result-table button:has-text('symbol')")
    expect(first).to_contain_text("S99")
    page.fill("#result-find", "s39")
    expect(note).to_have_text("11 of 400 rows")
    expect(first).to_contain_text("S399")


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_results_are_exported(page: Page, form: str) -> None:
    page.fill("#query-list input", "busy")
    page.click(".item[data-key=busy]")
    expect(page.locator("#result-note")).to_contain_text("400 rows")
    page.fill("#result-find", "s39")
    expect(page.locator("#result-note")).to_have_text("11 of 400 rows")
    with page.expect_download() as coming:
        page.click(f"#result-{form}")
    assert coming.value.suggested_filename == f"busy.{form}"
    data = coming.value.path().read_bytes()
    if form == "csv":
        names, *lines = data.decode().split()
        assert names == '"symbol","n"'
        assert len(lines) == 11
        return
    read = pyarrow.parquet.read_table if form == "parquet" else _read_arrow
    table = read(io.BytesIO(data))
    assert table.column_names == ["symbol", "n"]
    assert table.num_rows == 11


def _read_arrow(file: io.BytesIO) -> pa.Table:
    with pa.ipc.open_file(file) as reader:
        return reader.read_all()


def test_charts_go_back_to_the_start(page: Page, served: Running) -> None:
    served.wait(lambda: served.service.history.since(0.0)["samples"])
    page.click("#tab-charts")
    with page.expect_response(re.compile(r"/api/history\?since=0&points=")) as answer:
        page.select_option("#chart-span", "0")
    told = json.loads(answer.value.text())
    assert told["started"] <= told["samples"][0]["time"] < told["started"] + 60
    expect(page.locator("#chart-note")).to_contain_text(re.compile(r"Since \d{4}-.* UTC"))


def test_charts_of_several_days_say_which_day(browser: Browser) -> None:
    day = 86_400.0
    with running("") as server:
        history = server.service.history
        history.take()
        now = history.since(0.0)["samples"][-1]
        hours = [{**now, "time": now["time"] - age * day / 24} for age in range(1, 73)]
        history._levels[0]._samples.extendleft(hours)
        history._marks.appendleft({"time": now["time"] - 2 * day, "what": "long ago"})
        with visited(browser, server.url + "/#charts") as page:
            page.evaluate(SAID)
            page.select_option("#chart-span", "0")
            that_day = time.strftime("%Y-%m-%d", time.gmtime(now["time"] - 2 * day))
            expect(page.locator("#marks")).to_contain_text(f"{that_day} ")
            days = wait_until(
                lambda: page.evaluate(
                    """() => (document.querySelector('#chart-rates canvas')?.said ?? [])
                                 .filter((each) => /^\\d\\d-\\d\\d$/.test(each))"""
                )
            )
    assert len(days) == len(set(days))
    assert that_day[5:] in days


def test_an_approximate_answer_has_a_band(browser: Browser) -> None:
    script = """
        SET overload = 'approximate';
        CREATE STREAM S (t BIGINT, k STRING, a INT) TIMESTAMP BY t;
        CREATE QUERY about TOLERATE (SAMPLE AT LEAST 1 PERCENT, CONFIDENCE 95 PERCENT) AS
          SELECT k, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY k;
        ALTER STREAM S KEEP 50 PERCENT;
    """
    with running(script) as server, visited(browser, server.url) as page:
        server.service.engine.push("S", [(t, "xy"[t % 2], t) for t in range(1, 400)])
        expect(page.locator("#result-chart-title")).to_have_text("n over time")
        expect(page.locator("#result-chart .u-legend .u-series:visible")).to_have_count(2)
        assert page.locator("#result-chart .u-legend .bound").count() == 4


def test_the_api_is_described_without_anything_from_elsewhere(
    browser: Browser, served: Running
) -> None:
    asked: list[str] = []
    with visited(browser, "about:blank") as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(served.url + "/docs")
        expect(page.locator(".opblock-summary-path").first).to_be_visible()
        expect(page.locator("#docs")).to_contain_text("/api/queries/{name}/export")
    elsewhere = [url for url in asked if not url.startswith((served.url, "data:"))]
    assert elsewhere == []
