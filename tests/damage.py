"""Damages stores in every way and opens them: ``python -m tests.damage --n 2000``.

A few small stores are made once. Each case copies one, changes a file, and goes on: the answers
must be those of an undamaged store, or the store is refused by an error that names what is damaged.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from millpond import Engine
from millpond.errors import MillpondError, StateError
from millpond.facade.repair import repair
from millpond.storage import lease
from millpond.storage.log import LogEnd, framing_of
from millpond.storage.mark import LOG, NAME
from millpond.storage.soundness import check
from millpond.storage.store import END
from tests.crashing import die

SCRIPT = """
CREATE STREAM S (t BIGINT, k INT, a INT) TIMESTAMP BY t DELAY 2;
CREATE STREAM T (t BIGINT, k INT, b INT) TIMESTAMP BY t;
CREATE RELATION R (k INT, name STRING) FROM push();
CREATE QUERY one AS SELECT t, a FROM S WHERE a > 1;
CREATE QUERY two AS SELECT t, a FROM S WHERE a > 2;
CREATE QUERY three AS SELECT t, a FROM S WHERE a > 3;
CREATE QUERY summed AS SELECT k, count(*) AS n, sum(a) AS s FROM S [RANGE 20] GROUP BY k;
CREATE QUERY largest AS SELECT k, max(a) AS m FROM S [ROWS 9] GROUP BY k;
CREATE QUERY distinct_k AS SELECT DISTINCT k FROM T [RANGE 15];
CREATE QUERY joined AS SELECT S.a, T.b FROM S [RANGE 10], T [RANGE 10] WHERE S.k = T.k;
CREATE QUERY named AS SELECT S.a, R.name FROM S [NOW], R WHERE S.k = R.k INTO csv('named.csv');
CREATE QUERY whole AS RSTREAM(SELECT k, b FROM T [RANGE 4]);
CREATE QUERY skipping ON ERROR SKIP AS SELECT 2147483640 + a AS big FROM S;
CREATE QUERY still AS SELECT b FROM T; ALTER QUERY still INACTIVE;
"""
QUERIES = ("one", "two", "three", "summed", "largest", "distinct_k", "joined", "named", "whole")
QUERIES += ("skipping", "still")
PUSHES = 6


def open_engine(directory: Path) -> Engine:
    """The engine on the store of a directory; files of sinks lie beside it."""
    return Engine(store=directory / "store", directory=directory)


def rows_of(number: int) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The tuples of the n-th push: of S, one of them late, and of T."""
    rng = random.Random(number)
    times = range(10 * number, 10 * number + 10)
    left = [(t, rng.randrange(3), rng.randrange(12)) for t in times]
    right = [(t, rng.randrange(3), rng.randrange(12)) for t in times]
    return [*left, (max(0, 10 * number - 9), 1, 1)], right


def push(engine: Engine, number: int) -> None:
    """The n-th push, with keys: done again it does nothing."""
    left, right = rows_of(number)
    engine.push("S", left, key=f"s{number}")
    if number % 2 == 0:
        engine.push("R", [(number % 3, f"name {number}")], key=f"r{number}")
    engine.push("T", right, key=f"t{number}")


def answers(engine: Engine) -> dict[str, object]:
    """All that an engine answers."""
    found: dict[str, object] = {
        name: sorted(map(repr, engine.results(name).to_pylist())) for name in QUERIES
    }
    found["late"] = engine.late("S").to_pylist()
    found["left out"] = engine.left_out("skipping").to_pylist()
    found["sink"] = (engine.ground.directory / "named.csv").read_text()
    return found


@dataclass
class Base:
    """A store that was made once, and what it answers in the end."""

    name: str
    directory: Path
    expected: dict[str, object] = field(default_factory=dict)
    torn: bytes = b""
    """The record that was being appended."""
    dying: list[Base] = field(default_factory=list)
    """The same store at moments in which a record was appended."""

    @property
    def store(self) -> Path:
        """Its directory."""
        return self.directory / "store"


