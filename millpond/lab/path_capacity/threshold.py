"""Path Capacity paper, section 3.4: Threshold's two promises, over a range of memory limits.

With ample memory Threshold has exactly Path Capacity's latency; with less than Path Capacity needs
it stays within its limit, which Path Capacity would exceed, and its latency lies between those of
the two strategies it is made of.

Here it is the setting drawn, with phases of 100 s. Its latency is compared seed by seed.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.workload import (
    DRAWN,
    DRAWN_NOTE,
    UNIT_SECONDS,
    Setting,
    record_of,
    run_phases,
    shortened,
)
from millpond.lab.tables import table_of
from millpond.lab.words import SAME, on_most_seeds
from millpond.scheduling.registry import make
from millpond.simulator import Record

SETTING = shortened(DRAWN, 100.0)
LIMITS = (0.6, 0.8, 1.2, 2.5)
"""Memory limits as shares of Path Capacity's peak."""
MEASURES = [f"{of}{what}" for of in ("", "normal ", "saving ") for what in ("peak", "latency")]


def run(seeds: Sequence[int], setting: Setting = SETTING) -> Tables:
    """Peak and latency for each limit, with those of the two strategies it is made of."""
    rows = []
    for seed in seeds:
        normal = record_of("path-capacity", setting, seed)
        saving = record_of("simplified-segment", setting, seed)
        for share in LIMITS:
            limit = share * normal.peak_bytes
            records = (_under(limit, setting, seed), normal, saving)
            found = [(each.peak_bytes, each.mean_latency_seconds) for each in records]
            rows.append((seed, limit, *chain.from_iterable(found)))
    return {"limits": table_of(("seed", "limit", *MEASURES), rows)}


def _under(limit: float, setting: Setting, seed: int) -> Record:
    strategy = make("threshold", memory_bytes=limit, slice_seconds=UNIT_SECONDS)
    return run_phases(strategy, setting, seed)


def plot(tables: Tables, figure: Figure) -> None:
    """Peak memory and latency against the limit, first seed."""
    left, right = figure.subplots(1, 2)
    table = tables["limits"]
    count = len(LIMITS)
    limits = table["limit"][:count]
    left.plot(limits, table["peak"][:count], marker="o", label="threshold")
    left.plot(limits, limits, color="black", ls=":", label="the limit")
    right.plot(limits, table["latency"][:count], marker="o", label="threshold")
    for axes, what in ((left, "peak"), (right, "latency")):
        axes.axhline(table[f"normal {what}"][0], ls="--", color="C1", label="path-capacity")
        axes.axhline(table[f"saving {what}"][0], ls="--", color="C2", label="simplified-segment")
        axes.set_xlabel("memory limit (tuples)")
        axes.legend()
    left.set_ylabel("peak memory (tuples)")
    right.set_ylabel("mean latency (s)")


def check(tables: Tables) -> Sequence[Claim]:
    """Path Capacity's latency with ample memory; the limit kept where it can be."""
    table = tables["limits"]
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    ample = [row for row in rows if row["limit"] > 2 * row["normal peak"]]
    same = [abs(row["latency"] - row["normal latency"]) for row in ample]
    claims = [
        Claim(
            "ample memory (2.5 times Path Capacity's peak): mean latency off Path Capacity's by",
            '"the optimal tuple latency when system has enough memory": 0',
            f"{max(same):.1e} s over {len(same)} seeds",
            max(same) < 1e-9,
        )
    ]
    for share in LIMITS[:2]:
        chosen = [row for row in rows if np.isclose(row["limit"], share * row["normal peak"])]
        claims += [_kept(share, chosen), _between(share, chosen)]
    return claims


def _kept(share: float, rows: Sequence[dict[str, float]]) -> Claim:
    measured = "; ".join(
        f"{row['peak']:.0f} of {row['limit']:.0f} (Path Capacity {row['normal peak']:.0f})"
        for row in rows
    )
    return Claim(
        f"memory for {share:g} of Path Capacity's peak: peak of Threshold",
        "at most the limit, every seed",
        measured,
        all(row["peak"] <= row["limit"] < row["normal peak"] for row in rows),
    )


def _between(share: float, rows: Sequence[dict[str, float]]) -> Claim:
    told = "; ".join(
        f"{row['latency']:.2f} s ({row['normal latency']:.2f}, {row['saving latency']:.2f})"
        for row in rows
    )
    below = [row["latency"] < (1 - SAME) * row["normal latency"] for row in rows]
    above = [row["latency"] > (1 + SAME) * row["saving latency"] for row in rows]
    between = [not low and not high for low, high in zip(below, above, strict=True)]
    return Claim(
        f"memory for {share:g} of Path Capacity's peak: latency (and that of its two parts)",
        '"the hybrid of that of the path capacity strategy and [...] simplified segment": between',
        f"so on {sum(between)} of {len(between)} seeds: {told}",
        on_most_seeds(between),
        Instead(
            f"not below Path Capacity's, but above both on {sum(above)} of {len(above)} seeds",
            "changing between them can cost more than either, for work that one put off is put "
            "off again by the other",
            on_most_seeds([not low for low in below]),
        ),
    )


EXPERIMENT = experiment(
    __name__, "Threshold keeps both promises", note=DRAWN_NOTE, seeds=10, long=True
)
