"""Path Capacity paper, sections 3.1 and 3.3: Segment, its simplified variant, and FIFO.

Path Capacity has an even better latency than FIFO and needs less memory; Segment needs less memory
than Path Capacity and has a smaller latency than Chain; Simplified Segment needs only slightly more
memory than Segment and has a significantly smaller latency; overhead falls from Chain to Segment,
to Simplified Segment and to Path Capacity.

The figures of the paper leave Segment and FIFO out. Here it is the setting drawn, with phases of 50
s; FIFO serves tuple by tuple. Overhead is told by how often the scheduler changes operators.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.workload import (
    DRAWN,
    DRAWN_NOTE,
    UNIT_SECONDS,
    Setting,
    run_phases,
    shortened,
)
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY, SAME, about, on_most_seeds, told_by_seed
from millpond.scheduling.registry import make

SETTING = shortened(DRAWN, 50.0)
BY_TIME = {"slice_seconds": UNIT_SECONDS}
SERVICE: Mapping[str, Mapping[str, object]] = {
    "path-capacity": BY_TIME,
    "fifo": {"max_tuples": 1},
    "segment": BY_TIME,
    "simplified-segment": BY_TIME,
    "chain": BY_TIME,
}
COLUMNS = ("latency", "memory", "switches")


class Compared(NamedTuple):
    """One strategy's measure over another's lies between these; else near the other or beyond."""

    measure: str
    strategy: str
    other: str
    words: str
    least: float = 0.0
    most: float = float("inf")
    why: str = ""


HELD_AGAIN = (
    "Segment cuts a path wherever less memory is freed, so that a tuple is held more often than "
    "under Chain, whose chains it runs through"
)
SAME_CUT = (
    "where leaves are fast and selective both cut paths behind the leaf, and elsewhere Segment "
    "holds tuples more often"
)
FEW_ALIKE = "with few tuples waiting every strategy changes operators with nearly each of them"
SENTENCES = (
    Compared("latency", "fifo", "path-capacity", "even better tuple latency", 1.0),
    Compared("memory", "fifo", "path-capacity", "performs better than the FIFO strategy", 1.0),
    Compared("memory", "path-capacity", "segment", "better [...] than the path scheduling", 1.0),
    Compared(
        "latency",
        "segment",
        "chain",
        "a smaller tuple latency than the Chain strategy",
        most=1.0,
        why=HELD_AGAIN,
    ),
    Compared(
        "memory",
        "simplified-segment",
        "segment",
        "only slightly larger",
        1.0,
        CLEARLY,
        SAME_CUT,
    ),
    Compared(
        "latency", "segment", "simplified-segment", "significantly decreases", CLEARLY, why=SAME_CUT
    ),
    Compared(
        "switches",
        "segment",
        "chain",
        "a smaller scheduling overhead than the Chain strategy",
        most=1 - SAME,
        why=FEW_ALIKE,
    ),
    Compared(
        "switches",
        "segment",
        "simplified-segment",
        "the scheduling overhead significantly decreases as well",
        CLEARLY,
        why=FEW_ALIKE,
    ),
    Compared(
        "switches",
        "path-capacity",
        "chain",
        "less than that incurred by the Chain scheduling strategy",
        most=1 - SAME,
        why=FEW_ALIKE,
    ),
)


def run(seeds: Sequence[int], setting: Setting = SETTING) -> Tables:
    """Mean latency, mean memory and changes of operator, by strategy and seed."""
    rows: list[tuple[object, ...]] = []
    for seed in seeds:
        for name, service in SERVICE.items():
            record = run_phases(make(name, **service), setting, seed)
            found = (record.mean_latency_seconds, record.mean_bytes, record.context_switches)
            rows.append((seed, name, *found))
    return {"runs": table_of(("seed", "strategy", *COLUMNS), rows)}


def plot(tables: Tables, figure: Figure) -> None:
    """Each measure by strategy, a spot for each seed."""
    for axes, column in zip(figure.subplots(1, len(COLUMNS)), COLUMNS, strict=True):
        for place, name in enumerate(SERVICE):
            values = picked(tables["runs"], column, {"strategy": name})
            axes.scatter(np.full(len(values), place), values, s=10)
        axes.set_xticks(range(len(SERVICE)), list(SERVICE), rotation=60, fontsize=7)
        axes.set(title=column, ylim=(0, None))


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence seed by seed."""
    return [_claim(tables, each) for each in SENTENCES]


def _claim(tables: Tables, sentence: Compared) -> Claim:
    mine, other = (
        picked(tables["runs"], sentence.measure, {"strategy": name})
        for name in (sentence.strategy, sentence.other)
    )
    ratios = [one / another for one, another in zip(mine, other, strict=True)]
    so = [sentence.least <= ratio <= sentence.most for ratio in ratios]
    limits = f"{sentence.least:.3g} to {sentence.most:.3g}"
    return Claim(
        f"{sentence.measure}: {sentence.strategy} over {sentence.other}",
        f'"{sentence.words}": {limits}',
        told_by_seed(ratios, so),
        on_most_seeds(so),
        _instead(sentence, ratios) if sentence.why else None,
    )


def _instead(sentence: Compared, ratios: Sequence[float]) -> Instead:
    """The other way round, or within a tenth."""
    middle = float(np.median(ratios))
    opposite = middle > 1 if sentence.least == 0.0 else middle < 1
    near = about(middle, 1.0)
    found = "the same within a tenth" if near else "the other way round"
    return Instead(f"{found}, {middle:.2f} in the middle", sentence.why, near or opposite)


EXPERIMENT = experiment(
    __name__, "Sections 3.1 and 3.3, Segment and FIFO", note=DRAWN_NOTE, seeds=10, long=True
)
