"""Stores at an address by simulation: ``python -m tests.object_faults --n 1000``.

An engine works on objects in memory, and each request may go wrong by seed: it is refused before
anything happened, its answer is lost, it happens only later, or the process dies before it or
behind it; or it is paused, another engine takes the store, and then it goes on. Tuples are pushed
with keys until they are acknowledged. All that was acknowledged must be there after each death, and
at the end each tuple once.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from obstore.store import MemoryStore

from millpond import Engine
from millpond.errors import MillpondError, StateError, StoreError
from millpond.storage.objects import lease, log, places, remote
from millpond.storage.objects.objects import Objects
from tests.crashing import die, validate_open

ADDRESS = "s3://simulated/store"
TUPLES = 24
STATEMENTS = (
    "CREATE STREAM S (t BIGINT, id BIGINT, k INT) TIMESTAMP BY t",
    "CREATE QUERY ids AS SELECT id FROM S",
    "CREATE QUERY counted AS SELECT k, count(*) AS n FROM S [RANGE 6] GROUP BY k",
)
CHANGING = ("create", "put", "delete")
IN_THE_DRIVER = {"driver_rows": 10**9, "place_by": "rows"}


class DeathError(BaseException):
    """The process dies in a request."""


class SimulatedObjects(Objects):
    """Objects in memory, with what may go wrong. ``fate`` says it of each changing request."""

    def __init__(self, store: MemoryStore, fate: Callable[[str], str | None]) -> None:
        with patch.object(Objects, "_connected", lambda objects: store):
            super().__init__(ADDRESS)
        self._fate = fate
        self.is_dead = False
        self.late: list[Callable[[], Any]] = []
        """Requests that are under way, and will happen though nobody waits for them."""

    def create(self, name: str, content: bytes) -> bool:
        return bool(
            self._asked("create", lambda: super(SimulatedObjects, self).create(name, content))
        )

    def put(self, name: str, content: bytes | Path) -> None:
        whole = content if isinstance(content, bytes) else content.read_bytes()
        put = super().put
        self._asked("put", lambda: put(name, whole))

    def delete(self, names: Sequence[str]) -> None:
        delete = super().delete
        self._asked("delete", lambda: delete(names))

    def get(self, name: str) -> bytes | None:
        self._refuse_dead()
        return super().get(name)

    def _refuse_dead(self) -> None:
        if self.is_dead:
            raise StoreError("the process is dead")

    def _asked(self, kind: str, request: Callable[[], Any]) -> Any:
        self._refuse_dead()
        is_renewal = threading.current_thread().name == "millpond-lease"
        fate = None if is_renewal else self._fate(kind)
        if fate == "late":
            self.late.append(request)
        if fate == "dies before":
            self._die()
        answer = None if fate in ("refused", "late") else request()
        if fate == "dies behind":
            self._die()
        if fate in ("refused", "lost", "late"):
            raise StoreError(f"store: {kind} is {fate}")
        return answer

    def _die(self) -> None:
        self.is_dead = True
        raise DeathError


@dataclass
class Faults:
    """What goes wrong, and when, by seed."""

    rng: random.Random
    share: float = 0.08
    counts: Counter[str] = field(default_factory=Counter)

    def fate(self, kind: str) -> str | None:
        if self.rng.random() >= self.share:
            return None
        fates = ["refused", "lost", "late", "dies before", "dies behind"]
        chosen = self.rng.choice(fates if kind != "delete" else fates[:3])
        self.counts[chosen] += 1
        return chosen


class World:
    """A store at an address, and the engines that have it one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.faults = Faults(random.Random(seed + 1))
        self._store = MemoryStore()
        self._objects: list[SimulatedObjects] = []
        self._paused: list[Engine] = []
        self.acknowledged: set[int] = set()
        self._waiting: set[int] = set()
        """What is acknowledged, and put out once its time has come."""
        self._refused: list[tuple[Engine, int]] = []
        """What an engine has refused, and nobody has asked for again."""
        self._never: set[int] = set()
        """Those of them that are nowhere, as the same engine has committed since."""
        self.engine = self.open()

    def connected(self, address: str) -> SimulatedObjects:
        self._objects.append(SimulatedObjects(self._store, self.faults.fate))
        return self._objects[-1]

    def open(self) -> Engine:
        """The engine that follows, which has all that was acknowledged."""
        while True:
            self._deliver_late()
            try:
                with patch.object(remote, "Objects", self.connected):
                    engine = Engine(IN_THE_DRIVER, store=ADDRESS)
            except (DeathError, StoreError):
                self._objects[-1].is_dead = True
                continue
            share, self.faults.share = self.faults.share, 0.0
            self._check(engine)
            self.faults.share = share
            return engine

    def _check(self, engine: Engine) -> None:
        """All that was acknowledged is there, and nothing twice."""
        engine.validate()
        if self.acknowledged:
            engine.run_until_idle()
            found = Counter(engine.results("ids")["id"].to_pylist())
            assert self.acknowledged <= set(found), "an acknowledged tuple is lost"
            assert max(found.values()) == 1, "a tuple is there twice"
            assert self._never.isdisjoint(found), "a tuple is there that was refused"

    def _deliver_late(self) -> None:
        """Some of what is under way arrives at last."""
        for each in self._objects:
            left, each.late = each.late, []
            for request in left:
                if self.rng.random() < 0.5:
                    with suppress(MillpondError):
                        request()
                else:
                    each.late.append(request)

    def do(self, call: Callable[[Engine], Any]) -> None:
        """Does something until it is done, by whichever engine lives."""
        while True:
            self._deliver_late()
            if self.rng.random() < 0.05:
                self._pause()
            try:
                call(self.engine)
            except DeathError:
                self._follow()
            except MillpondError as error:
                if self._objects[-1].is_dead:
                    self._follow()
                elif "store: " not in str(error):
                    raise
            else:
                self._never |= {n for engine, n in self._refused if engine is self.engine}
                self._refused = []
                return

    def try_once(self, n: int, time: int) -> None:
        """Pushes a tuple; if it is refused that is all."""
        try:
            self.engine.push("S", [(time, n, 0)], key=f"once {n}")
        except DeathError:
            self._follow()
        except MillpondError:
            if self._objects[-1].is_dead:
                self._follow()
            else:
                self._refused.append((self.engine, n))
        else:
            self._waiting.add(n)

    def push(self, n: int) -> None:
        """Pushes a tuple until it is there, and says that it has come."""
        self.do(lambda engine: engine.push("S", [(n, n, n % 3)], key=f"tuple {n}"))
        self.do(lambda engine: engine.advance("S", n))
        self.acknowledged |= {n, *self._waiting}

    def _follow(self) -> None:
        self._objects[-1].is_dead = True
        with suppress(MillpondError, DeathError):
            die(self.engine)
        self.engine = self.open()

    def _pause(self) -> None:
        """The engine is paused for long, another one takes the store, and it goes on."""
        old, objects = self.engine, self._objects[-1]
        self.engine = self.open()
        if objects.is_dead:
            return
        old.store.remote.lease._renewed = math.inf  # it was paused behind its last look
        try:
            old.push("S", [(TUPLES, -1, 0)], key="of the paused one")
        except (StateError, DeathError):
            pass
        else:
            raise AssertionError("a paused engine has committed")
        objects.is_dead = True
        die(old)


