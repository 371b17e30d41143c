"""What a server does beside answering: it starts the engine, looks after it, and ends it well."""

import asyncio
import contextlib
import logging
import os
import threading
from collections import Counter
from pathlib import Path

import millpond
from millpond.catalog import Declaration, QueryEntry
from millpond.errors import MillpondError
from millpond.server import plan_xml
from millpond.server.faults import RequestError
from millpond.server.logs import tell
from millpond.server.service import Service

TICK_SECONDS = 1.0

logger = logging.getLogger("millpond")


class Upkeep:
    """Begins, looks after everything once a second, ends."""

    def __init__(self, service: Service, plan_file: Path | None = None) -> None:
        self._service, self._plan_file = service, plan_file
        self._before: list[Declaration] = []
        """What an earlier run had declared."""
        self._failed: set[str] = set()
        """The queries whose failure was told."""

    def begin(self) -> None:
        """Loads the mirrored plan, and has the engine work."""
        engine = self._service.engine
        self._before = engine.memory.of_before()
        engine.memory.meet_all()
        if self._plan_file is not None and self._plan_file.exists():
            self._load(self._plan_file)
        if not engine.operation.is_started:
            engine.start()
        self._service.is_ready = True
        self._failed = {failure.query for failure in engine.failures()}
        self._tell_beginning()

    def _tell_beginning(self) -> None:
        engine = self._service.engine
        if self._before:
            kinds = Counter(each.kind for each in self._before)
            there = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
            words = f"went on with what the store {engine.settings.store} has ({there})"
            tell(logging.INFO, "recovered", words, store=engine.settings.store, **kinds)
        count = len(list(engine.catalog.of_kind(QueryEntry)))
        words = f"Millpond {millpond.__version__} is ready, with {count} queries"
        tell(logging.INFO, "ready", words, version=millpond.__version__, queries=count)

    def _load(self, file: Path) -> None:
        try:
            plan_xml.load(self._service, file.read_bytes(), replaces=False)
        except RequestError as error:
            where = f", line {error.details['line']}" if "line" in error.details else ""
            raise MillpondError(f"{file}{where}: {error.message}") from None
        except MillpondError as error:
            raise MillpondError(f"{file}: {error}") from None

    async def run(self) -> None:
        """Every second, until it is cancelled."""
        while True:
            await asyncio.to_thread(self.tick)
            await asyncio.sleep(TICK_SECONDS)

    def tick(self) -> None:
        """Samples, lets old results go, mirrors the plan, starts work again that has stopped."""
        service = self._service
        try:
            service.history.take()
            service.feeds.tidy()
            if self._plan_file is not None and service.changed.is_set():
                service.changed.clear()
                _replace(self._plan_file, plan_xml.written(service.engine))
            self._tell_failures()
            self._revive()
        except Exception:  # (one bad second must not end all that follow)
            logger.exception("upkeep")

    def _tell_failures(self) -> None:
        failures = {failure.query: failure for failure in self._service.engine.failures()}
        for name in failures.keys() - self._failed:
            words = f"query {name} has failed: {failures[name].error}"
            tell(logging.ERROR, "failed", words, query=name, operator=failures[name].operator)
        for name in self._failed - failures.keys():
            tell(logging.INFO, "well", f"query {name} has failed no more", query=name)
        self._failed = set(failures)

    def _revive(self) -> None:
        """A source that can not be read ends the work of all: it is begun anew."""
        engine, is_ready = self._service.engine, self._service.is_ready
        if engine.operation.store_error is not None:
            self._service.trouble = str(engine.operation.store_error)
        if is_ready and not engine.operation.is_started and not engine.ground.is_closed:
            error = engine.operation.take_error()
            if error is not None:
                self._service.trouble = str(error)
                tell(logging.ERROR, "trouble", f"the work had stopped and goes on: {error}")
            with contextlib.suppress(MillpondError):
                engine.start()

    def end(self, seconds: float) -> None:
        """Stops the engine: what has come is worked on, for some time; the rest is in the store."""
        engine = self._service.engine
        drains = not engine.store.is_durable
        stopper = threading.Thread(target=_stop, args=(self._service, drains), daemon=True)
        stopper.start()
        stopper.join(seconds)
        if self._plan_file is not None:
            with contextlib.suppress(OSError):
                _replace(self._plan_file, plan_xml.written(engine))
        engine.close(seconds)
        tell(logging.INFO, "ended", "the engine is closed")


def _stop(service: Service, drains: bool) -> None:
    try:
        service.engine.stop(drain=drains)
    except Exception:  # (said, and everything else ends all the same)
        logger.exception("while stopping")


def _replace(file: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)
