"""Results that are posted, to a server that may not take them."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.connectors import webhook
from millpond.connectors.sinks import Results
from millpond.errors import InputError, MillpondError, OutputError
from millpond.testing import check_sink
from tests.connectors.declarations import schema
from tests.connectors.web_server import serving
from tests.crashing import die
from tests.patience import PATIENCE_SECONDS, wait_until


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setattr(webhook, "FIRST_PAUSE_SECONDS", 0.001)
    with serving() as found:
        yield found


def rows_of(server) -> list:
    """The results, each as often as its key differs."""
    posted = server.posted.values()
    return [each for body in posted for each in (body if isinstance(body, list) else [body])]


@pytest.mark.parametrize("batch", [1, 3])
def test_what_is_posted_again_has_its_key_again(web, batch) -> None:
    server, url = web

    def open_(results):
        if results.resume is None:
            server.posted.clear()
        return webhook.sink(results, url, batch=batch)

    check_sink(open_, lambda: [each["row"]["id"] for each in rows_of(server)])
    assert len(server.posts) > len(set(server.posts))


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_server_says_each_result_comes_with_one_key(web, seed, tmp_path) -> None:
    (server, url), rng = web, random.Random(seed)
    server.refuses = lambda _: rng.choice((None, None, None, None, 500, 503, 429, 0))
    with Engine(store=tmp_path / "store") as engine:
        engine.execute("CREATE STREAM S (a BIGINT)")
        engine.execute(f"CREATE QUERY q AS SELECT a FROM S INTO webhook('{url}', batch = 2)")
        for number in range(20):
            engine.push("S", [(number,), (number,)])
            engine.run_until_idle()
        die(engine)
    with Engine(store=tmp_path / "store") as engine:
        engine.run_until_idle()
        engine.push("S", [(20,), (20,)])
        engine.run_until_idle()
    found = Counter[int]()
    for each in rows_of(server):
        found[each["row"]["a"]] += each["weight"]
    assert found == dict.fromkeys(range(21), 2)


def test_one_that_does_not_answer_holds_up_nobody_else(web, tmp_path) -> None:
    (server, url), answers = web, threading.Event()
    server.refuses = lambda _: None if answers.wait(PATIENCE_SECONDS) else 500
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(
            "CREATE STREAM S (a BIGINT);"
            f"CREATE QUERY q AS SELECT a FROM S INTO webhook('{url}');"
            f"CREATE QUERY r AS SELECT a FROM S INTO csv('{tmp_path / 'r.csv'}')"
        )
        engine.start()
        for number in range(20):
            engine.push("S", [(number,)])
        wait_until(lambda: len((tmp_path / "r.csv").read_text().splitlines()) == 21)
        wait_until(lambda: engine.result_count("q") == 20)
        assert server.posts == []
        answers.set()
        engine.stop()
    assert [each["row"]["a"] for each in rows_of(server)] == list(range(20))


def test_what_is_refused_fails_the_query_until_it_is_activated(web) -> None:
    server, url = web
    server.refuses = lambda _: 422
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a BIGINT)")
        engine.execute(f"CREATE QUERY q AS SELECT a FROM S INTO webhook('{url}')")
        engine.push("S", [(1,)])
        with pytest.raises(MillpondError, match=r"the server says 422 .*ALTER QUERY q ACTIVATE"):
            engine.run_until_idle()
        server.refuses = lambda _: None
        engine.execute("ALTER QUERY q ACTIVATE")
        engine.push("S", [(2,)])
        engine.run_until_idle()
    assert [each["row"]["a"] for each in rows_of(server)] == [1, 2]


def test_nobody_is_asked_for_ever(web) -> None:
    server, url = web
    server.refuses = lambda _: 503
    results = Results("q", schema("id BIGINT"))
    sink = webhook.sink(results, url, tries_seconds=2)
    with pytest.raises(OutputError, match=r"here: the server says 503 .*ALTER QUERY q ACTIVATE"):
        webhook_page(sink)
    assert len(server.headers) > 2
    away = webhook.sink(results, "http://127.0.0.1:9/", tries_seconds=0)
    with pytest.raises(OutputError, match="ConnectionRefusedError"):
        webhook_page(away)


def webhook_page(sink) -> None:
    sink.write_numbered(pa.table({"ts": [1], "weight": [1], "id": [7]}), 0)


def test_a_token_is_sent_and_shown_nowhere(web, monkeypatch) -> None:
    server, url = web
    monkeypatch.setenv("MILLPOND_SECRET_TOKEN", "hush-hush")
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a BIGINT)")
        given = f"'{url}', token = 'env:MILLPOND_SECRET_TOKEN'"
        engine.execute(f"CREATE QUERY q AS SELECT a FROM S INTO webhook({given})")
        engine.push("S", [(1,)])
        engine.run_until_idle()
        assert "hush" not in str(engine.show("all").to_pylist())
    assert server.headers[0]["Authorization"] == "Bearer hush-hush"


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("ftp://x/", {}, "no URL of HTTP"),
        ("http://", {}, "no URL of HTTP"),
        ("http://u:p@x/", {}, "do not stand in a URL"),
        ("http://x/ä", {}, "in ASCII"),
        ("http://x/", {"token": "hush"}, "token = 'env:MILLPOND_SECRET_NAME'"),
        ("http://x/", {"batch": 0}, "batch is a number of results from 1 on, not 0"),
        ("http://x/", {"tries_seconds": -1}, "tries_seconds is a number of seconds"),
    ],
)
def test_what_cannot_be_posted_to_is_refused(url, options, said) -> None:
    with pytest.raises((InputError, OutputError), match=said) as raised:
        webhook.sink(Results("q", schema("id BIGINT")), url, **options)
    assert "hush" not in str(raised.value)
