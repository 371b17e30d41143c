"""Engines that die: what was committed stays in the store, nothing else does."""

from __future__ import annotations

import os
import time

from millpond import Engine
from millpond.durability.checkpoint import checkpoint
from millpond.durability.recovery import file_names
from tests.patience import PATIENCE_SECONDS

CALLS = ("execute", "push", "push_changes", "advance", "run_until_idle")


def die(engine: Engine) -> None:
    """Ends an engine as a kill does: nothing is written any more, and the store's lock is free."""
    engine.ground.is_closed = True
    if engine.has_runtime:
        engine.runtime.cancel()
        engine.runtime.under_way.close(time.monotonic() + PATIENCE_SECONDS)
    log, engine.journal._log = engine.journal._log, None
    if log is not None:
        log.close()
    if engine.journal._end is not None:
        engine.journal._end.close()
    lock, engine.store._lock = engine.store._lock, None
    if lock is not None:
        os.close(lock)
    lease, engine.store.lease = engine.store.lease, None
    for each in (lease, engine.store.remote and engine.store.remote.lease):
        if each is not None:
            each.let_go()


class Mortal:
    """An engine on a store that dies now and then, and goes on; it looks like one engine.

    After every call and every death it is to agree with itself. After every call ``shortens`` is
    asked whether the log begins anew, and ``dies``. After a death ``shortens`` is asked once more:
    what the log says that began anew is what it said before.
    """

    def __init__(self, make, dies, shortens=lambda: False) -> None:
        self._make, self._dies, self._shortens = make, dies, shortens
        self._engine = make()
        self._statements = []
        self.deaths = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._engine.close()

    def __getattr__(self, name):
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def call(*arguments):
            answer = getattr(self._engine, name)(*arguments)
            if name == "execute":
                self._statements += arguments
            if name in CALLS:
                self._live_on()
            return answer

        return call

    def _live_on(self):
        self._engine.validate()
        if self._shortens():
            self._engine.compact_log()
        if not self._dies():
            return
        self._die()
        if self._shortens():
            before = recovered(self._engine)
            self._engine.compact_log()
            self._die()
            after = recovered(self._engine)
            assert after == before, differing(before, after)
        for statement in self._statements:  # as a script would that is started again
            self._engine.execute(statement)

    def _die(self):
        self.deaths += 1
        held = whole_after(self._engine)
        die(self._engine)
        self._engine = self._make()
        self._engine.validate()
        validate_open(self._engine)
        assert not held or whole_after(self._engine) == held


def whole_after(engine):
    """After which time each stream is there, as the operators that run say: for who begins FROM."""
    if not engine.has_runtime:
        return {}
    return {name: intake.queue.whole_after() for name, intake in engine.inputs.streams.items()}


def differing(some, others):
    """The records that only one of two lists of them has."""
    return [r for r in some if r not in others], [r for r in others if r not in some]


def recovered(engine):
    """All that an engine has found in its store, but for the number of the run."""
    records = [each.record() for each in checkpoint(engine.queries)]
    return [r | {"run": 0} if r["kind"] == "open" else r for r in records]


def validate(store) -> None:
    """Every file that a store's log speaks of is there, and no other page or state is."""
    with Engine(store=store) as engine:
        validate_open(engine)


def validate_open(engine: Engine) -> None:
    """The same of an engine that is open and has nothing under way."""
    engine.journal.flush()
    named = {engine.store.path(name) for name in file_names(engine.queries)}
    there = {file for name in ("pages", "state") for file in engine.store.path(name).iterdir()}
    assert there == named, f"missing {named - there}, surplus {there - named}"
