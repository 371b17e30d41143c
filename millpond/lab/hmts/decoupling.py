"""HMTS paper, Figure 6: joins that run in the threads of their sources slow these down.

A join that runs in its sources' threads cannot keep pace: the input rate falls after 58 s with a
hash join, after 17 s with nested loops. Queues keep the sources going.

The paper prints no cost of a probe; it is fitted to the two times (29 ns a pair for nested loops,
8.6 ns for the hash join) and varied from half to twice that. Where rates settle and what a queue
takes in follow from the model.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.hmts.joins_in_source_threads import (
    ELEMENTS,
    ELEMENTS_PER_SECOND,
    SLOWS_AFTER_SECONDS,
    TOGETHER,
    WINDOW_SECONDS,
    coupled,
    decoupled,
    falls_after,
    per_second,
    probe_seconds,
)
from millpond.lab.tables import table_of
from millpond.lab.words import about

FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0)
"""The fitted cost of a probe is varied from half to twice."""


def run(seeds: Sequence[int], elements: int = ELEMENTS) -> Tables:
    """The rate of both sources together, second by second; no chance is involved."""
    emitted = {join: coupled(join, elements) for join in SLOWS_AFTER_SECONDS}
    records = {join: decoupled(join, elements) for join in SLOWS_AFTER_SECONDS}
    ends = [each[-1] for each in emitted.values()]
    ends += [each.finished_seconds for each in records.values()]
    seconds = np.arange(1.0, np.ceil(max(ends)) + 1)
    schedule = np.arange(0, elements, TOGETHER) / ELEMENTS_PER_SECOND
    table = {"second": seconds, "with a queue": per_second(np.repeat(schedule, 2), seconds)}
    for join in SLOWS_AFTER_SECONDS:
        table[f"{join}, no queue"] = per_second(emitted[join], seconds)
        table[f"{join}, backlog of the queue"] = records[join].memory.at(seconds)
    return {"rates": table, "probe cost": _varied(elements)}


def _varied(elements: int) -> dict[str, list[object]]:
    """When the rate falls, by the cost of a probe; infinity where it never does."""
    seconds, rows = np.arange(1.0, elements / ELEMENTS_PER_SECOND + 1), []
    for join in SLOWS_AFTER_SECONDS:
        for factor in FACTORS:
            falls = falls_after(per_second(coupled(join, elements, factor), seconds), seconds)
            rows.append((join, factor, probe_seconds(join, factor), falls))
    return table_of(("join", "factor", "probe seconds", "falls"), rows)


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


def _falls_by_cost(tables: Tables, join: str) -> dict[float, float]:
    """When the rate falls, by nanoseconds a probe."""
    table = tables["probe cost"]
    rows = zip(table["join"], table["probe seconds"], table["falls"], strict=True)
    return {1e9 * cost: after for name, cost, after in rows if name == join}


def _told(found: Mapping[float, float]) -> str:
    return ", ".join(
        f"{cost:.1f} ns {'never' if after == float('inf') else f'{after:g} s'}"
        for cost, after in found.items()
    )


def _cannot_keep_pace(tables: Tables, join: str) -> Claim:
    found = _falls_by_cost(tables, join)
    full = 1e9 / (2 * ELEMENTS_PER_SECOND**2 * WINDOW_SECONDS)
    return Claim(
        f"{join}: the input rate falls, for costs of a probe from half to twice the fitted one",
        '"both joins can not keep pace with the input rate": for all',
        _told(found),
        all(after < float("inf") for after in found.values()),
        Instead(
            f"for those above {full:.1f} ns, and only those",
            "the paper prints no cost; a join that keeps pace until its window of a minute is full "
            "keeps it for good, and 58 s is just before that",
            all((after < float("inf")) == (cost > full) for cost, after in found.items()),
        ),
    )


def _falls(tables: Tables, join: str) -> Claim:
    found, expected = _falls_by_cost(tables, join), SLOWS_AFTER_SECONDS[join]
    near = [cost for cost, after in found.items() if about(after, expected)]
    fitted = 1e9 * probe_seconds(join)
    return Claim(
        f"{join}: the input rate falls after, for costs of a probe from half to twice the fitted",
        f'"after {expected:g} seconds": about, for all',
        _told(found),
        len(near) == len(found),
        Instead(
            f"about, at the fitted {fitted:.1f} ns and its like, {min(near, default=0):.1f} to "
            f"{max(near, default=0):.1f} ns",
            "the paper prints no cost of a probe; the time falls as the cost rises, so that one "
            "number fits the other and is no evidence",
            any(about(cost, fitted, 1e-9) for cost in near),
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
    rates = np.asarray(tables["rates"]["nested loops join, no queue"])
    measured = float(rates[140:180].mean())
    expected = 2 * (2 * WINDOW_SECONDS * probe_seconds("nested loops join")) ** -0.5
    return Claim(
        "nested loops join: the rate settles where the join is just busy",
        f"{expected:.0f} elements a second",
        f"{measured:.0f} from 140 to 180 s",
        about(measured, expected, 0.1),
    )


EXPERIMENT = experiment(__name__, "Figure 6: the necessity of decoupling", seeds=1)
