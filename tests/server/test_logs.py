"""What a server says of itself while it runs, and what it says where it cannot."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from millpond import Engine
from millpond.durability import commits
from millpond.server.logs import JsonLines, TextLines, last_lines
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import Running, free_port, is_ready, plain_client

SCRIPT = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"


def record(**about: Any) -> logging.LogRecord:
    made = logging.LogRecord("millpond", logging.WARNING, "", 0, "it is %s", ("so",), None)
    made.created = 0.5
    made.__dict__.update(event="said", about=about)
    return made


def test_a_line_is_text_or_json() -> None:
    assert TextLines().format(record()) == "1970-01-01T00:00:00.500+00:00 warning it is so"
    assert json.loads(JsonLines().format(record(query="q"))) == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "warning",
        "event": "said",
        "message": "it is so",
        "query": "q",
    }


def test_a_slow_step_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commits, "SLOW_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "millpond")
    with Engine() as engine:
        engine.execute(SCRIPT + "CREATE QUERY counts AS SELECT a, COUNT(*) AS n FROM S GROUP BY a")
        engine.push("S", [(1, 7), (2, 7)])
        engine.run_until_idle()
    first = next(each for each in caplog.records if "a step of" in each.getMessage())
    told = json.loads(JsonLines().format(first))
    assert told["event"] == "slow_step"
    assert "Aggregate count(*)" in told["message"]
    assert (told["operator"], told["rows"]) == ("op1", 1)
    assert told["seconds"] > 0


def serve(store: Path, script: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "millpond", "serve", str(script), "--port", str(port)]
    command += ["--store", str(store), "--log", "json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with plain_client(f"http://127.0.0.1:{port}") as http:
        wait_until(lambda: is_ready(http) or process.poll() is not None)
    return process


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The log of a server that is asked to end."""
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.slow
def test_a_server_tells_what_happens_to_it(tmp_path: Path) -> None:
    script, port = tmp_path / "s.cql", free_port()
    script.write_text(SCRIPT)
    process = serve(tmp_path / "store", script, port)
    with plain_client(f"http://127.0.0.1:{port}") as http:
        text = "SELECT a, 9223372036854775807 + a AS x FROM S"
        assert http.post("/api/queries", json={"name": "bad", "text": text}).status_code == 201
        http.get("/api/queries/bad/results?follow=false")
        rows = [{"t": 1, "a": 5}, {"t": 2, "a": 5}]
        assert http.post("/api/streams/S/tuples", json=rows).status_code == 200
        wait_until(lambda: http.get("/api/failures").json())
        assert http.get("/ping", headers={"host": "evil.example"}).status_code == 421

        def told() -> bool:
            return any("has failed" in line for line in http.get("/api/log").json()["lines"])

        wait_until(told)
    events = {each["event"]: each for each in ended(process)}
    assert {"ready", "statement", "reader_came", "reader_went", "failed", "refused"} <= set(events)
    assert {"ending", "ended"} <= set(events)
    assert events["failed"]["level"] == "error"
    assert events["failed"]["query"] == "bad"
    assert events["refused"]["status"] == 421
    assert "recovered" not in events
    process = serve(tmp_path / "store", script, port)
    events = {each["event"]: each for each in ended(process)}
    assert events["recovered"]["query"] == 1
    assert events["recovered"]["stream"] == 1


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "millpond", "serve", "--port", str(port)]
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(os.environ)
        )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr == (
        f"millpond: error: port {port} of 127.0.0.1 is taken by another process; end it, or "
        f"listen elsewhere: --port {port + 1}\n"
    )


@pytest.mark.slow
def test_the_last_lines_are_kept(server: Running) -> None:
    server.http.post("/api/execute", json={"text": "CREATE QUERY kept AS SELECT a FROM S"})
    assert any("executed: CREATE QUERY kept" in line for line in last_lines.lines)
    assert server.http.get("/api/log?lines=1").json()["lines"] == [last_lines.lines[-1]]
