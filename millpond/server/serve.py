"""`millpond serve`: an engine, its scripts, and uvicorn in front of it."""

import errno
import ipaddress
import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from millpond.errors import InputError
from millpond.facade.engine import Engine
from millpond.server.app import DRAIN_SECONDS, make_app
from millpond.server.confinement import Confinement
from millpond.server.guard import LOOPBACK, Guard
from millpond.server.limits import Limits
from millpond.server.logs import keep_lines, tell, write_lines
from millpond.server.service import Service
from millpond.server.tokens import Tokens, read_tokens
from millpond.settings import Settings

END_SECONDS = 12.0
"""A process that was asked to end is there no longer than so: requests, what has come and what is
at work have a quarter of it each (`DRAIN_SECONDS`)."""

SWITCH_SECONDS = 0.001
"""How long a thread may go on when others wait: answers wait for steps, but not for long."""


@dataclass(frozen=True)
class ServeOptions:
    """How a server is started."""

    host: str = "127.0.0.1"
    port: int = 8080
    roots: tuple[Path, ...] = ()
    """Where files of sources and sinks may lie that are named from outside."""
    tokens: Path | None = None
    certificate: Path | None = None
    certificate_key: Path | None = None
    insecure: bool = False
    """Whether tokens and results may go over a network as they are."""
    names: tuple[str, ...] = ()
    """What else the server is called."""
    plan: Path | None = None
    """The file in which the plan is mirrored."""
    log_form: str = ""
    """How what happens is written to standard error, ``text`` or ``json``; empty: it is not."""
    log_level: str = "info"
    limits: Limits = field(default_factory=Limits)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_options(options: ServeOptions) -> Tokens:
    """Refuses to be reachable by others without tokens and TLS; the tokens."""
    tokens = Tokens() if options.tokens is None else read_tokens(options.tokens)
    if (options.certificate is None) != (options.certificate_key is None):
        raise InputError("--tls-certificate and --tls-key go together")
    if not is_loopback(options.host):
        if not tokens.are_needed:
            raise InputError(
                f"--host {options.host}: others could reach it, so it needs --tokens FILE "
                "(`millpond token ROLE` makes a line for it)"
            )
        if options.certificate is None and not options.insecure:
            raise InputError(
                f"--host {options.host}: tokens would go over the network in the clear; give "
                "--tls-certificate and --tls-key, or say --insecure if something else encrypts"
            )
    return tokens


def allowed_hosts(options: ServeOptions) -> tuple[str, ...]:
    """The names by which requests may call the server."""
    own = () if is_loopback(options.host) else (options.host, socket.gethostname())
    return (*LOOPBACK, *own, *options.names)


class GracefulServer(uvicorn.Server):
    """Tells endless responses to end as soon as the process is asked to."""

    service: Service | None = None
    owns_process = False
    """Whether the process is there for this server only, so that it can end it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The process is asked to end: soon, and at once if it is asked again."""
        tell(logging.INFO, "ending", f"asked to end by signal {sig}", signal=sig)
        if self.owns_process:
            self._end_in_time(sig)
        if self.service is not None:
            self.service.is_ready = False
            self.service.feeds.end_soon()
        super().handle_exit(sig, frame)

    def _end_in_time(self, sig: int) -> None:
        if self.should_exit:
            self._end_now(sig)
        last = threading.Timer(END_SECONDS, self._end_now, [sig])
        last.daemon = True  # it goes with the process
        last.start()

    def _end_now(self, sig: int) -> None:
        """Ends the process whatever it does; what is promised is in the store."""
        if self.service is not None:
            with suppress(Exception):
                self.service.engine.store.close()
        os._exit(128 + sig)


def make_server(
    service: Service, options: ServeOptions, owns_process: bool = False
) -> GracefulServer:
    """A server that is ready to run; ``owns_process``: its end is that of the process."""
    tokens = check_options(options)
    sys.setswitchinterval(SWITCH_SECONDS)
    app = Guard(make_app(service, options.plan), allowed_hosts(options), tokens, options.limits)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(DRAIN_SECONDS),
        ssl_certfile=options.certificate,
        ssl_keyfile=options.certificate_key,
        h11_max_incomplete_event_size=32_768,
        backlog=1_024,
    )
    server = GracefulServer(config)
    server.service, server.owns_process = service, owns_process
    return server


def make_service(settings: Settings, options: ServeOptions, spark: Any = None) -> Service:
    """An engine with everything around it; ``spark``: the session it uses, if there is one."""
    keep_lines()
    if options.log_form:
        write_lines(options.log_form, options.log_level)
    check_options(options)
    engine = Engine(settings, spark, keep_results=True)
    confinement = Confinement(options.roots, engine.ground.directory, options.limits)
    return Service(engine, options.limits, confinement)


def refuse_taken_port(options: ServeOptions) -> None:
    """Refuses, before anything is started, to listen where somebody else does."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        where = f"port {options.port} of {options.host}"
        if error.errno == errno.EADDRINUSE:
            way_out = f"end it, or listen elsewhere: --port {options.port + 1}"
            raise InputError(f"{where} is taken by another process; {way_out}") from None
        raise InputError(f"{where} is not to be had: {error.strerror}") from None


def address(options: ServeOptions) -> str:
    """Where the page is."""
    host = "localhost" if options.host in ("0.0.0.0", "::") else options.host  # noqa: S104
    name = f"[{host}]" if ":" in host else host
    return f"{'http' if options.certificate is None else 'https'}://{name}:{options.port}/"