def go_on(directory: Path, again: bool) -> dict[str, object]:
    """Opens a store, pushes what is still to come and answers; what was pushed again if asked."""
    engine = open_engine(directory)
    try:
        engine.execute(SCRIPT)
        for number in range(0 if again else PUSHES // 2, PUSHES):
            push(engine, number)
        engine.execute("ALTER QUERY still ACTIVE")
        engine.finish()
        return answers(engine)
    finally:
        engine.close()


def make(directory: Path, name: str) -> Base:
    """A store after half of the pushes: closed, with its log begun anew, or of a killed engine."""
    directory.mkdir()
    engine = open_engine(directory)
    base = Base(name, directory)
    engine.execute(SCRIPT)
    for number in range(PUSHES // 2):
        if name == "closed" and number == PUSHES // 2 - 1:
            die_at_appends(engine, base)
        push(engine, number)
        if name != "waiting" or number < 1:
            engine.run_until_idle()
        if name == "begun anew" and number == 1:
            engine.compact_log()
    if name == "begun anew":
        engine.compact_log()
    if name == "killed":
        die(engine)
        engine.store.path(engine.store.new_name("pages", ".parquet")).write_bytes(b"half a page")
    else:
        engine.close()
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        shutil.copytree(directory, copy)
        base.expected = go_on(copy, again=False)
    for dying in base.dying:
        dying.expected = base.expected
    return base


def die_at_appends(engine: Engine, base: Base) -> None:
    """Copies the store whenever a record is about to be appended."""
    log = engine.journal._log
    append = log.append

    def copied(records):
        place = base.directory.parent / f"dying-{len(base.dying)}"
        shutil.copytree(base.directory, place)
        start = log.bytes
        append(records)
        base.dying.append(Base(place.name, place, torn=log.path.read_bytes()[start:]))

    log.append = copied


BASES = ("closed", "begun anew", "killed", "waiting")

# -- what is done to a store -----------------------------------------------------------------------

Change = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """A store, what happens to it, and whether what was pushed is pushed again."""

    base: Base
    what: str
    change: Change
    again: bool = False
    needs_exact: bool = False
    """Whether it must go on."""


def cases(base: Base, rng: random.Random) -> Iterator[Case]:
    """Every kind of damage to every file of a store, and to every record of its log."""
    names = sorted(str(f.relative_to(base.store)) for f in base.store.rglob("*") if f.is_file())
    for name in names:
        for what, change in file_changes(base.store / name, rng):
            yield Case(base, f"{name} {what}", on_file(name, change))
        yield Case(base, f"{name} removed", lambda store, n=name: (store / n).unlink())
        others = [n for n in names if n != name and Path(n).parent == Path(name).parent]
        for other in rng.sample(others, min(2, len(others))):
            yield Case(base, f"{name} becomes {other}", overwritten(name, other))
            yield Case(base, f"{name} and {other} swapped", swapped(name, other))
    yield from log_cases(base, rng)
    yield from harmless_cases(base)
    for each in base.dying:
        yield from torn_cases(each, rng)


def file_changes(file: Path, rng: random.Random) -> Iterator[tuple[str, Callable[[bytes], bytes]]]:
    """Ways to change the bytes of a file, each of which changes them."""
    size = file.stat().st_size
    if not size:  # there is nothing to damage
        yield "with a byte behind", lambda c: c + b"\0"
        return
    for place in {0, size // 2, size - 1, *(rng.randrange(size) for _ in range(4))}:
        bit = rng.randrange(8)
        yield f"bit {bit} of byte {place} flipped", lambda c, p=place, b=bit: flipped(c, p, b)
    for length in {0, 1, size // 2, size - 1, rng.randrange(size)} - {size}:
        yield f"cut to {length}", lambda c, n=length: c[:n]
    yield "doubled", lambda c: c + c
    yield "with a byte behind", lambda c: c + b"\0"
    place = rng.randrange(size)
    yield f"with other bytes at {place}", lambda c, p=place: c[:p] + b"\xff\x00MILL" + c[p + 6 :]
    yield f"without byte {place}", lambda c, p=place: c[:p] + c[p + 1 :]
    yield f"zero from {place}", lambda c, p=place: c[:p] + bytes(len(c) - p - 1) + b"\1"


def flipped(content: bytes, place: int, bit: int) -> bytes:
    """A content with one bit changed."""
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def on_file(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Changes the bytes of a file of a store."""

    def changed(store: Path) -> None:
        (store / name).write_bytes(change((store / name).read_bytes()))

    return changed


def overwritten(name: str, other: str) -> Change:
    """A file gets the content of another one."""
    return lambda store: (store / name).write_bytes((store / other).read_bytes())


def swapped(name: str, other: str) -> Change:
    """Two files change places."""

    def changed(store: Path) -> None:
        one, two = (store / name).read_bytes(), (store / other).read_bytes()
        (store / name).write_bytes(two)
        (store / other).write_bytes(one)

    return changed


def log_cases(base: Base, rng: random.Random) -> Iterator[Case]:
    """What can happen to each record of a log."""
    content = (base.store / LOG).read_bytes()
    bounds = framing_of(content).bounds
    for number, each in enumerate(bounds):
        before, own, after = (
            content[: each.start],
            content[each.start : each.end],
            content[each.end :],
        )
        inside = rng.randrange(1, len(own))
        ways = {
            "taken out": before + after,
            "doubled": before + own + own + after,
            "cut off at its start": before,
            "cut off inside": before + own[:inside],
            "shortened": before + own[:inside] + after,
            "with a flipped bit": before + flipped(own, inside, rng.randrange(8)) + after,
            "with a flipped bit in its head": before + flipped(own, rng.randrange(20), 3) + after,
            "with bytes before it": before + b"mlp2" + own + after,
            "moved to the end": before + after + own,
        }
        if number:
            last = content[bounds[number - 1].start : each.start]
            ways["before the one before"] = before[: -len(last)] + own + last + after
        for what, changed in ways.items():
            if changed != content:
                yield Case(base, f"record {number} {what}", on_file(LOG, lambda _, c=changed: c))


def torn_cases(base: Base, rng: random.Random) -> Iterator[Case]:
    """The engine died while it appended a record: what was pushed is pushed again."""
    for length in {0, 1, len(base.torn) - 1, *(rng.randrange(len(base.torn)) for _ in range(2))}:
        change = on_file(LOG, lambda c, n=length: c + base.torn[:n])
        yield Case(base, f"died {length} bytes into a record", change, again=True, needs_exact=True)


def harmless_cases(base: Base) -> Iterator[Case]:
    """What is no damage: files of others, and what a death has left."""

    def other_files(store: Path) -> None:
        some = next(iter(sorted((store / "state").iterdir())), store / LOG)
        for name in (*USER_FILES, f"state/{some.name} (copy)", f"pages/copy of {some.name}"):
            (store / name).parent.mkdir(exist_ok=True, parents=True)
            (store / name).write_text("mine")

    def half_new_log(store: Path) -> None:
        (store / "commits.new").write_bytes((store / LOG).read_bytes()[:99])

    def old_end(store: Path) -> None:
        end = LogEnd(store / END)
        end.write(framing_of((store / LOG).read_bytes()).bounds[-2].number)
        end.close()

    for what, change in (
        ("with files of the user", other_files),
        ("with half a new log", half_new_log),
        ("killed before the end was noted", old_end),
    ):
        yield Case(base, what, change, needs_exact=True)


USER_FILES = (
    "notes.txt",
    "pages/notes.txt",
    "pages/0-99.parquet",
    "pages/1-0.parquet",
    "pages/folder/deep.parquet",
    "state/1-2",
    "slots/mine",
    "slots/1-2/0.parquet",
)

# -- what comes of it ------------------------------------------------------------------------------


def outcome(case: Case, directory: Path) -> str:
    """Exact, refused, or what went wrong."""
    shutil.copytree(case.base.directory, directory)
    store = directory / "store"
    case.change(store)
    before = contents(store)
    try:
        found = go_on(directory, case.again)
    except MillpondError as error:
        return _refused(case, store, before, error)
    except Exception as error:  # noqa: BLE001 (what is counted)
        return f"raw: {type(error).__name__}: {error}"
    if found != case.base.expected:
        different = [name for name in found if found[name] != case.base.expected[name]]
        return f"silent: {', '.join(different)}"
    missing = [name for name in USER_FILES if name in before and name not in contents(store)]
    return f"deleted: {missing}" if missing else "exact"


def _refused(case: Case, store: Path, before: dict[str, bytes], error: MillpondError) -> str:
    text = str(error)
    if not isinstance(error, StateError) or not any(name in text for name in _culprits(case)):
        return f"unnamed: {text}"
    if case.needs_exact:
        return f"refused what is sound: {text}"
    was_opened = "results" in text or contents(store) != before
    if was_opened and not any(f"{folder}/" in text for folder in ("pages", "state")):
        return f"touched: {text}"
    return "refused"


def _culprits(case: Case) -> list[str]:
    return [LOG, NAME, END, *(word for word in case.what.split() if "/" in word)]


def contents(store: Path) -> dict[str, bytes]:
    """All files of a store, but those that say who drives it."""
    own = (lease.NAME, lease.GUARD)
    files = (file for file in store.rglob("*") if file.is_file() and file.name not in own)
    return {str(file.relative_to(store)): file.read_bytes() for file in files}


def repaired(case: Case, directory: Path) -> str | None:
    """Checks, repairs and opens a store that was refused; what went wrong with that."""
    store = directory / "store"
    try:
        if check(store).is_sound:
            return "check says it is sound"
        before = contents(store)
        told = repair(store)
        left = set(contents(store).values())
        if [name for name in before if Path(name).parent.name and before[name] not in left]:
            return "repair has deleted something"
        is_lossless = not any("lost" in line for line in told)
        if is_lossless and not any("made anew" in line for line in told):
            return f"repair names no loss: {told}"
        found = check(store)
        if not found.is_sound:
            return f"repair has left {found.faults}"
        if is_lossless and go_on(directory, again=False) != case.base.expected:
            return "silent after a repair"
        with open_engine(directory) as engine:
            engine.execute(SCRIPT)
    except StateError as error:
        return None if "neither" in str(error) else f"repair: {error}"
    except Exception as error:  # noqa: BLE001 (what is counted)
        return f"repair, raw: {type(error).__name__}: {error}"
    return None


def chosen_cases(bases: list[Base], count: int, rng: random.Random) -> list[Case]:
    """So many cases: all kinds if there are enough, and others of the same kinds if not."""
    found = [case for base in bases for case in cases(base, rng)]
    while len(found) < count:
        found += list(cases(rng.choice(bases), rng))
    must = [case for case in found if case.needs_exact]
    others = [case for case in found if not case.needs_exact]
    sound = rng.sample(must, min(len(must), count // 6))
    return rng.sample(sound + rng.sample(others, count - len(sound)), count)


def damage(count: int, seed: int, place: Path, tell: Callable[[str], None]) -> Counter[str]:
    """Makes the stores and damages them so often; how often what came of it."""
    rng = random.Random(seed)
    bases = [make(place / name.replace(" ", "-"), name) for name in BASES]
    tally: Counter[str] = Counter()
    began = time.monotonic()
    for number, case in enumerate(chosen_cases(bases, count, rng)):
        directory = place / "case"
        found = outcome(case, directory)
        if found == "refused" and number % 5 == 0:
            found = repaired(case, directory) or "refused, repaired"
        kind = found.split(":")[0]
        tally[kind] += 1
        if kind not in GOOD:
            tell(f"{case.base.name}: {case.what}: {found}")
        if number % 100 == 99:
            tell(f"{number + 1} cases, {time.monotonic() - began:.0f} s: {dict(tally)}")
        shutil.rmtree(directory)
    return tally


GOOD = ("exact", "refused", "refused, repaired")


def main(given: list[str] | None = None) -> int:
    """Damages stores ``--n`` times; how many cases went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.damage", description=__doc__)
    parser.add_argument("--n", type=int, default=2_000, help="how many cases")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(given)

    def tell(line: str) -> None:
        print(line, flush=True)  # noqa: T201

    with tempfile.TemporaryDirectory(prefix="millpond-damage-") as place:
        tally = damage(chosen.n, chosen.seed, Path(place), tell)
    bad = sum(count for kind, count in tally.items() if kind not in GOOD)
    tell(f"{tally.total()} cases, seed {chosen.seed}: {dict(tally)}; {bad} went wrong")
    return bad


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
