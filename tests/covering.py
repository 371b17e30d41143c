"""Whether confident bounds miss the truth as rarely as they say: the part of make fuzz.

    python -m tests.covering [--seeds 100] [--windows 1000] [--first 0]

Each seed draws a stream of 1,000 disjoint windows with constant, uniform, lognormal, Pareto, spiky
and sorted values, and with such as are large where most is dropped; 1 to 50 % are kept, and how
much changes in bursts. Each query runs twice in one engine, EXACT and tolerant. Of each function of
each kind of values 5 % of the answers may be missed; how many that are by chance at most, once in a
million, ``most_misses`` says: 5,327 of 100,000.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter

import numpy as np
import pyarrow as pa

from millpond import Engine

KINDS = ("constant", "uniform", "lognormal", "pareto", "spiky", "ordered", "bursty")
TUPLES, PAGES, RISK = 60, 40, 0.05
COLUMNS = ", ".join(f"{kind} DOUBLE" for kind in KINDS)
CREATED = f"CREATE STREAM W (g INT, f INT, {COLUMNS}, at BIGINT) TIMESTAMP BY at;"
CREATED += "CREATE RELATION Kinds (i INT PRIMARY KEY, kind INT, least INT);"
CREATED += "INSERT INTO Kinds VALUES (0, 5, 10), (1, 6, 60)"
NUMBERS = ", ".join(
    f"{function}({kind}) AS {function}_{kind}"
    for kind in KINDS
    for function in ("sum", "avg", "min", "max", "stddev")
)
PERCENTILES = {"uniform": 0.5, "lognormal": 0.9, "pareto": 0.25, "spiky": 0.99, "ordered": 0.5}
PERCENTILES |= {"constant": 0.5, "bursty": 0.75}
QUERIES = {
    "plain": f"SELECT window_start AS w, 0 AS g, count(*) AS count_all, {NUMBERS} FROM W "
    f"[TUMBLE {TUPLES}] GROUP BY window_start",
    "filtered": f"SELECT window_start AS w, 0 AS g, count(*) AS count_all, {NUMBERS} FROM W "
    f"[TUMBLE {TUPLES}] WHERE f < 30 GROUP BY window_start",
    "grouped": f"SELECT window_start AS w, g, count(*) AS count_all, {NUMBERS} FROM W "
    f"[TUMBLE {TUPLES}] WHERE f > 20 GROUP BY window_start, g",
    "met": f"SELECT window_start AS w, kind AS g, count(*) AS count_all, {NUMBERS} FROM Kinds, W "
    f"[TUMBLE {TUPLES}] WHERE g = i AND f > least GROUP BY window_start, kind",
    "ranked": "SELECT window_start AS w, g, count(*) AS count_all, "
    + ", ".join(f"percentile({kind}, {part}) AS p_{kind}" for kind, part in PERCENTILES.items())
    + f" FROM W [TUMBLE {TUPLES}] GROUP BY window_start, g",
    "ranked_hits": "SELECT window_start AS w, g, count(*) AS count_all, "
    + ", ".join(f"percentile({kind}, {part}) AS p_{kind}" for kind, part in PERCENTILES.items())
    + f" FROM W [TUMBLE {TUPLES}] WHERE f > 20 GROUP BY window_start, g",
    "different": "SELECT window_start AS w, g, count(DISTINCT f) AS different_f FROM W "
    f"[TUMBLE {TUPLES}] WHERE spiky < 2 GROUP BY window_start, g",
}


def stream(seed, windows, pages):
    """The tuples of a seed, and in which of the pages there is a burst."""
    random, rows = np.random.default_rng(seed), windows * TUPLES
    is_burst = random.random(pages) < 0.4
    in_burst = is_burst[np.arange(rows) * pages // rows]
    columns = {
        "g": random.integers(0, 2, rows).astype(np.int32),
        "f": random.integers(0, 100, rows).astype(np.int32),
        "constant": np.full(rows, 3.0),
        "uniform": random.random(rows),
        "lognormal": random.lognormal(0, 1, rows),
        "pareto": random.pareto(1.1, rows),
        "spiky": np.where(random.random(rows) < 0.01, 1000.0, 1.0),
        "ordered": np.sort(random.normal(0, 1, rows)),
        "bursty": random.random(rows) + 5 * in_burst,
        "at": np.arange(rows),
    }
    return pa.table(columns), is_burst


def percents(seed, is_burst):
    """How many percent of each page are kept: fewer in bursts."""
    random = np.random.default_rng([seed, 1])
    low, high = sorted(np.exp(random.uniform(np.log(1), np.log(50), 2)))
    return [round(low if each else high, 3) for each in is_burst.tolist()]


def answers(engine, query):
    """The answers at the ends of the windows, by window and group."""
    return {(row["w"], row["g"]): row for row in engine.results(query, "rows") if is_last(row)}


def is_last(row):
    return row["weight"] > 0 and (row["ts"] is None or row["ts"] == row["w"] + TUPLES - 1)


def missed(seed, windows, queries=tuple(QUERIES), pages=PAGES):
    """Of each function how often bounds have missed the truth, and of how many."""
    table, is_burst = stream(seed, windows, pages)
    misses, looked_at = Counter(), Counter()
    settings = {"overload": "approximate", "seed": 1000 + seed, "driver_rows": 10**9}
    with Engine(settings | {"place_by": "rows"}) as engine:
        engine.execute(CREATED)
        for name in queries:
            tolerant = f"CREATE QUERY {name} TOLERATE (CONFIDENCE 95 PERCENT)"
            engine.execute(f"{tolerant} AS {QUERIES[name]}")
            engine.execute(f"CREATE QUERY {name}_exact AS {QUERIES[name]}")
        for page, percent in enumerate(percents(seed, is_burst)):
            first, last = (table.num_rows * each // pages for each in (page, page + 1))
            engine.execute(f"ALTER STREAM W KEEP {percent} PERCENT")
            engine.push("W", table.slice(first, last - first))
        engine.finish()
        assert engine.quality(queries[0]).dropped > table.num_rows / 3
        for name in queries:
            truths, found = answers(engine, f"{name}_exact"), answers(engine, name)
            for key, truth in truths.items():
                for column, value in truth.items():
                    if "_" in column:
                        near = found[key]
                        looked_at[name, column] += 1
                        misses[name, column] += not is_within(near, column, value)
    return misses, looked_at


def is_within(near, column, value):
    """Whether bounds have the truth; what is no number has no bound."""
    low, high = near[f"{column}_low"], near[f"{column}_high"]
    return value is None or (low is not None and low <= value <= high)


def most_misses(answers, risk=RISK):
    """So many misses are exceeded by chance once in a million, by the normal approximation: a few
    less than by the binomial itself, 5,327 of 100,000 and not 5,331."""
    return int(answers * risk + 4.753424 * math.sqrt(answers * risk * (1 - risk)))


def main():
    """Runs the seeds and says what was missed; fails if that is too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    misses, looked_at = Counter(), Counter()
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        found = missed(seed, chosen.windows)
        for total, more in zip((misses, looked_at), found, strict=True):
            total.update(more)
        line = f"seed {seed}: {found[0].total():,} of {found[1].total():,} answers missed"
        print(line, flush=True)  # noqa: T201
    worst = max(looked_at, key=lambda each: misses[each] / looked_at[each])
    wrong = [each for each in looked_at if misses[each] > most_misses(looked_at[each])]
    told = [f"{looked_at.total():,} answers of {len(looked_at)} functions, "]
    told[0] += f"{misses.total():,} missed; most of these:"
    shown = dict.fromkeys((worst, *wrong))
    told += [f"  {' '.join(each)}: {misses[each]:,} of {looked_at[each]:,}" for each in shown]
    print("\n".join(told))  # noqa: T201
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
