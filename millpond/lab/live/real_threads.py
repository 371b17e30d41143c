"""Section 6.5 of the HMTS paper with threads of the machine: the same query up to 200 times.

The more queries are running, the better is direct interoperability than a thread for each operator

Five selections with selectivities of 0.998 to 0.990, as in section 6.4, over one source, with the
operating system as the scheduler. Under direct interoperability there is one queue after the
source, and one thread for all selections; else each selection has a queue and a thread of its own.
What waits and is handed on are chunks of elements, fewer than the paper's, since each of Python's
calls costs as much as some hundred of its comparisons. Wall-clock time on this machine, which is to
have nothing else to do; a quarter of a minute a round.
"""

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.sentences import ABOVE_ONE, Sentence, judged, measured

Chunk: TypeAlias = npt.NDArray[np.int64]
Waiting: TypeAlias = SimpleQueue[Chunk | None]

SELECTIVITIES = (0.998, 0.996, 0.994, 0.992, 0.990)
FACTORS = (7919, 104_729, 1_299_709, 15_485_863, 179_424_673)
"""Of the hash by which each selection chooses."""
THOUSAND = 1000
QUERIES = (1, 10, 50, 100, 200)
LEAST_QUERIES = 40
TRIES = 3
ELEMENTS, CHUNK = 10_000, 100


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
            works.append(partial(selection, query, number, *pair))
    _run(works, source, firsts)
    return sum(counts)


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


SENTENCES: Sequence[Sentence[dict[int, float]]] = (
    Sentence(
        "a significant difference between OTS and DI",
        "how many times as long OTS takes, most queries",
        lambda ratios: ratios[QUERIES[-1]],
        1.4,  # what it is for one query in section 6.4
    ),
    Sentence(
        "the more queries are running, the better is DI",
        "the same against one query",
        lambda ratios: ratios[QUERIES[-1]] / ratios[QUERIES[0]],
        ABOVE_ONE,
    ),
)
MODES = {"DI": directly, "OTS": in_threads}


def seconds(mode: str, queries: int, source: Sequence[Chunk]) -> float:
    """How long a mode takes until all has passed: the least of some times, since other work on the
    machine makes it longer only; few queries are done so soon that they are done several times."""
    times = math.ceil(LEAST_QUERIES / queries)
    found = []
    for _ in range(TRIES):
        began = time.perf_counter()
        for _ in range(times):
            MODES[mode](queries, source)
        found.append((time.perf_counter() - began) / times)
    return min(found)


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
    found = _ratios(tables)
    rounds = (dict(zip(found, each, strict=True)) for each in zip(*found.values(), strict=True))
    return judged(SENTENCES, measured(SENTENCES, rounds))


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
