"""The command line against a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from millpond.cli.app import app
from millpond.server.tokens import hashed
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as made:
        yield made


def run(server: Running, *arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["--url", server.url, *arguments], input=given)


def said(server: Running, *arguments: str, given: str | None = None) -> str:
    result = run(server, *arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_query_from_its_beginning_to_its_end(server: Running, tmp_path: Path) -> None:
    assert "registered" in said(server, "query", "create", "q", "SELECT a + 1 AS b FROM S")
    assert "q " in said(server, "query", "list")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"t":1,"a":4}\n{"t":2,"a":5}\n')
    assert "2 rows" in said(server, "push", "S", str(rows), "--key", "k")
    server.wait(lambda: server.service.engine.result_count("q") == 1)
    lines = said(server, "tail", "q", "--from", "oldest", "--no-follow").splitlines()
    assert json.loads(lines[0]) == {"ts": 1, "weight": 1, "row": {"b": 5}}
    assert len(said(server, "tail", "q", "--from", "oldest", "--most", "1").splitlines()) == 1
    said(server, "query", "alter", "q", "--weight", "2.5", "--no-active")
    assert "inactive" in said(server, "query", "show", "q")
    assert "dropped" in said(server, "query", "drop", "q")


def test_entities_and_plans(server: Running, tmp_path: Path) -> None:
    assert "weight" in said(server, "entity", "show", "query", "big")
    said(server, "entity", "set", "query", "big", "weight", "4")
    assert said(server, "entity", "get", "query", "big", "weight").strip() == "4.0"
    assert "counts" in said(server, "entity", "list", "query")
    assert said(server, "entity", "watch", "query", "big", "weight", "--seconds", "0.5") == "4.0\n"
    file = tmp_path / "plan.xml"
    file.write_text(said(server, "plan", "show"))
    said(server, "query", "drop", "big")
    assert "is loaded" in said(server, "plan", "load", str(file))
    assert said(server, "plan", "show", "--format", "dot").startswith("digraph")


def test_statements_and_questions(server: Running) -> None:
    assert "counts" in said(server, "execute", "SHOW QUERIES")
    assert "counts" in said(server, "execute", "-", given="SHOW QUERIES;")
    server.push((1, 3), (2, 4))
    assert "4" in said(server, "ask", "SELECT a FROM S [RANGE 1]")


def test_errors_have_a_place_and_a_code(server: Running) -> None:
    result = run(server, "execute", "SELECT b FROM S")
    assert result.exit_code == 2
    assert "<text>:1:8: error: no column" in result.stderr
    assert run(server, "query", "drop", "nothing").exit_code == 2
    assert run(server, "push", "S", "no_such_file").exit_code == 2
    gone = CliRunner().invoke(app, ["--url", "http://127.0.0.1:9", "query", "list"])
    assert gone.exit_code == 2
    assert "no answer" in gone.stderr


def test_a_token_is_made_with_its_line() -> None:
    result = CliRunner().invoke(app, ["token", "read", "--name", "ann"])
    token = result.stdout.splitlines()[0].split(": ")[1]
    assert result.stdout.splitlines()[1].endswith(f"read {hashed(token)} ann")
    assert CliRunner().invoke(app, ["token", "king"]).exit_code == 2


def test_a_server_that_others_reach_is_refused_without_tokens() -> None:
    result = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0"])
    assert result.exit_code == 2
    assert "--tokens" in result.stderr
