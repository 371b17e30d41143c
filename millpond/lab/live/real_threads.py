"""Section 6.5 of the HMTS paper with threads of the machine: the same query up to 200 times.

The more queries are running, the better is direct interoperability than a thread for each operator

Five selections with selectivities of 0.998 to 0.990, as in section 6.4, over one source, with the
operating system as the scheduler. Under direct interoperability there is one queue after the
source, and one thread for all selections; else each selection has a queue and a thread of its own.
What waits and is handed on are chunks of elements, fewer than the paper's, since each of Python's
calls costs as much as some hundred of its comparisons. Wall-clock time on this machine, which is to
have nothing else to do; a minute a round.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.lab.experiment import Claim, Figure, Tables, experiment

Chunk: TypeAlias = npt.NDArray[np.int64]
Waiting: TypeAlias = SimpleQueue[Chunk | None]

SELECTIVITIES = (0.998, 0.996, 0.994, 0.992, 0.990)
FACTORS = (7919, 104_729, 1_299_709, 15_485_863, 179_424_673)
"""Of the hash by which each selection chooses."""
THOUSAND = 1000
QUERIES = (1, 10, 50, 100, 200)
ELEMENTS, CHUNK = 10_000, 100
SHARE = 0.9
"""What is said of rounds is so if it is so in this share of them."""


def selected(chunk: Chunk, number: int) -> Chunk:
    """The elements that a selection passes."""
    return chunk[chunk * FACTORS[number] % THOUSAND < THOUSAND * SELECTIVITIES[number]]


def chunks(seed: int) -> list[Chunk]:
    """The elements of the source."""
    numbers = np.random.default_rng(seed).integers(0, 10**9, ELEMENTS)
    return list(numbers.reshape(-1, CHUNK))


def directly(queries: int, source: Iterable[Chunk]) -> int:
    """How many elements pass all queries when one thread calls every selection."""
    first: Waiting = SimpleQueue()
    counts = [0] * queries

    def work() -> None:
        while (chunk := first.get()) is not None:
            for query in range(queries):
                passed = chunk
                for number in range(len(SELECTIVITIES)):
                    passed = selected(passed, number)
                counts[query] += len(passed)

    _run([work], source, [first])
    return sum(counts)


def in_threads(queries: int, source: Iterable[Chunk]) -> int:
    """The same when every selection has a queue and a thread."""
    counts = [0] * queries

    def selection(query: int, number: int, waiting: Waiting, after: Waiting | None) -> None:
        while (chunk := waiting.get()) is not None:
            passed = selected(chunk, number)
            if after is None:
                counts[query] += len(passed)
            else:
                after.put(passed)
        if after is not None:
            after.put(None)

    works, firsts = [], []
    for query in range(queries):
        line: list[Waiting] = [SimpleQueue() for _ in SELECTIVITIES]
        firsts.append(line[0])
        for number, pair in enumerate(zip(line, [*line[1:], None], strict=True)):
            works.append(_bound(selection, query, number, *pair))
    _run(works, source, firsts)
    return sum(counts)


def _bound(work: Callable[..., None], *arguments: Any) -> Callable[[], None]:
    return lambda: work(*arguments)


def _run(works: Sequence[Callable[[], None]], source: Iterable[Chunk], firsts: list[Any]) -> None:
    """Has threads work until they have had all that the source delivers."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for chunk in source:
        for first in firsts:
            first.put(chunk)
    for first in firsts:
        first.put(None)
    for thread in threads:
        thread.join()


MODES = {"DI": directly, "OTS": in_threads}


def seconds(mode: str, queries: int, source: Sequence[Chunk]) -> float:
    """How long a mode takes until all has passed."""
    began = time.perf_counter()
    MODES[mode](queries, source)
    return time.perf_counter() - began


def run(seeds: Sequence[int]) -> Tables:
    """A row for each round and number of queries; the modes take turns."""
    seconds("OTS", 1, chunks(0))  # what is done once is done
    rows = [
        (seed, queries, *(seconds(mode, queries, chunks(seed)) for mode in MODES))
        for seed in seeds
        for queries in QUERIES
    ]
    columns = zip(*rows, strict=True)
    return {"rounds": dict(zip(("seed", "queries", *MODES), map(list, columns), strict=True))}


def plot(tables: Tables, figure: Figure) -> None:
    """Figure 8: seconds by the number of queries."""
    axes = figure.subplots()
    for mode in MODES:
        found = _by_queries(tables, mode)
        axes.plot(list(found), [statistics.median(each) for each in found.values()], label=mode)
    axes.set(xlabel="queries", ylabel="seconds", ylim=(0, None))
    axes.legend()


def check(tables: Tables) -> list[Claim]:
    """The sentences of the section, round by round."""
    ratios = [
        dict(zip(QUERIES, each, strict=True))
        for each in zip(*(_ratios(tables)[queries] for queries in QUERIES), strict=True)
    ]
    fewest, most = QUERIES[0], QUERIES[-1]
    return [
        _claim(
            f'"a significant difference between OTS and DI", {most} queries',
            "OTS at least 1.4 times as long",
            [each[most] for each in ratios],
            1.4,
        ),
        _claim(
            f'"the more queries are running, the better is DI", {most} against {fewest}',
            "the ratio is larger",
            [each[most] / each[fewest] for each in ratios],
            1.0,
        ),
    ]


def _claim(text: str, expected: str, found: Sequence[float], least: float) -> Claim:
    holding = sum(each >= least for each in found)
    spread = f"{min(found):.2f} to {max(found):.2f} times; in {holding} of {len(found)} rounds"
    expected = f"{expected}, in {SHARE:.0%} of the rounds"
    return Claim(text, expected, spread, holding >= SHARE * len(found))


def _ratios(tables: Tables) -> dict[int, list[float]]:
    """How many times as long OTS takes as DI, by the number of queries, round by round."""
    direct, threaded = (_by_queries(tables, mode) for mode in MODES)
    return {
        queries: [
            slow / quick for slow, quick in zip(threaded[queries], direct[queries], strict=True)
        ]
        for queries in QUERIES
    }


def _by_queries(tables: Tables, mode: str) -> dict[int, list[float]]:
    table = tables["rounds"]
    pairs = list(zip(table["queries"], table[mode], strict=True))
    return {queries: [each for at, each in pairs if at == queries] for queries in QUERIES}


EXPERIMENT = experiment(
    __name__,
    "Scalability of OTS, with threads of the machine",
    paper="HMTS",
    together="live",
    group="live",
)
