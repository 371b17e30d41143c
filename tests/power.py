"""Cuts the power of machines with a store: ``python -m tests.power --n 10000``.

A disk is simulated that keeps for certain only what was forced onto it (`fsync`): of everything
else each file, name and sector is there as it was last written, or as it was last forced, or torn,
by seed. It is full for a while, or cannot write, or is slow, by seed too: what was refused then is
asked for again. An engine works on it, and at each change of a file the power may be cut. What is
left is opened again: all that was acknowledged must be there, and nothing that is wrong. The death
of the process alone, after which all that was written is there, is one of the cuts.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from millpond import Engine
from millpond.errors import MillpondError, UnforcedError
from tests.crashing import die, validate_open
from tests.failing_disk import BY_PATH, FailingDisk, used

SECTOR = 512
"""What a disk writes as a whole, or not at all."""

CUTS = 24
"""At so many moments of a run the power is cut."""

TROUBLES, LONGEST = 4, 8
"""So often at most a disk is in trouble in a run, for so many changes of files at most."""

REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
SLOW_SECONDS = 0.002

T = TypeVar("T")

IN_THE_DRIVER = {"driver_rows": 10**9, "place_by": "rows"}
"""No step is worth the start of Spark, however slow the disk is."""

Tree = dict[str, bytes | None]
"""What is below a folder: files with their content, folders with none."""


# -- the disk ------------------------------------------------------------------------------------


class CutDisk(FailingDisk):
    """Knows what was forced, and tells at some changes what a cut of the power would leave.

    ``cut`` is called at each change of a file, before it is made. ``troubles`` are changes of the
    store that it refuses, by the number of an error, or makes slowly, by 0.
    """

    by_path = (*BY_PATH, "unlink")

    def __init__(
        self, directory: Path, cut: Callable[[CutDisk], None], troubles: Mapping[int, int]
    ) -> None:
        super().__init__(directory, 0, sys.maxsize, stays=False)
        self._root, self._cut, self._troubles = directory, cut, troubles
        self._store = f"{directory / 'store'}{os.sep}"
        self.refused = 0
        self._content: dict[int, bytes] = {}
        """What was forced of files, by their numbers."""
        self._names: dict[int, dict[str, int]] = {}
        """What was forced of folders."""
        self._held: list[int] = []
        """Files that are kept open, so that no other one gets their number."""
        self._guard = threading.RLock()
        for folder in (directory, *(each for each in directory.rglob("*") if each.is_dir())):
            self.forced(folder)

    def fails(self, path: object) -> bool:
        """A file is about to be changed: whether that fails."""
        name = os.fspath(path)  # type: ignore[call-overload]
        if self.is_over or not name.startswith(self._below):
            return False
        with self._guard:
            self.count += 1
            self._cut(self)
            self._number = (
                self._troubles.get(self.count, -1) if name.startswith(self._store) else -1
            )
            if self._number == 0:
                time.sleep(SLOW_SECONDS)
            self.refused += self._number > 0
            return self._number > 0

    def forced(self, path: Path) -> None:
        """A file or folder was forced onto the disk."""
        with self._guard:
            self._held.append(os.open(path, os.O_RDONLY))
            number = os.fstat(self._held[-1]).st_ino
            if path.is_dir():
                self._names[number] = _names_in(path)
            else:
                self._content[number] = path.read_bytes()

    def left(self, rng: random.Random) -> Tree:
        """What a cut of the power leaves."""
        return dict(self._left_in(self._root, "", rng))

    def whole(self) -> Tree:
        """What the death of the process leaves: everything."""
        found: Tree = {}
        for path in sorted(self._root.rglob("*")):
            if not path.is_symlink():
                content = None if path.is_dir() else path.read_bytes()
                found[str(path.relative_to(self._root))] = content
        return found

    def _left_in(
        self, folder: Path, below: str, rng: random.Random
    ) -> Iterator[tuple[str, bytes | None]]:
        now = _names_in(folder)
        forced = self._names.get(folder.stat().st_ino, {})
        paths = {number: folder / name for name, number in now.items()}
        for name in sorted(now.keys() | forced.keys()):
            number = rng.choice((now.get(name), forced.get(name)))
            if number is None:
                continue
            path, called = paths.get(number), f"{below}{name}"
            if path is not None and path.is_dir():
                yield called, None
                yield from self._left_in(path, f"{called}/", rng)
            elif number in self._content or path is not None:
                content = b"" if path is None else path.read_bytes()
                is_gone = path is None
                yield called, self._left_of(number, content, is_gone, rng)

    def _left_of(self, number: int, content: bytes, is_gone: bool, rng: random.Random) -> bytes:
        """What is left of a file: what was forced, what is there now, or some of both."""
        forced = self._content.get(number, b"")
        if is_gone:  # its name was taken away, and that may have come to nothing
            return forced
        match rng.randrange(4):
            case 0:
                return forced
            case 1:
                return content
        length = rng.randint(*sorted((len(forced), len(content))))
        return _torn(forced, content, length, rng)

    def close(self) -> None:
        """Lets all files go."""
        self.is_over = True
        for each in self._held:
            os.close(each)


def _names_in(folder: Path) -> dict[str, int]:
    with os.scandir(folder) as entries:
        return {each.name: each.inode() for each in entries if not each.is_symlink()}


def _torn(forced: bytes, content: bytes, length: int, rng: random.Random) -> bytes:
    """So many bytes, each sector of which is of the one or the other, or was never written."""
    sectors = []
    for start in range(0, length, SECTOR):
        end = min(start + SECTOR, length)
        one = rng.choice((forced, content))[start:end]
        sectors.append(one.ljust(end - start, b"\0"))
    return b"".join(sectors)


def put(tree: Tree, folder: Path) -> None:
    """Makes files and folders as they were left."""
    for name, content in tree.items():
        if content is None:
            (folder / name).mkdir(parents=True, exist_ok=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


# -- a run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ledger:
    """What an engine has acknowledged: statements, tuples of each stream, and what it has shown."""

    statements: int = 0
    came: dict[str, int] = field(default_factory=dict)
    shown: dict[str, list[Any]] = field(default_factory=dict)
    """The results of queries that somebody has read."""


@dataclass(frozen=True)
class Cut:
    """What was left at a moment, and what had been acknowledged by then."""

    tree: Tree
    ledger: Ledger
    is_death: bool
    """Whether only the process ended."""
    goes_on: bool
    """Whether the rest of the script is done after it, and all answers are looked at."""


STATEMENTS = (
    "CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t DELAY 1",
    "CREATE STREAM U (t BIGINT, k INT) TIMESTAMP BY t",
    "CREATE RELATION R (k INT, name STRING) FROM push()",
    "INSERT INTO R VALUES (1, 'x'), (2, 'y')",
    "CREATE QUERY kept AS SELECT k, v FROM S WHERE v > 2 INTO csv('out/kept.csv')",
    """CREATE QUERY counted AS SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 5] GROUP BY k
       INTO json('out/counted.json')""",
    """CREATE QUERY joined AS ISTREAM(SELECT S.k, v FROM S [RANGE 3], U [RANGE 3] WHERE S.k = U.k)
       INTO parquet('out/joined')""",
    "CREATE QUERY named AS SELECT v, name FROM S [ROWS 3], R WHERE S.k = R.k",
)
LATER = (
    "INSERT INTO R VALUES (3, 'z')",
    "CREATE QUERY late AS SELECT k, max(v) AS m FROM S [RANGE 4] GROUP BY k",
    "DELETE FROM R WHERE k = 1",
    "ALTER STREAM S DELAY 2",
    "CREATE VIEW w AS SELECT k FROM U WHERE k > 0",
)
"""What may come while data flow."""

QUERIES = ("kept", "counted", "joined", "named", "late")


class Run:
    """An engine with a store on a simulated disk: what it is asked, by seed."""

    def __init__(self, folder: Path, seed: int, durability: str, going_on: float) -> None:
        self.folder, self.seed, self._durability = folder, seed, durability
        self._rng = random.Random(f"run {seed}")
        self.ledger, self.going_on = Ledger(), going_on
        self.cuts: list[Cut] = []
        self.refused = 0
        """How many changes of files the disk has refused."""
        self._wanted: set[int] = set()

    def engine(self, folder: Path) -> Engine:
        """The engine on the store in a folder."""
        settings = {"durability": self._durability, "validate": "off", **IN_THE_DRIVER}
        return Engine(settings, store=folder / "store", directory=folder)

    def script(self) -> Iterator[Callable[[Engine], None]]:
        """What is asked of it, one call after the other."""
        rng = random.Random(f"script {self.seed}")
        for text in STATEMENTS:
            yield _executing(text)
        later = list(LATER)
        for number in range(rng.randint(3, 7)):
            yield _pushing("S", number, [(number * 2 + i % 3, i % 4, i) for i in range(6)])
            yield _pushing("U", number, [(number * 2 + i, i) for i in range(3)])
            if rng.random() < 0.7:
                yield lambda engine: engine.run_until_idle()
            if later and rng.random() < 0.5:
                yield _executing(later.pop(rng.randrange(len(later))))
            if rng.random() < 0.25:
                yield lambda engine: engine.compact_log()
        yield lambda engine: engine.finish()

    def cut_somewhere(self) -> None:
        """Runs undisturbed, and notes at some changes of files what a cut there would leave."""
        changes = self._changes_of_a_run({})
        self._wanted = set(self._rng.sample(range(1, changes + 1), min(CUTS, changes)))
        shutil.rmtree(self.folder)
        self._changes_of_a_run(_troubles(changes, self._rng))

    def _changes_of_a_run(self, troubles: Mapping[int, int]) -> int:
        (self.folder / "out").mkdir(parents=True)
        self.ledger = Ledger()
        disk = CutDisk(self.folder, self._look, troubles)
        try:
            with used(disk):
                engine = self._opened(disk)
                while not self._is_done(engine, disk):
                    die(engine)
                    engine = self._opened(disk)
                disk.is_over = True
            die(engine)
        finally:
            disk.close()
        self.refused += disk.refused
        return disk.count

    def _opened(self, disk: CutDisk) -> Engine:
        return _asked_until_done(disk, lambda: self.engine(self.folder), opens=True)

    def _is_done(self, engine: Engine, disk: CutDisk) -> bool:
        """Does all that is asked for; False if the store is to be opened again for that."""
        try:
            for call in self.script():
                _asked_until_done(disk, partial(call, engine))
                self.ledger = ledger_of(engine)
        except MillpondError as error:
            if not _is_in_doubt(error):
                raise
            return False
        return True

    def _look(self, disk: CutDisk) -> None:
        if disk.count in self._wanted:
            is_death = self._rng.random() < 0.2
            tree = disk.whole() if is_death else disk.left(self._rng)
            goes_on = self._rng.random() < self.going_on
            self.cuts.append(Cut(tree, self.ledger, is_death, goes_on))

    def expected(self, folder: Path) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """The answers and sinks of a run that nothing has happened to."""
        (folder / "out").mkdir(parents=True)
        with self.engine(folder) as engine:
            for call in self.script():
                call(engine)
            shown = ledger_of(engine).shown
        return shown, sinks_in(folder / "out")


def _troubles(changes: int, rng: random.Random) -> dict[int, int]:
    """When a disk refuses to change files, and when it is slow."""
    found: dict[int, int] = {}
    for _ in range(rng.randint(0, TROUBLES)):
        first, number = rng.randint(1, changes), rng.choice((*REFUSALS, 0))
        found |= dict.fromkeys(range(first, first + rng.randint(1, LONGEST)), number)
    return found


def _asked_until_done(disk: CutDisk, call: Callable[[], T], opens: bool = False) -> T:
    """Asks again what was refused because of the disk, unless a store has to be opened for that."""
    while True:
        refused = disk.refused
        try:
            return call()
        except MillpondError as error:
            is_of_disk = disk.refused > refused or _is_refusal(error)
            if not is_of_disk or (_is_in_doubt(error) and not opens):
                raise


def _is_refusal(error: BaseException | None) -> bool:
    """Whether the disk refused it, perhaps of a step beside the one whose error came first."""
    if error is None:
        return False
    return (isinstance(error, OSError) and error.errno in REFUSALS) or _is_refusal(error.__cause__)


def _is_in_doubt(error: BaseException | None) -> bool:
    """Whether an error says that a store has to be opened again."""
    return error is not None and (isinstance(error, UnforcedError) or _is_in_doubt(error.__cause__))


def _executing(text: str) -> Callable[[Engine], None]:
    return lambda engine: engine.execute(text)


def _pushing(stream: str, number: int, rows: list[Any]) -> Callable[[Engine], None]:
    return lambda engine: engine.push(stream, rows, key=f"{stream} {number}")


def ledger_of(engine: Engine) -> Ledger:
    """What an engine has acknowledged."""
    there = {entry.name for entry in engine.catalog.entries.values()}
    shown = {name: engine.results(name, "rows") for name in QUERIES if name in there}
    came = {name: intake.arrived for name, intake in engine.inputs.streams.items()}
    return Ledger(len(there), came, shown)


def sinks_in(folder: Path) -> dict[str, Any]:
    """What the sinks below a folder hold."""
    parts = sorted((folder / "joined").glob("part-*.parquet"))
    rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
    texts = {name: (folder / name).read_bytes() for name in ("kept.csv", "counted.json")}
    return {"joined": rows, **texts}


# -- what must be there --------------------------------------------------------------------------


def verdict(run: Run, cut: Cut, expected: Any, folder: Path, promises: bool) -> str:
    """What is wrong after a cut; nothing: empty. Without ``promises`` damage may be refused."""
    put(cut.tree, folder)
    (folder / "out").mkdir(exist_ok=True)
    try:
        engine = run.engine(folder)
    except MillpondError as error:
        return f"cannot be opened: {error}" if promises or cut.is_death else ""
    try:
        promises = promises or cut.is_death
        fault = _missing(cut.ledger, engine) if promises else ""
        if not fault and cut.goes_on:
            fault = _differing(run, engine, expected, folder, promises)
        return fault
    finally:
        engine.close()


def _missing(before: Ledger, engine: Engine) -> str:
    """What is not there any more of what was acknowledged."""
    engine.validate()
    validate_open(engine)
    now = ledger_of(engine)
    for stream, count in before.came.items():
        if now.came.get(stream, 0) < count:
            return f"{stream} has {now.came.get(stream, 0)} of {count} acknowledged tuples"
    if now.statements < before.statements:
        return f"{before.statements - now.statements} statements are gone"
    for query, rows in before.shown.items():
        if now.shown[query][: len(rows)] != rows:
            return f"{query} has shown what it does not have any more"
    return ""


def _differing(run: Run, engine: Engine, expected: Any, folder: Path, promises: bool) -> str:
    """What is not as without the cut, once the rest of the script is done."""
    answers, sinks = expected
    try:
        for call in run.script():
            call(engine)
    except MillpondError as error:
        if promises:
            return f"does not go on: {type(error).__name__}: {error}"
        return ""
    after = ledger_of(engine).shown
    for query, rows in answers.items():
        if Counter(map(str, after[query])) != Counter(map(str, rows)):
            return f"{query} answers otherwise: {after[query]} for {rows}"
    written = sinks_in(folder / "out")
    different = [name for name in sinks if written[name] != sinks[name]] if promises else []
    return f"sinks hold something else: {different}" if different else ""


def memory() -> str | None:
    """A folder in memory, where forcing costs nothing, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def cuts_of(
    seed: int, durability: str = "disk", going_on: float = 0.25
) -> Iterator[tuple[Cut, str]]:
    """The cuts of the run of a seed, each with what was wrong after it; so many go on."""
    with tempfile.TemporaryDirectory(prefix="millpond-power-", dir=memory()) as place:
        run = Run(Path(place) / "run", seed, durability, going_on)
        run.cut_somewhere()
        expected = run.expected(Path(place) / "expected") if going_on else ({}, {})
        for number, cut in enumerate(run.cuts):
            folder = Path(place) / f"cut {number}"
            folder.mkdir()
            yield cut, verdict(run, cut, expected, folder, durability == "disk")
            shutil.rmtree(folder)


def main() -> None:
    """Cuts until there were so many; ends with 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000, help="how many cuts")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--durability", default="disk", choices=("disk", "process"))
    asked = parser.parse_args()
    began, cuts, wrong, seed = time.monotonic(), 0, 0, asked.seed
    while cuts < asked.n:
        for cut, fault in cuts_of(seed, asked.durability):
            cuts += 1
            if fault:
                wrong += 1
                what = "death" if cut.is_death else "cut"
                print(f"seed {seed}, {what} {cuts}: {fault}", flush=True)  # noqa: T201
        seed += 1
    took = time.monotonic() - began
    print(f"{cuts} cuts of {seed - asked.seed} runs, {wrong} wrong, {took:.0f} s")  # noqa: T201
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
