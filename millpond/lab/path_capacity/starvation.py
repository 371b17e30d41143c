"""Path Capacity paper, section 4.2: both cures for starvation bound the longest wait.

While paths are overloaded, static priorities let the last wait until the overload is over; either
cure solves that.

Three paths of two operators with 40 tuples a second each, which is twice what one processor serves;
rounds of 10 tuples, the oldest every second. The bound is the number of paths times a period and
two rounds; the paper gives no figures. Both cures keep it when all paths get tuples alike, neither
does where few tuples wait on the starved path.
"""

from collections.abc import Sequence
from itertools import product

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.overloads import (
    BOUND_SECONDS,
    CURES,
    OVERLOAD,
    Arrivals,
    all_over,
    alone,
    cured,
    longest_wait,
    rare,
)
from millpond.lab.tables import picked, table_of
from millpond.lab.words import ABOUT, CLEARLY, about

INNER = ("path-capacity", "segment", "simplified-segment", "chain")
OVERLOADS_SECONDS = (50.0, 100.0, 200.0)
FEW_TUPLES = ("a lone tuple", "rare tuples")
STARVED = '"some paths/segments may have to wait for a long period"'
SOLVED = f'"solve the starvation or long waiting problem": at most {BOUND_SECONDS:g} s'


def run(seeds: Sequence[int], overloads_seconds: Sequence[float] = OVERLOADS_SECONDS) -> Tables:
    """The longest wait of any operator, by cure, strategy and length of the overload."""
    rows = []
    for cure, inner, overload in product(CURES, INNER, overloads_seconds):
        waits = [longest_wait(cured(cure, inner), overload, seed, all_over) for seed in seeds]
        rows.append((cure, inner, overload, max(waits)))
    return {
        "longest wait": table_of(("cure", "inner", "overload", "wait"), rows),
        FEW_TUPLES[0]: _few(alone, seeds[0], overloads_seconds),
        FEW_TUPLES[1]: _few(rare, seeds[0], overloads_seconds),
    }


def _few(
    arrivals: Arrivals, seed: int, overloads_seconds: Sequence[float]
) -> dict[str, list[float]]:
    table: dict[str, list[float]] = {"overload": list(overloads_seconds)}
    for cure in CURES:
        table[cure] = [
            longest_wait(cured(cure, "path-capacity"), overload, seed, arrivals)
            for overload in overloads_seconds
        ]
    return table


def plot(tables: Tables, figure: Figure) -> None:
    """The longest wait against the length of the overload."""
    axes = figure.subplots()
    table = tables["longest wait"]
    for cure, marker in zip(CURES, "xo^", strict=True):
        for inner in INNER:
            rows = _rows(tables, cure, inner)
            axes.plot(*zip(*rows, strict=True), marker=marker, color=f"C{CURES.index(cure)}")
        axes.plot([], [], marker=marker, color=f"C{CURES.index(cure)}", label=f"cure: {cure}")
    axes.set_xlabel("length of the overload (s)")
    axes.set_ylabel("longest wait of an operator (s)")
    axes.set_yscale("log")
    axes.legend(title=f"{len(set(table['inner']))} strategies each")


def _rows(tables: Tables, cure: str, inner: str) -> list[tuple[float, float]]:
    table, of = tables["longest wait"], {"cure": cure, "inner": inner}
    return list(zip(picked(table, "overload", of), picked(table, "wait", of), strict=True))


def check(tables: Tables) -> Sequence[Claim]:
    """Without a cure the wait is as long as the overload; either cure is said to end that."""
    claims = []
    for inner in INNER:
        rows = _rows(tables, "none", inner)
        share = min(wait / overload for overload, wait in rows)
        text = f"{inner} without a cure: longest wait over length of the overload"
        expected = f"{STARVED}: at least {1 - ABOUT:g}"
        claims.append(Claim(text, expected, f"{share:.2f}", share >= 1 - ABOUT))
    for cure in CURES[1:]:
        first = [_rows(tables, cure, inner)[0][1] for inner in INNER]
        last = [_rows(tables, cure, inner)[-1][1] for inner in INNER]
        longest = max(max(wait for _, wait in _rows(tables, cure, inner)) for inner in INNER)
        measured = f"{_row(first)} s in the shortest, {_row(last)} s in the longest overload"
        text = f"{cure}: longest wait with {', '.join(INNER)}"
        claims.append(Claim(text, SOLVED, measured, longest <= BOUND_SECONDS))
    return [*claims, *(claim for name in FEW_TUPLES for claim in _few_claims(tables, name))]


def _few_claims(tables: Tables, name: str) -> list[Claim]:
    table = tables[name]
    periodic, dynamic, none = (table[cure] for cure in (*CURES[1:], CURES[0]))
    backlog = [overload * (1 - 1 / OVERLOAD) for overload in table["overload"]]
    return [
        Claim(
            f"{name} on the slow path: longest wait under dynamic priorities",
            SOLVED,
            f"{_row(dynamic)} s",
            max(dynamic) <= BOUND_SECONDS,
            Instead(
                f"as long as without a cure, {_row(none)} s, within a tenth",
                "priority is age times queue, and of a few tuples neither grows as fast as those "
                "of the overloaded path",
                all(about(one, other) for one, other in zip(dynamic, none, strict=True)),
            ),
        ),
        Claim(
            f"{name} on the slow path: longest wait, periodically the oldest",
            SOLVED,
            f"{_row(periodic)} s",
            max(periodic) <= BOUND_SECONDS,
            Instead(
                f"not clearly above the age of the backlog, {_row(backlog)} s",
                "the oldest tuple is one of the overloaded path until all that came before are "
                "served, as under FIFO",
                all(one <= CLEARLY * age for one, age in zip(periodic, backlog, strict=True)),
            ),
        ),
    ]


def _row(found: Sequence[float]) -> str:
    return " ".join(f"{value:.1f}" for value in found)


EXPERIMENT = experiment(__name__, "Both starvation cures", seeds=2)
