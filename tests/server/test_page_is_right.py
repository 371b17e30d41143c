"""The page says what is so, in a real browser: values, times, names, refusals, a server that dies.

One test a sentence; none needs a JVM.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from millpond.server.limits import Limits
from millpond.server.tokens import new_token
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.browser_pages import SAID, a_browser, preview_at_leisure, settled, visited, write
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM Sensors (t BIGINT, Name STRING, big BIGINT, small DOUBLE) TIMESTAMP BY t;
CREATE STREAM Moments (at TIMESTAMP, a INT) TIMESTAMP BY at;
CREATE QUERY Values_now AS
  SELECT Name, big, MAX(small) AS small FROM Sensors [RANGE 1000000] GROUP BY Name, big;
CREATE QUERY all_moments AS SELECT a FROM Moments;
CREATE QUERY many AS SELECT big, COUNT(*) AS n FROM Sensors [RANGE 1000000] GROUP BY big;
CREATE QUERY every AS SELECT Name, big FROM Sensors;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running(SCRIPT, limits=Limits(ask_seconds=PATIENCE_SECONDS)) as server:
        yield server


@pytest.fixture
def page(browser: Browser, served: Running) -> Iterator[Page]:
    with visited(browser, served.url) as made:
        yield made


def choose(page: Page, name: str) -> None:
    page.click(f".item[data-key={name}]")
    expect(page.locator("#query-name")).to_have_text(name)


def point_at(page: Page, chart: str) -> None:
    """Points at the newest values of a chart, unless it is being drawn anew."""
    box = page.locator(f"{chart} .u-over").bounding_box()
    if box is None:
        return
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)


def pointed_out(page: Page, chart: str, *texts: str) -> str:
    """Points at the newest values of a chart until they are said, these texts among them."""
    tip = page.locator(f"{chart} .tip")

    def said() -> str:
        point_at(page, chart)
        shown = next(iter(tip.all_inner_texts()), "") if tip.is_visible() else ""
        return shown if all(text in shown for text in texts) else ""

    return wait_until(said)


def push(server: Running, *rows: tuple[int, str, int, float]) -> None:
    server.service.engine.push("Sensors", rows)


def test_values_show_as_they_are(page: Page, served: Running) -> None:
    push(served, (1, "a", 2**63 - 1, 0.0001), (2, "b", 2**53 + 1, 1 / 3), (3, "c", 7, 1e-300))
    push(served, (4, "d", 8, 1.5))
    choose(page, "Values_now")
    table = page.locator("#result-table tbody")
    for each in ("9223372036854775807", "9007199254740993", "1e-300"):  # one comes after another
        expect(table).to_contain_text(each)
    rows = [line.split("\t") for line in page.inner_text("#result-table tbody").split("\n")]
    assert ["a", "9223372036854775807", "0.0001"] in rows
    assert ["b", "9007199254740993", "0.333333"] in rows
    assert ["c", "7", "1e-300"] in rows
    expect(page.locator("#result-table td", has_text="0.333333")).to_have_attribute(
        "title", "0.3333333333333333"
    )
    assert pointed_out(page, "#result-chart", "a 9223372036854775807: 0.0001", "c 7: 1e-300")
    served.http.post("/api/ask", json={"text": "SELECT big FROM Sensors [ROWS 3]"})
    write(page, "SELECT big, small FROM Sensors [RANGE 1000000]")
    page.click("#ask")
    expect(page.locator("#editor-output")).to_contain_text("9007199254740993")
    page.click("#close-editor")


def test_only_rows_that_are_shown_are_fetched(browser: Browser, served: Running) -> None:
    push(served, *((10 + each // 100, f"n{each}", each, 0.5) for each in range(3000)))
    served.wait(lambda: served.service.engine.result_count("every") >= 2900)
    fetched: list[int] = []

    def count(request: Request) -> None:
        assert "/results" not in request.url
        if "/latest" in request.url or "/present" in request.url:
            response = request.response()
            assert response is not None
            fetched.append(len(json.loads(response.text())["rows"]))

    with visited(browser, served.url) as page:
        page.on("requestfinished", count)
        choose(page, "every")
        expect(page.locator("#result-table tbody tr")).to_have_count(100)
        expect(page.locator("#result-note")).to_contain_text("put out, the last 100 shown")
        choose(page, "many")
        expect(page.locator("#result-note")).to_contain_text("the first 200 shown")
        expect(page.locator("#result-table tbody tr")).to_have_count(200)
        # what was there before is drawn as no burst
        choose(page, "every")
        assert "elements a second: 0" in pointed_out(page, "#result-chart")
    assert fetched
    assert max(fetched) <= 200


def test_a_relation_that_grows_large_and_small_again_is_right(browser: Browser) -> None:
    script = "CREATE RELATION R (a INT PRIMARY KEY); CREATE QUERY q AS SELECT a FROM R GROUP BY a;"
    with running(script) as server, visited(browser, server.url) as page:
        engine = server.service.engine
        engine.push("R", [(each,) for each in range(3)])
        expect(page.locator("#result-note")).to_have_text("3 rows")
        engine.push("R", [(each,) for each in range(3, 1000)])
        expect(page.locator("#result-note")).to_contain_text("1000 rows, the first 200 shown")
        expect(page.locator("#result-table tbody tr")).to_have_count(200)
        engine.execute("DELETE FROM R WHERE a > 4")
        expect(page.locator("#result-note")).to_have_text("5 rows")
        assert page.inner_text("#result-table tbody").split() == ["0", "1", "2", "3", "4"]


def test_a_dead_server_turns_the_page_grey_and_comes_back_without_traces(
    browser: Browser, tmp_path: Path
) -> None:
    script = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t; CREATE QUERY q AS SELECT a FROM S;"
    with running(script) as server:
        server.service.engine.push("S", [(1, 41), (2, 42)])
        port = int(server.url.rsplit(":", 1)[1])
        context = visited(browser, server.url)
        page = context.__enter__()
        expect(page.locator("#result-table tbody")).to_contain_text("41")
    words = page.locator("#words")
    expect(words).to_have_text(re.compile(r"^No word from the server since \d\d:\d\d:\d\d UTC;"))
    expect(page.locator("body")).to_have_class("silent")
    grey = page.evaluate("getComputedStyle(document.querySelector('main')).filter")
    assert grey == "grayscale(1)"
    with running(script, port=port) as server:
        expect(words).to_contain_text("Bottleneck")
        expect(page.locator("body")).not_to_have_class("silent")
        server.service.engine.push("S", [(7, 70), (8, 80)])
        expect(page.locator("#result-table tbody")).to_contain_text("70")
        expect(page.locator("#result-table tbody")).not_to_contain_text("41")
        expect(page.locator("#said-bar")).to_be_hidden()
        context.__exit__(None, None, None)


def test_what_is_refused_says_why_in_words(page: Page, served: Running) -> None:
    choose(page, "many")
    page.fill("#query-weight", "-1")
    page.press("#query-weight", "Enter")
    said = page.locator("#said")
    expect(said).to_have_text("weight: -1.0 will not do; it must be above 0")
    expect(page.locator("#query-weight")).to_have_value("1")
    page.wait_for_timeout(1500)  # the next looks take it not away
    expect(said).to_be_visible()
    page.click("#said-close")
    expect(said).to_be_hidden()
    write(page, "SELECT big FROM Sensors", "two words")
    page.click("#register")
    expect(page.locator("#check")).to_contain_text(
        "name: 'two words' will not do; it must be a letter or _"
    )
    page.click("#close-editor")
    page.click("#tab-plan")
    page.select_option("#plan-entity", "engine\tengine")
    page.fill("#knob-step_rows", "-5")
    page.press("#knob-step_rows", "Enter")
    expect(page.locator(".knob .said", has_text="step_rows")).to_be_visible()


def test_a_wrong_token_is_told(browser: Browser, tmp_path: Path) -> None:
    token, line = new_token("read")
    file = tmp_path / "tokens"
    file.write_text(line + "\n")
    file.chmod(0o600)
    with running(SCRIPT, tokens=file, token=token) as server, visited(browser, server.url) as page:
        expect(page.locator("#token-said")).to_contain_text("only who has a token")
        page.fill("#token", "wrong")
        page.click("#token-dialog button")
        expect(page.locator("#token-said")).to_contain_text("does not know this token")
        page.fill("#token", token)
        page.click("#token-dialog button")
        choose(page, "many")
        page.fill("#query-weight", "3")
        page.press("#query-weight", "Enter")
        expect(page.locator("#said")).to_contain_text("needs the role write; the token has read")


def test_who_clicks_before_the_first_answer_gets_the_editor(
    browser: Browser, served: Running
) -> None:
    with visited(browser, "about:blank") as page:
        page.add_init_script("window.fetch = () => new Promise(() => {})")  # nobody answers
        page.goto(served.url)
        write(page, "SELECT big FROM Sensors")
        expect(page.locator("#editor-card")).to_be_visible()


def test_show_and_explain_answer(page: Page) -> None:
    write(page, "SHOW QUERIES; EXPLAIN SELECT big FROM Sensors")
    expect(page.locator("#register")).to_have_text("Run")
    page.click("#register")
    output = page.locator("#editor-output")
    expect(output.locator("th").first).to_have_text("name")
    expect(output).to_contain_text("Values_now")
    expect(output.locator("pre")).to_contain_text("Stream Sensors")
    expect(page.locator("#editor-card")).to_be_visible()


def test_times_are_of_one_zone_that_is_said(page: Page, served: Running) -> None:
    moments = [("2026-03-01T12:00:00.5", 1), ("2026-03-01T12:00:07", 2)]
    served.service.engine.push("Moments", moments)
    served.service.history.mark("a mark")
    expect(page.locator("#zone")).to_have_text("times in UTC")
    choose(page, "all_moments")
    expect(page.locator("#result-table th").first).to_have_text("time (UTC)")
    expect(page.locator("#result-table tbody")).to_contain_text("12:00:00.500")
    expect(page.locator("#query-figures")).to_contain_text(re.compile(r"2026-03-01 .* UTC"))
    page.click("#tab-charts")
    marked = page.locator("#marks li time").first
    expect(marked).to_have_text(re.compile(r"^\d\d:\d\d:\d\d UTC$"))
    now = page.evaluate("new Date().toISOString().slice(11, 13)")
    assert page.inner_text("#marks li time")[:2] in (now, f"{(int(now) - 1) % 24:02}")


def test_a_stream_that_was_chosen_before_its_first_tuple_has_its_zone_too(
    browser: Browser,
) -> None:
    with running(SCRIPT) as server, visited(browser, server.url) as page:
        choose(page, "all_moments")
        expect(page.locator("#result-table th").first).to_have_text("time")
        moments = [("2026-03-01T12:00:00.5", 1), ("2026-03-01T12:00:07", 2)]
        server.service.engine.push("Moments", moments)
        expect(page.locator("#result-table th").first).to_have_text("time (UTC)")


def test_values_show_where_the_pointer_is(page: Page) -> None:
    page.click("#tab-charts")
    tip = pointed_out(page, "#chart-rates")
    assert re.search(r"\d\d:\d\d:\d\d UTC", tip)
    assert "in: " in tip


def test_axes_say_no_time_twice_and_numbers_alike(page: Page) -> None:
    page.evaluate(SAID)
    choose(page, "every")
    drawn = """() => { const said = document.querySelector('#result-chart canvas')?.said ?? [];
                       return said.some((each) => each.includes(':')) ? said : null; }"""
    said = wait_until(lambda: page.evaluate(drawn))  # few seconds are drawn
    times = [each for each in said if ":" in each]
    assert len(times) == len(set(times))
    numbers = [each for each in said if ":" not in each]
    assert len(numbers) > 1
    assert len({len(each.partition(".")[2]) for each in numbers}) == 1


def test_a_query_that_failed_does_not_promise_results(browser: Browser) -> None:
    script = """
        CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
        CREATE QUERY bad AS SELECT 9223372036854775807 + a AS x FROM S;
    """
    with running(script) as server, visited(browser, server.url) as page:
        expect(page.locator("#result-note")).to_contain_text("Nothing yet")
        server.service.engine.push("S", [(1, 7), (2, 0)])
        expect(page.locator("#result-note")).to_contain_text("it failed")


def test_a_budget_far_above_is_said_in_words(browser: Browser) -> None:
    with running(SCRIPT) as server, visited(browser, server.url + "/#charts") as page:
        legend = page.locator("#chart-backlog .u-legend")
        expect(legend).to_contain_text(re.compile(r"budget [\d.]+ [KMG]B, far above"))


@pytest.mark.parametrize("width", [1440, 390])
def test_charts_and_legends_are_inside_their_cards(
    browser: Browser, served: Running, width: int
) -> None:
    with visited(browser, served.url + "/#charts", width) as page:
        expect(page.locator("#chart-latency .u-legend")).to_be_visible()
        outside = settled(
            page,
            """() => [...document.querySelectorAll('#view-charts .card')].flatMap((card) => {
                 const own = card.getBoundingClientRect();
                 return [...card.querySelectorAll('canvas, .u-legend, .u-series, .note, .tip')]
                   .map((part) => [part.className || part.tagName, part.getBoundingClientRect()])
                   .filter(([, box]) => box.width && (box.left < own.left - 1
                     || box.right > own.right + 1 || box.bottom > own.bottom + 1))
                   .map(([name]) => name);
               })""",
        )
        assert outside == []
        hidden = settled(
            page,
            """() => [...document.querySelectorAll('#view-charts .chart')].filter((chart) =>
                 chart.scrollHeight > chart.clientHeight + 1).map((chart) => chart.id)""",
        )
        assert hidden == []


def test_names_are_as_they_were_written(page: Page) -> None:
    page.click("#tab-plan")
    page.select_option("#plan-entity", "queue\tstream:sensors")
    expect(page.locator("#control-title")).to_have_text("queue of stream Sensors")
    chosen = page.locator("#plan-entity option:checked")
    expect(chosen).to_have_text("queue of stream Sensors")


def test_a_failure_has_its_time_its_row_and_what_to_do(browser: Browser) -> None:
    script = """
        CREATE STREAM S (at TIMESTAMP, a INT) TIMESTAMP BY at;
        CREATE QUERY bad AS SELECT a, 9223372036854775807 + a AS x FROM S;
    """
    with running(script) as server, visited(browser, server.url + "/#faults") as page:
        engine = server.service.engine
        engine.push("S", [("2026-03-01T12:00:00", 0), ("2026-03-01T12:00:01", 7)])
        engine.push("S", [("2026-03-01T12:00:09", 0)])
        fault = page.locator(".fault")
        expect(fault).to_contain_text(re.compile(r"Since 2\d\d\d-\d\d-\d\d .* UTC"))
        expect(fault).to_contain_text("in the step up to 2026-03-01 12:00")
        expect(fault.locator("pre")).to_contain_text("7")
        expect(fault).to_contain_text("What to do: restart it")
        page.click(".fault button:has-text('Leave such rows out')")
        expect(page.locator("#fault-list")).to_contain_text("All queries are well")
        assert engine.query_entry("bad").on_error == "skip"


def test_a_relation_is_previewed_as_content(
    page: Page, served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    preview_at_leisure(monkeypatch)
    write(page, "SELECT Name, MAX(big) AS largest FROM Sensors [ROWS 1] GROUP BY Name")
    page.click("#preview")
    output = page.locator("#editor-output")
    expect(output).to_contain_text("present content")
    for each in range(3):
        push(served, (100 + each, "n", each, 0.5))
    expect(output.locator("td").nth(1)).to_have_text("1")
    expect(output.locator("tbody tr")).to_have_count(1)
    expect(output).to_contain_text("1 row so far")


def test_completion_knows_what_was_just_declared(page: Page) -> None:
    declared = "CREATE STREAM Brandnew (first_column INT);\n"
    write(page, declared + "SELECT firs")
    expect(page.locator("#check")).to_have_class(re.compile("error"))
    page.evaluate(
        """() => { const area = document.querySelector('.CodeMirror').CodeMirror;
                   area.focus(); area.setCursor({line: 1, ch: 11}); }"""
    )
    page.keyboard.press("Control+Space")
    expect(page.locator(".CodeMirror-hints")).to_contain_text("first_column")
    page.keyboard.press("Escape")
    write(page, declared)
    page.click("#register")
    expect(page.locator("#input-list")).to_contain_text("Brandnew")
    write(page, "SELECT firs")
    page.evaluate(
        """() => { const area = document.querySelector('.CodeMirror').CodeMirror;
                   area.focus(); area.setCursor({line: 0, ch: 11}); }"""
    )
    wait_until(lambda: "first_column" in hints(page))  # the page learns it with its next look


def hints(page: Page) -> str:
    """What completes the word at the cursor."""
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Space")
    return "\n".join(page.locator(".CodeMirror-hints").all_inner_texts())


def test_a_query_that_waits_for_a_stream_says_so(browser: Browser) -> None:
    script = """
        CREATE STREAM Left_one (at TIMESTAMP, a INT) TIMESTAMP BY at;
        CREATE STREAM Right_one (at TIMESTAMP, a INT) TIMESTAMP BY at;
        CREATE QUERY joined AS SELECT L.a FROM Left_one L [RANGE 1 HOUR], Right_one R [RANGE 1 HOUR]
          WHERE L.a = R.a;
    """
    with running(script) as server, visited(browser, server.url) as page:
        engine = server.service.engine
        engine.advance("Right_one", "2026-03-01T12:00:05")
        engine.push("Left_one", [("2026-03-01T12:00:09", 7)])
        engine.advance("Left_one", "2026-03-01T12:00:20")
        expect(page.locator("#query-waits")).to_have_text(
            re.compile(
                r"^It waits for Right_one since .* s; its heartbeat is 2026-03-01 12:00:05 UTC"
            )
        )
        expect(page.locator("#words")).to_contain_text("Query joined waits for Right_one since")
        expect(page.locator(".item[data-key=joined] .sub")).to_have_text("waits for Right_one")
        metrics = server.http.get("/metrics").text
        (line,) = re.findall(r'^millpond_query_waits_seconds.query="joined". (.*)$', metrics, re.M)
        assert float(line) >= 1
        (told,) = server.http.get("/api/status").json()["waiting"]
        assert (told["query"], told["input"]) == ("joined", "Right_one")
        assert server.http.get("/api/queries/joined").json()["waits_for"] == "Right_one"
        engine.push("Right_one", [("2026-03-01T12:00:10", 7)])
        engine.advance("Right_one", "2026-03-01T12:00:30")
        expect(page.locator("#query-waits")).to_be_hidden()
        expect(page.locator("#result-table tbody")).to_contain_text("7")
