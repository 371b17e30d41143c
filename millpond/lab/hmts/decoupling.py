"""HMTS paper, Figure 6: joins that run in the threads of their sources slow these down.

A join that runs in its sources' threads cannot keep pace: the input rate falls after 58 s with a
hash join, after 17 s with nested loops. Queues keep the sources going.

The paper prints no costs; those of a partner are fitted to the two times (29 ns for each element of
the other window by nested loops, 0.86 ms for each partner that the hash join finds) and varied from
half to twice that. What a hash join finds is drawn, so that its rate has fallen when it is 3 %
below for five seconds, on ten draws. Where rates settle and what a queue takes in follow.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.hmts.joins_in_source_threads import (
    ELEMENTS,
    ELEMENTS_PER_SECOND,
    HASH,
    LOOPS,
    SLOWS_AFTER_SECONDS,
    TOGETHER,
    WINDOW_SECONDS,
    busy_seconds,
    coupled,
    decoupled,
    falls_after,
    falls_for_long_after,
    partner_seconds,
    per_second,
)
from millpond.lab.tables import table_of
from millpond.lab.words import ABOUT, about, on_most_seeds

FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0)
"""The fitted cost of a partner is varied from half to twice."""
VARIED_SECONDS = 100.0
"""A join that keeps pace until its windows are full and for 40 s more is one that does."""
Falls: TypeAlias = Mapping[float, Sequence[float]]
"""When the rate falls on each draw, by the cost of a partner in seconds."""


def run(seeds: Sequence[int], elements: int = ELEMENTS) -> Tables:
    """The rate of both sources together, second by second, for the first draw."""
    emitted = {join: coupled(join, elements, seed=seeds[0]) for join in SLOWS_AFTER_SECONDS}
    records = {join: decoupled(join, elements) for join in SLOWS_AFTER_SECONDS}
    ends = [each[-1] for each in emitted.values()]
    ends += [each.finished_seconds for each in records.values()]
    seconds = np.arange(1.0, np.ceil(max(ends)) + 1)
    schedule = np.arange(0, elements, TOGETHER) / ELEMENTS_PER_SECOND
    table = {"second": seconds, "with a queue": per_second(np.repeat(schedule, 2), seconds)}
    for join in SLOWS_AFTER_SECONDS:
        table[f"{join}, no queue"] = per_second(emitted[join], seconds)
        table[f"{join}, backlog of the queue"] = records[join].memory.at(seconds)
    lasting = min(elements, int(VARIED_SECONDS * ELEMENTS_PER_SECOND))
    return {"rates": table, "partner cost": _varied(lasting, seeds)}


def _varied(elements: int, seeds: Sequence[int]) -> dict[str, list[object]]:
    """When the rate falls, by the cost of a partner; infinity where it never does."""
    seconds = np.arange(1.0, elements / ELEMENTS_PER_SECOND + 1)
    rows: list[tuple[object, ...]] = []
    for factor in FACTORS:
        rates = per_second(coupled(LOOPS, elements, factor), seconds)
        rows.append(
            (LOOPS, factor, None, partner_seconds(LOOPS, factor), falls_after(rates, seconds))
        )
        for seed in seeds:
            rates = per_second(coupled(HASH, elements, factor, seed=seed), seconds)
            falls = falls_for_long_after(rates, seconds)
            rows.append((HASH, factor, seed, partner_seconds(HASH, factor), falls))
    return table_of(("join", "factor", "seed", "partner seconds", "falls"), rows)


def plot(tables: Tables, figure: Figure) -> None:
    """Input rates above, backlog with a queue below."""
    above, below = figure.subplots(2, 1, sharex=True)
    table = tables["rates"]
    for name in table:
        if name != "second":
            axes = below if name.endswith("backlog of the queue") else above
            axes.plot(table["second"], table[name], label=name)
    above.set_ylabel("elements a second")
    below.set(ylabel="elements queued", xlabel="seconds")
    above.legend()
    below.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """When rates fall, how far, and that a queue keeps the sources at their pace."""
    claims: list[Claim] = []
    for join in SLOWS_AFTER_SECONDS:
        claims += [_cannot_keep_pace(tables, join), _falls(tables, join), _keeps(tables, join)]
    return [*claims, _settles(tables)]


def _falls_by_cost(tables: Tables, join: str) -> Falls:
    table = tables["partner cost"]
    found: dict[float, list[float]] = {}
    for name, cost, after in zip(
        table["join"], table["partner seconds"], table["falls"], strict=True
    ):
        if name == join:
            found.setdefault(cost, []).append(after)
    return found


def _told(join: str, found: Falls) -> str:
    return ", ".join(f"{_cost(join, cost)} {_when(falls)}" for cost, falls in found.items())


def _cost(join: str, seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if join == HASH else f"{1e9 * seconds:.1f} ns"


def _when(falls: Sequence[float]) -> str:
    low, high = min(falls), max(falls)
    return "never" if low == math.inf else f"{low:g} s" if low == high else f"{low:g} to {high:g} s"


def _cannot_keep_pace(tables: Tables, join: str) -> Claim:
    found = _falls_by_cost(tables, join)
    full = busy_seconds(join)
    return Claim(
        f"{join}: the input rate falls, for costs of a partner from half to twice the fitted one",
        '"both joins can not keep pace with the input rate": for all',
        _told(join, found),
        all(_falls_on_most(falls) for falls in found.values()),
        Instead(
            f"for those above {_cost(join, full)}, and for none that is a tenth below",
            "the paper prints no cost; a join that keeps pace until its window of a minute is full "
            "keeps it for good, and 58 s is just before that",
            all(
                _falls_on_most(falls) if cost > full else not _falls_on_most(falls)
                for cost, falls in found.items()
                if cost > full or cost <= full * (1 - ABOUT)
            ),
        ),
    )


def _falls_on_most(falls: Sequence[float]) -> bool:
    return on_most_seeds([after < math.inf for after in falls])


def _falls(tables: Tables, join: str) -> Claim:
    found, expected = _falls_by_cost(tables, join), SLOWS_AFTER_SECONDS[join]
    near = [
        cost
        for cost, falls in found.items()
        if on_most_seeds([about(after, expected) for after in falls])
    ]
    fitted = partner_seconds(join)
    low, high = (_cost(join, each) for each in (min(near, default=0), max(near, default=0)))
    return Claim(
        f"{join}: the input rate falls after, for costs of a partner from half to twice the fitted",
        f'"after {expected:g} seconds": about, for all',
        _told(join, found),
        len(near) == len(found),
        Instead(
            f"about, from {low} to {high}, which is near the fitted {_cost(join, fitted)}",
            "the paper prints no cost of a partner; the time falls as the cost rises, so that one "
            "number fits the other and is no evidence",
            any(about(cost, fitted) for cost in near),
        ),
    )


def _keeps(tables: Tables, join: str) -> Claim:
    table = tables["rates"]
    most = float(np.max(table[f"{join}, backlog of the queue"]))
    rates = np.asarray(table[f"{join}, no queue"])
    planned = np.asarray(table["with a queue"])
    lasts = int(np.flatnonzero(planned).max()) + 1
    behind = float(planned.sum() - rates[:lasts].sum())
    return Claim(
        f"{join}: elements not emitted in time without a queue, backlog with one",
        '"without queues [...] we would inevitably lose data": above 0, both',
        f"{behind:,.0f} after {lasts} s; up to {most:,.0f}",
        most > 0 and behind > 0,
    )


def _settles(tables: Tables) -> Claim:
    """Where a source at r a second keeps the join busy: 2 r times 60 r probes fill a second."""
    rates = np.asarray(tables["rates"][f"{LOOPS}, no queue"])
    measured = float(rates[140:180].mean())
    expected = 2 * (2 * WINDOW_SECONDS * partner_seconds(LOOPS)) ** -0.5
    return Claim(
        f"{LOOPS}: the rate settles where the join is just busy",
        f"{expected:.0f} elements a second",
        f"{measured:.0f} from 140 to 180 s",
        about(measured, expected, 0.1),
    )


EXPERIMENT = experiment(__name__, "Figure 6: the necessity of decoupling", seeds=10)
