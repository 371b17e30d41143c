"""`millpond serve` and `millpond demo`: a process that answers until it is told to end."""

import os
import re
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace

import httpx

from millpond.cli.faults import Script, warn
from millpond.demo import live, text
from millpond.demo.side_by_side import OnDemand
from millpond.errors import InputError
from millpond.server.limits import Limits
from millpond.server.logs import FORMS, LEVELS
from millpond.server.serve import (
    ServeOptions,
    address,
    make_server,
    make_service,
    refuse_taken_port,
)
from millpond.server.tokens import ROLES, new_token
from millpond.settings import Settings

OPENS_AFTER_SECONDS = 0.2
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def made_token(role: str, name: str) -> tuple[str, str]:
    """A new token, and the line that goes into the token file."""
    if role not in ROLES:
        raise InputError(f"no role {role!r}; known: {', '.join(ROLES)}")
    if not re.fullmatch(r"[\w.@-]{0,60}", name):
        raise InputError("--name: letters, digits, and . @ - _ only")
    return new_token(role, name)


def check_log(form: str, level: str) -> None:
    """Refuses a form or a level of the log that there is not."""
    for option, value, known in (("--log", form, FORMS), ("--log-level", level, LEVELS)):
        if value not in known:
            raise InputError(f"{option} {value}: it is one of {', '.join(known)}")


def serve(scripts: Sequence[Script], settings: Settings, options: ServeOptions) -> None:
    """Executes scripts and serves their queries until the process is asked to end."""
    refuse_taken_port(options)
    service = make_service(settings, options)
    try:
        for script in scripts:
            before = service.engine.warnings()
            service.engine.execute(script.text, name=script.name)
            warn([w for w in service.engine.warnings() if w not in before], script)
        server = make_server(service, options, owns_process=True)
    except BaseException:
        service.engine.close()
        raise
    _say(f"Millpond is at {address(options)} (Ctrl-C ends it)")
    server.run()
    if not server.started:
        service.engine.close()
        raise InputError(f"port {options.port} of {options.host} is not to be had")


def has_browser() -> bool:
    """Whether there is a browser that can be opened, and a screen to open it on."""
    has_screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, SCREENS))
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return has_screen


def is_shown_as_text() -> bool:
    """Whether the demo is text: nobody would see a page, or end the process that serves it."""
    return not (sys.stdout.isatty() and has_browser())


def demonstrate(options: ServeOptions, as_text: bool | None, opens: bool = True) -> None:
    """The page with live traffic; without a terminal or a browser the demo as text, which ends."""
    if as_text is None:
        as_text = is_shown_as_text()
    if as_text:
        text.main()
        return
    options = replace(options, port=_free_port(options), log_form="text", log_level="warning")
    service = make_service(Settings(), options)
    traffic = live.Traffic(service.engine)
    comparing = OnDemand()
    service.burst, service.comparing = traffic.burst, comparing
    try:
        service.engine.execute(live.SCRIPT, name="demo")
        server = make_server(service, options, owns_process=True)
        _say(f"Millpond is at {address(options)} (Ctrl-C ends it)")
        _say("Charts has one burst under FIFO and Chain, side by side; so has `demo --text`")
        traffic.start()
        if opens and has_browser():
            _later(lambda: webbrowser.open(address(options)), address(options))
        server.run()
    finally:
        comparing.close()
        traffic.close()
        service.engine.close()


def _free_port(options: ServeOptions) -> int:
    """The port asked for, or the next that is free."""
    for port in range(options.port, options.port + 20):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ours of a moment ago
            try:
                probe.bind((options.host, port))
            except OSError:
                continue
            return port
    raise InputError(f"no port from {options.port} on is free")


def _later(action: Callable[[], object], url: str) -> None:
    """Does something once the server answers."""

    def wait() -> None:
        for _ in range(100):
            try:
                httpx.get(url + "ping", timeout=1)
            except httpx.HTTPError:
                time.sleep(OPENS_AFTER_SECONDS)
            else:
                action()
                return

    threading.Thread(target=wait, daemon=True).start()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


__all__ = ["Limits", "ServeOptions", "check_log", "demonstrate", "made_token", "serve"]
