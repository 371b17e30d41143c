"""Section 4 of the STREAM paper: what less memory saves besides, on disk.

There are a number of relevant resources: memory, computation, I/O if disk is used, network
bandwidth; in many cases reducing memory overhead has a natural side-effect of reducing other
resource requirements as well.

The joins of `stream-ordered-arrival`, `stream-clustered-arrival`, `stream-many-one-join` and
`stream-referential-integrity`, by an engine with a store, with the largest k. Told
is what the store holds at most after any page, and what files have grown by from page to page; what
came and went in between is not seen. Computation is told by `millpond lab run throughput`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from millpond.facade.engine import Engine
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.stream.adherence import (
    CLUSTERED,
    IN_THE_DRIVER,
    JOIN,
    KS,
    ORDERED,
    REFERRING,
    UNIQUE,
    create_streams,
    push,
)
from millpond.lab.stream.arrivals import PAGES, Streams
from millpond.lab.tables import picked, table_of
from millpond.lab.words import SAME

CONSTRAINTS = {
    "ordered arrival": ORDERED,
    "clustered arrival": CLUSTERED,
    "many-one join": UNIQUE,
    "referential integrity": REFERRING,
}
TRIED = (KS[-1],)
RESOURCES = {"held": "bytes on disk at most", "written": "bytes written"}
Sizes: TypeAlias = Mapping[tuple[Path, int], int]
"""Bytes by file and what it is on the disk: one that is replaced is another."""


def run(seeds: Sequence[int], ks: Sequence[int] = TRIED) -> Tables:
    """Bytes with each constraint over bytes without, over the same streams."""
    rows = []
    for seed in seeds:
        for name, each in CONSTRAINTS.items():
            for k in ks:
                streams = each.streams(k, seed)
                mine, plain = (on_disk(streams, clauses) for clauses in (each.clauses(k), ("", "")))
                rows.append(
                    (name, k, seed, *(one / other for one, other in zip(mine, plain, strict=True)))
                )
    return {"with over without": table_of(("constraint", "k", "seed", *RESOURCES), rows)}


def on_disk(streams: Streams, clauses: tuple[str, str], pages: int = PAGES) -> tuple[int, int]:
    """The most that the join's store holds, and what it is written in all."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        held, written, before = 0, 0, dict[tuple[Path, int], int]()
        with Engine(IN_THE_DRIVER, store=store) as engine:
            create_streams(engine, clauses)
            engine.execute(f"CREATE QUERY q AS {JOIN}")
            for number in range(pages):
                for name, of_stream in zip("OF", streams, strict=True):
                    push(engine, name, of_stream, number)
                engine.run_until_idle()
                sizes = _sizes(store)
                held = max(held, sum(sizes.values()))
                written += grown(before, sizes)
                before = sizes
        return held, written


def _sizes(store: Path) -> dict[tuple[Path, int], int]:
    found = [(path, path.stat()) for path in store.rglob("*") if path.is_file()]
    return {(path, told.st_ino): told.st_size for path, told in found}


def grown(before: Sizes, now: Sizes) -> int:
    """By how many bytes files are longer, or new.

    >>> grown({(Path("a"), 1): 5}, {(Path("a"), 1): 7, (Path("a"), 2): 3})
    5
    """
    return sum(max(0, size - before.get(file, 0)) for file, size in now.items())


def plot(tables: Tables, figure: Figure) -> None:
    """A spot for each seed, constraint and k."""
    panels = figure.subplots(1, len(RESOURCES), sharey=True)
    table = tables["with over without"]
    names = [f"{name}, k = {k:,}" for name, k in zip(table["constraint"], table["k"], strict=True)]
    for axes, (column, label) in zip(panels, RESOURCES.items(), strict=True):
        axes.scatter(table[column], names, s=10)
        axes.set(xlabel=f"{label}, with over without", xlim=(0, 1.1))


def check(tables: Tables) -> Sequence[Claim]:
    """Less of either, for every constraint, k and seed."""
    return list(_claims(tables))


def _claims(tables: Tables) -> Iterator[Claim]:
    for name in CONSTRAINTS:
        for column, label in RESOURCES.items():
            ratios = picked(tables["with over without"], column, {"constraint": name})
            yield Claim(
                f"{name}: {label}, with the constraint over without",
                '"reducing memory overhead has a natural side-effect of reducing other resource '
                f'requirements as well": below {1 - SAME:g}, every k and seed',
                f"{min(ratios):.2f} to {max(ratios):.2f}",
                max(ratios) < 1 - SAME,
            )


EXPERIMENT = experiment(__name__, "Section 4, what less memory saves on disk", seeds=10, long=True)
