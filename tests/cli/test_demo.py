"""`millpond demo`: a page where there is a browser, text where nobody would see one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millpond.cli import serving
from millpond.server.serve import ServeOptions
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import free_port, plain_client


@pytest.mark.parametrize(("is_terminal", "has_browser"), [(True, False), (False, True)])
def test_without_a_terminal_or_a_browser_it_is_text(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, has_browser: bool
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(serving.text, "main", lambda: shown.append("text"))
    monkeypatch.setattr(serving, "has_browser", lambda: has_browser)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    serving.demonstrate(ServeOptions(), None)
    assert shown == ["text"]


def test_a_browser_needs_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving.webbrowser, "get", object)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in serving.SCREENS:
        monkeypatch.delenv(name, raising=False)
    assert not serving.has_browser()
    monkeypatch.setenv("DISPLAY", ":1")
    assert serving.has_browser()


@contextmanager
def demo(port: int, opened: Path) -> Iterator[subprocess.Popen[str]]:
    """The demo with a browser that writes down what it is to open."""
    browser = opened.with_name("browser")
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "millpond", "demo", "--page", "--port", str(port)],
        env=os.environ | {"BROWSER": f"{browser} %s", "DISPLAY": ":1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)


def test_where_somebody_listens_it_takes_the_next_port() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port := free_port()))
        other.listen()
        assert port < serving._free_port(ServeOptions(port=port)) < port + 20
    assert serving._free_port(ServeOptions(port=port)) == port


@pytest.mark.slow
def test_a_browser_opens_the_page_and_the_port_is_taken_again(tmp_path: Path) -> None:
    port, opened = free_port(), tmp_path / "opened"
    for _ in range(2):
        with demo(port, opened):
            wait_until(opened.exists)
            url = opened.read_text().strip()
            assert url == f"http://127.0.0.1:{port}/"
            with plain_client(url) as http:
                assert "<title>Millpond</title>" in http.get("").text
                assert http.get("api/status").json()["demo"]
        opened.unlink()
