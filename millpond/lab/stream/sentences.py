"""Sentences of section 4.1 of the STREAM paper, checked on what a join kept, seed by seed."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from millpond.lab.experiment import Claim, Figure, Table, Tables
from millpond.lab.stream.adherence import KS, NO_CONSTRAINT
from millpond.lab.stream.arrivals import PAGES
from millpond.lab.tables import picked
from millpond.lab.words import ABOUT, MUCH


def seeds_of(kept: Table) -> list[int]:
    """The seeds of a run."""
    return sorted(set(kept["seed"]))


def of_seed(kept: Table, column: str, seed: int, is_declared: bool) -> list[Any]:
    """What was found of a seed, for each k."""
    return picked(kept, column, {"seed": seed, "declared": is_declared})


def holding(kept: Table, is_so: Callable[[int], bool]) -> tuple[str, bool]:
    """Of how many seeds something is so, and whether of all."""
    found = [is_so(seed) for seed in seeds_of(kept)]
    return f"{sum(found)} of {len(found)} seeds", all(found)


def common(tables: Tables) -> Iterator[Claim]:
    """What the section says of every constraint."""
    kept = tables["kept"]
    told, is_so = holding(kept, lambda seed: _rises(of_seed(kept, "rows", seed, True)))
    yield Claim(
        "the smaller the value of k, the smaller the necessary synopses",
        "rows kept rise with k",
        f"{_by_k(kept, 'rows')}: {told}",
        is_so,
    )
    growth = [each for seed in seeds_of(kept) for each in of_seed(kept, "growth", seed, False)]
    yield Claim(
        "in the general case, answering this query precisely requires synopses of unbounded size",
        "without a constraint the second half adds as many rows as the first",
        f"{min(growth):.2f} to {max(growth):.2f} times as many",
        all(abs(each - 1) <= ABOUT for each in growth),
    )
    told, is_so = holding(kept, lambda seed: _is_much_less(kept, seed))
    least = min(picked(kept, "rows", {"declared": False}))
    yield Claim(
        "reduce synopsis sizes",
        f"at most 1/{MUCH:g} of the rows without a constraint, for every k",
        f"at most {max(picked(kept, 'rows', {'declared': True})):,} of {least:,}: {told}",
        is_so,
    )
    told, is_so = holding(kept, lambda seed: _is_same(kept, seed))
    yield Claim(
        "while still producing precise output streams",
        "the same answers with and without",
        told,
        is_so,
    )


def _rises(values: Sequence[int]) -> bool:
    return all(before < after for before, after in pairwise(values))


def _is_much_less(kept: Table, seed: int) -> bool:
    most, least = (of_seed(kept, "rows", seed, is_declared) for is_declared in (True, False))
    return bool(MUCH * max(most) <= min(least))


def _is_same(kept: Table, seed: int) -> bool:
    return of_seed(kept, "answers", seed, True) == of_seed(kept, "answers", seed, False)


def most_of(kept: Table, k: int) -> int:
    """The rows that were kept at most with a k, of all seeds."""
    return int(max(picked(kept, "rows", {"k": k, "declared": True})))


def _by_k(kept: Table, column: str) -> str:
    return ", ".join(
        f"{min(found):,} to {max(found):,} (k = {k:,})"
        for k in KS
        if (found := picked(kept, column, {"k": k, "declared": True}))
    )


def plot(tables: Tables, figure: Figure) -> None:
    """Rows kept after each page, a line for each k; and the most over k, with the seeds' range."""
    figure.set_size_inches(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    course, kept = tables["course"], tables["kept"]
    for name in (*map(str, KS), NO_CONSTRAINT):
        label = f"k = {int(name):,}" if name.isdigit() else "no constraint"
        left.plot(course["page"], course[name], label=label)
    left.set(xlabel="pages of 2,000 rows that have come", ylabel="rows kept", ylim=(0, None))
    left.set_xticks(range(0, PAGES + 1, 4))
    left.legend()
    for is_declared, label in ((True, "with the constraint"), (False, "without")):
        found = [picked(kept, "bytes", {"k": k, "declared": is_declared}) for k in KS]
        middle = [sorted(each)[len(each) // 2] / 1e6 for each in found]
        ends = [[m - min(e) / 1e6, max(e) / 1e6 - m] for m, e in zip(middle, found, strict=True)]
        right.errorbar(KS, middle, list(zip(*ends, strict=True)), marker="o", label=label)
    right.set(xlabel="k", ylabel=f"MB kept at most, pages {PAGES // 2 + 1} to {PAGES}")
    right.set(ylim=(0, None), xticks=KS)
    right.legend()