@contextmanager
def small_parts():
    """Bundles, garbage and pieces so small that a few tuples make all that there can be."""
    with (
        patch.object(lease, "LEASE_SECONDS", 0.0),
        patch.object(log, "INLINE_BYTES", 2_000),
        patch.object(log, "BUNDLE_BYTES", 3_000),
        patch.object(places, "IDLE_BYTES", 4_000),
    ):
        yield


def trial(seed: int) -> Counter[str]:
    """Lets one world live; how often what went wrong."""
    with small_parts():
        world = World(seed)
        for statement in STATEMENTS:
            world.do(lambda engine, text=statement: engine.execute(text))
        for n in range(TUPLES):
            if world.rng.random() < 0.5:
                world.try_once(TUPLES + n, n)
            world.push(n)
            if world.rng.random() < 0.5:
                world.do(lambda engine: engine.run_until_idle())
            if world.rng.random() < 0.1:
                world.do(lambda engine: engine.compact_log())
        world.faults.share = 0
        world.do(lambda engine: engine.run_until_idle())
        world.do(lambda engine: engine.finish())
        found = Counter(world.engine.results("ids")["id"].to_pylist())
        assert world.acknowledged <= set(found), f"seed {seed}: lost, of {found}"
        assert max(found.values()) == 1, f"seed {seed}: twice, of {found}"
        validate_open(world.engine)
        world.engine.close()
        world.open().close()
        return world.faults.counts


def main(given=None):
    """Lets worlds live; how many went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.object_faults", description=__doc__)
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    chosen = parser.parse_args(given)
    counts: Counter[str] = Counter()
    bad = 0
    for seed in range(chosen.seed, chosen.seed + chosen.n):
        try:
            counts += trial(seed)
        except Exception as error:  # noqa: BLE001 (said, and counted)
            bad += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)  # noqa: T201
    print(f"{chosen.n} worlds, {bad} went wrong; {dict(counts)}", flush=True)  # noqa: T201
    return bad


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
