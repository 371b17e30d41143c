"""The Unified paper's example of three tuples: per-tuple greedy takes 48 time units, MSS 41.

With tuples of cost 10 and 1 in one queue and 9 in another, comparing only the first tuples costs 48
units of latency in total, looking ahead 41, which is the least possible.
"""

from collections.abc import Sequence

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.unified.small_instances import SmallInstance, SmallOperator
from millpond.scheduling.registry import make

INSTANCE = SmallInstance(
    (SmallOperator("a", (10.0, 1.0), (1, 1)), SmallOperator("b", (9.0,), (1,))),
    (("a", 2), ("b", 1)),
)
EXPECTED = {"per-tuple-greedy": ("c9 c10 c1", 48.0), "maximum-slope-segment": ("c10 c1 c9", 41.0)}


def run(seeds: Sequence[int]) -> Tables:
    """The order of the tuples and when each leaves; no chance is involved."""
    rows = [
        (name, f"c{step.end_seconds - step.start_seconds:g}", step.end_seconds)
        for name in EXPECTED
        for step in INSTANCE.simulate(make(name)).trace
    ]
    table = table_of(("strategy", "tuple", "latency"), rows)
    return {"latencies": table, "least": {"total latency": [INSTANCE.least_area("latency")]}}


def plot(tables: Tables, figure: Figure) -> None:
    """Outputs still to come over time; the area is the total latency."""
    axes = figure.subplots()
    for name, (_, total) in EXPECTED.items():
        ends = [0.0, *_column(tables, name, "latency")]
        axes.step(ends, [3, 2, 1, 0], where="post", label=f"{name}: area {total:g}")
    axes.set(xlabel="time units", ylabel="outputs still to come")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Both orders and totals, and that none is below 41."""
    claims = []
    for name, (order, total) in EXPECTED.items():
        measured = sum(_column(tables, name, "latency"))
        tuples = " ".join(map(str, _column(tables, name, "tuple")))
        holds = tuples == order and measured == total
        expected = f"{order}: {total:g}"
        claims.append(Claim(f"{name}: total latency", expected, f"{tuples}: {measured:g}", holds))
    least = tables["least"]["total latency"][0]
    claims.append(Claim("least total latency of any order", "41", f"{least:g}", least == 41))
    return claims


def _column(tables: Tables, name: str, column: str) -> list[float]:
    return picked(tables["latencies"], column, {"strategy": name})


EXPERIMENT = experiment(__name__, "Greedy is not optimal: 48 against 41", seeds=1)
