"""Long lists are answered in pages, which clients follow; and how many queries there may be."""

from __future__ import annotations

from itertools import chain

import pytest
from typer.testing import CliRunner

import millpond
from millpond.cli import serving
from millpond.cli.app import app
from millpond.server.limits import Limits
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow
QUERIES = 25


def registered(server: Running) -> list[str]:
    text = ";".join(f"CREATE QUERY q{n} AS SELECT a FROM S WHERE a > {n}" for n in range(QUERIES))
    server.http.post("/api/execute", json={"text": text}).raise_for_status()
    return ["counts", "big", *(f"q{n}" for n in range(QUERIES))]


def followed(server: Running, path: str) -> list[list[str]]:
    """The names on each page."""
    pages, following = [], path
    while following:
        answer = server.http.get(following).raise_for_status()
        pages.append([each["name"] for each in answer.json()])
        following = answer.links.get("next", {}).get("url")
    return pages


def together(pages: list[list[str]]) -> list[str]:
    return list(chain(*pages))


def test_queries_and_entities_are_listed_in_pages_that_lead_to_each_other(server: Running) -> None:
    names = registered(server)
    pages = followed(server, "/api/queries?limit=10")
    assert [len(page) for page in pages] == [10, 10, 7]
    assert together(pages) == together(followed(server, "/api/queries")) == names
    entities = followed(server, "/api/entities?limit=10&kind=query")
    assert (len(entities), sorted(together(entities))) == (3, sorted(names))
    assert len(together(followed(server, "/api/entities?limit=9"))) == len(
        together(followed(server, "/api/entities"))
    )
    head = server.http.get("/api/queries?limit=10&offset=20").headers
    assert (head["x-total-count"], "link" in head) == ("27", False)
    assert server.http.get("/api/queries?offset=99").json() == []


@pytest.mark.parametrize("asked", ["limit=0", "limit=10001", "offset=-1", "limit=x", "offset=1e30"])
def test_a_page_that_cannot_be_is_refused(server: Running, asked: str) -> None:
    assert server.http.get(f"/api/queries?{asked}").status_code == 422
    assert server.http.get(f"/api/entities?{asked}").status_code == 422


def test_a_client_follows_the_pages(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    names = registered(server)
    with millpond.connect(server.url) as engine:
        listed = engine._transport.listed
        monkeypatch.setattr(
            engine._transport,
            "listed",
            lambda path: listed(f"{path}{'&' if '?' in path else '?'}limit=4"),
        )
        assert [each["name"] for each in engine.queries()] == names
        assert sorted(each.name for each in engine.entities().of_kind("query")) == sorted(names)


def test_too_many_queries_are_refused_with_the_way_out() -> None:
    with running(limits=Limits(queries=3)) as server:
        texts = [f"CREATE QUERY q{n} AS SELECT a FROM S" for n in range(2)]
        answers = [server.http.post("/api/execute", json={"text": text}) for text in texts]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert "--queries N" in answers[1].json()["error"]


def test_serve_takes_the_number_of_queries_as_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(serving, "serve", lambda scripts, settings, options: asked.append(options))
    for more in ([], ["--queries", "7"]):
        assert CliRunner().invoke(app, ["serve", *more]).exit_code == 0
    assert [each.limits.queries for each in asked] == [50_000, 7]
