"""Responses that go on, from a server that breaks off."""

from __future__ import annotations

import json
import random

import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import http, open_source
from millpond.connectors.http_events import Events
from millpond.connectors.sources import Declaration
from millpond.errors import MillpondError
from millpond.settings import Settings
from millpond.testing import check_source
from tests.connectors.declarations import schema
from tests.connectors.reading import Reading
from tests.connectors.test_bad_rows import COLUMNS, MALFORMED, bad_json, mixed
from tests.connectors.web_server import serving
from tests.crashing import die
from tests.patience import wait_until

PAGE_ROWS = 10


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setattr(http, "AGAIN_SECONDS", 0.001)
    with serving() as found:
        yield found


def opened(url: str, columns: str = "a INT", skips: bool = False, time=None, **options):
    call = Connector("http", (url,), tuple(options.items()))
    entry = StreamEntry("S", schema(columns), time, 0, call, skips_bad_rows=skips)
    return open_source(entry, Settings(page_rows=PAGE_ROWS))


def test_events_go_on_behind_their_ids(web) -> None:
    server, url = web
    server.rows = [b'{"a":\n %d}' % n for n in range(25)]
    declaration = Declaration("S", schema("a INT"), None, Settings(page_rows=PAGE_ROWS))
    server.breaks_after = 9
    assert check_source(lambda _: opened(url), declaration, 25) == [(n,) for n in range(25)]
    assert len(set(server.asked)) > 10


def test_lines_come_as_they_come_until_their_end(web) -> None:
    server, url = web
    server.is_events = False
    reading = Reading(opened(url))
    for number in range(5):
        server.rows.append(b'{"a": %d}' % number)
        reading.until_there(number + 1)
    server.has_ended = True
    reading.thread.join()
    assert (reading.error, reading.rows) == (None, [(n,) for n in range(5)])
    assert server.asked == [None]


@pytest.mark.parametrize("is_events", [False, True])
def test_rows_without_ids_that_break_off_are_an_error_or_a_gap_as_is_said(web, is_events) -> None:
    server, url = web
    server.is_events, server.has_ids, server.breaks_after = is_events, False, 3
    server.rows = [b'{"a": %d}' % n for n in range(3)]
    reading = Reading(opened(url))
    said = reading.until_error()
    assert "rows may be lost; have the server send ids (SSE), or say gaps = true" in said
    assert len(reading.rows) == 3
    assert "gaps = true" in Reading(opened(url), reading.taken).until_error()
    Reading(opened(url, gaps=True)).until_there(9).end()


def test_a_kill_loses_no_event_and_doubles_none(web, tmp_path) -> None:
    (server, url), taken = web, 0
    script = (
        f"CREATE STREAM S (a INT) FROM http('{url}'); "
        f"CREATE QUERY q AS SELECT a FROM S INTO csv('{tmp_path / 'out.csv'}')"
    )
    for life in range(4):
        server.rows += [b'{"a": %d}' % n for n in range(15 * life, 15 * life + 15)]
        engine = Engine(Settings(page_rows=7), store=tmp_path / "store")
        engine.execute(script)
        taken += 11
        engine.run_sources(rows=taken)  # of all lives
        die(engine)
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(script)
        engine.finish(rows=60)
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [int(line.rpartition(",")[2]) for line in lines] == list(range(60))


@pytest.mark.parametrize("is_events", [False, True])
def test_300_malformed_rows_are_all_put_aside(web, is_events) -> None:
    (server, url), rng = web, random.Random(5)
    good = '{{"id": {}, "v": 1, "at": "2026-01-01"}}'
    lines, ids, wrong = mixed(rng, bad_json, good.format)
    server.is_events, server.rows = is_events, [line.encode() for line in lines]
    reading = Reading(opened(url, COLUMNS, skips=True, time=0)).until_there(len(ids), MALFORMED)
    reading.end()
    assert [row[0] for row in reading.rows] == ids
    assert [each.raw.decode() for each in reading.bad] == wrong
    assert all(each.offset.startswith("http://127.0.0.1:") for each in reading.bad)


@pytest.mark.parametrize("seed", range(20))
def test_events_are_the_same_however_they_are_cut(seed) -> None:
    rng = random.Random(seed)
    text = (
        b'\xef\xbb\xbf: hello\r\ndata: {"a":1}\r\n\r\nid: 7\ndata:x\ndata\ndata: y\n\n'
        b"event: other\rid\rdata: z\r\r\n\nretry: 5\n\ndata: cut"
    )
    events, found, at = Events(True, "0"), [], 0
    while at < len(text):
        size = rng.randrange(1, 9)
        found += events.add(text[at : at + size])
        at += size
    assert [(e.id, e.data) for e in found] == [("0", b'{"a":1}'), ("7", b"x\n\ny"), ("", b"z")]
    assert not events.is_whole


def test_who_waits_for_a_row_is_not_waited_for(web) -> None:
    server, url = web
    with Engine() as engine:
        engine.execute(f"CREATE STREAM S (a INT) FROM http('{url}')")
        engine.execute("CREATE QUERY q AS SELECT a FROM S")
        engine.start()
        wait_until(lambda: server.asked)
        engine.stop(drain=False)
    reading = Reading(opened(url))
    wait_until(lambda: len(server.asked) == 2)
    reading.end()


def test_a_token_is_sent_and_shown_nowhere(web, monkeypatch) -> None:
    server, url = web
    monkeypatch.setenv("MILLPOND_SECRET_TOKEN", "hush-hush")
    server.rows = [json.dumps({"a": 1}).encode()]
    with Engine() as engine:
        engine.execute(
            f"CREATE STREAM S (a INT) FROM http('{url}', token = 'env:MILLPOND_SECRET_TOKEN')"
        )
        engine.execute("CREATE QUERY q AS SELECT a FROM S")
        engine.run_sources(rows=1)
        assert "hush" not in str(engine.show("all").to_pylist())
    assert server.headers[0]["Authorization"] == "Bearer hush-hush"


def test_who_does_not_answer_is_named(web) -> None:
    assert "ConnectionRefusedError" in Reading(opened("http://127.0.0.1:9/x")).until_error()
    with pytest.raises(MillpondError, match="gaps is true or false, not 'perhaps'"):
        opened("http://x/", gaps="perhaps")
