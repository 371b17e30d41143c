"""Chain paper, Propositions 1 to 3, Lemma 1, and two remarks beside them, on random charts.

Slopes of lower envelopes fall; at most one tuple is in the middle of the segments of a slope, and
tuples leave in the order in which they came; what tuples take on the chart is never less than on
the envelope, and what Chain takes never more by above the sum of the δ. Greedy mirrors Chain where
priorities fall, FIFO needs least where arrivals are uniform, and in Example 1 it breaks a threshold
that Greedy keeps.

Charts have up to five operators of one to three units; for Lemma 1 selectivities are above one too.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from millpond.lab.chain import opening_example
from millpond.lab.chain.instances import (
    Instance,
    envelope_sizes,
    least_sizes,
    queue_sizes,
    random_instance,
    step_sizes,
)
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.scheduling.charts.progress_chart import Point, partition
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate

INSTANCES_A_SEED = 40
THRESHOLD = 3.0
ROUNDING = 1e-9
MEASURES = ("slope rises", "middle", "disorder", "below", "lemma 1", "greedy", "uniform")
"""What each instance is measured by; none is to be above its limit."""


def run(seeds: Sequence[int]) -> Tables:
    """How far each statement is broken, instance by instance; and the peaks of Example 1."""
    rows = []
    for seed in seeds:
        generator = np.random.default_rng((30, seed))
        for _ in range(INSTANCES_A_SEED):
            queries = int(generator.integers(1, 4))
            instance = random_instance(generator, queries, operators=5, tuples=8)
            growing = _growing(generator, instance)
            rows.append(
                (
                    max(_rise(chart) for chart in growing.charts),
                    *_middle_and_disorder(instance),
                    max(_below(chart) for chart in growing.charts),
                    _above_the_deltas(growing),
                    _greedy_off_chain(_falling(generator, instance)),
                    _fifo_over_least(generator, instance.charts[0]),
                )
            )
    table = opening_example.run(seeds)["queue size"]
    peaks = {name: [max(table[name])] for name in ("fifo", "greedy")}
    return {"broken by": table_of(MEASURES, rows), "example 1": peaks}


def _growing(generator: np.random.Generator, instance: Instance) -> Instance:
    """The same, but operators may yield more than one tuple."""
    charts = []
    for chart in instance.charts:
        factors = generator.uniform(0.3, 1.6, len(chart) - 2)
        sizes = np.cumprod(factors).tolist()
        times = [time for time, _ in chart[1:]]
        charts.append(((0.0, 1.0), *zip(times, [*sizes, 0.0], strict=True)))
    return Instance(tuple(charts), instance.arrivals)


def _falling(generator: np.random.Generator, instance: Instance) -> Instance:
    """The same number of operators, but each less steep than the one before."""
    charts = []
    for chart in instance.charts:
        works = np.diff([time for time, _ in chart])
        steep = np.sort(generator.uniform(0.1, 1.0, len(works)))[::-1]
        left = np.cumsum((steep * works)[::-1])[::-1]
        sizes = (left / left[0]).tolist()
        charts.append(tuple(zip([time for time, _ in chart], [*sizes, 0.0], strict=True)))
    return Instance(tuple(charts), instance.arrivals)


def _rise(chart: Sequence[Point]) -> float:
    """The largest rise of slope from a segment of the envelope to the next; Proposition 1."""
    slopes = [segment.slope for segment in partition(chart)]
    return max([0.0, *(later - slope for slope, later in pairwise(slopes))])


def _below(chart: Sequence[Point]) -> float:
    """How far the chart is below its envelope at worst; Proposition 3."""
    return float((np.array(envelope_sizes(chart)) - np.array(step_sizes(chart))).max())


def _above_the_deltas(instance: Instance) -> float:
    """How far Chain is above what Lemma 1 allows it at worst."""
    allowed = sum(delta for chart in instance.charts for delta in _deltas(chart))
    excess = queue_sizes(instance, "chain") - queue_sizes(instance, "chain", on_envelope=True)
    return float(excess.max()) - allowed


def _deltas(chart: Sequence[Point]) -> list[float]:
    """For each segment the largest difference of chart and envelope."""
    off = np.array(step_sizes(chart)) - np.array(envelope_sizes(chart))
    return [
        float(off[int(chart[each.first][0]) : int(chart[each.last + 1][0]) + 1].max())
        for each in partition(chart)
    ]


def _greedy_off_chain(instance: Instance) -> float:
    difference = queue_sizes(instance, "greedy") - queue_sizes(instance, "chain")
    return float(np.abs(difference).max())


def _fifo_over_least(generator: np.random.Generator, chart: tuple[Point, ...]) -> float:
    """FIFO's peak over the least of all schedules, a tuple coming as often as one can be served."""
    every = int(chart[-1][0]) + int(generator.integers(0, 3))
    instance = Instance((chart,), (tuple(range(0, 4 * every, every)),))
    return float(queue_sizes(instance, "fifo").max() - least_sizes(instance).max())


def _middle_and_disorder(instance: Instance) -> tuple[int, float]:
    """The most tuples in the middle of segments of one slope, and by how much an older one leaves
    later, under Chain."""
    record = _traced(instance)
    slopes: dict[float, FloatArray] = {}
    first = 0
    for chart in instance.charts:
        for slope, counts in _inside(chart, first, record, instance.last_instant):
            key = round(slope, 9)
            slopes[key] = slopes.get(key, np.zeros(len(counts))) + counts
        first += len(chart) - 1
    return int(max(counts.max() for counts in slopes.values())), _disorder(record)


def _traced(instance: Instance) -> Record:
    plan, arrivals = SimulatedPlan(), {}
    for number, (chart, times) in enumerate(zip(instance.charts, instance.arrivals, strict=True)):
        stream = plan.stream(f"s{number}")
        plan.chart(f"q{number}", stream, chart)
        arrivals[stream] = np.array(times, dtype=np.float64)
    strategy = make("chain", slice_seconds=1.0)
    return simulate(plan, strategy, arrivals, Conditions(tuples="fluid", trace=True))


def _inside(
    chart: Sequence[Point], first: int, record: Record, last: int
) -> list[tuple[float, FloatArray]]:
    """For each segment its slope and how many tuples are in its middle at every instant."""
    instants = np.arange(last + 1.0)
    found = []
    for segment in partition(chart):
        cost, last_cost = (
            chart[step + 1][0] - chart[step][0] for step in (segment.first, segment.last)
        )
        begun = np.ceil(_work(record, first + segment.first, instants) / cost - ROUNDING)
        done = np.floor(_work(record, first + segment.last, instants) / last_cost + ROUNDING)
        found.append((segment.slope, begun - done))
    return found


def _work(record: Record, operator: int, instants: FloatArray) -> FloatArray:
    """Seconds for which an operator was served until each instant."""
    total: FloatArray = np.zeros(len(instants))
    for step in record.trace:
        if step.operator == operator:
            total += np.clip(instants, step.start_seconds, step.end_seconds) - step.start_seconds
    return total


def _disorder(record: Record) -> float:
    """By how much a tuple that came earlier leaves later, of one query."""
    came = record.output_seconds - record.output_latency_seconds
    worst = 0.0
    for operator in np.unique(record.output_operator):
        mine = record.output_operator == operator
        order = np.argsort(record.output_seconds[mine], kind="stable")
        worst = max(worst, float((-np.diff(came[mine][order])).max(initial=0.0)))
    return worst


def plot(tables: Tables, figure: Figure) -> None:
    """How near each statement comes to being broken, instances sorted."""
    axes = figure.subplots()
    for name in MEASURES:
        axes.plot(np.sort(tables["broken by"][name]), label=name)
    axes.set(xlabel="instances, sorted", ylabel="measured")
    axes.legend(fontsize=7)


def check(tables: Tables) -> Sequence[Claim]:
    """None is broken on any instance."""
    table, peaks = tables["broken by"], tables["example 1"]
    fifo, greedy = peaks["fifo"][0], peaks["greedy"][0]
    said = (
        ("slope rises", "Proposition 1: rise of slope along a lower envelope", 0.0),
        ("middle", "Proposition 2: tuples in the middle of segments of one slope", 1.0),
        ("disorder", "Proposition 2: outputs out of order of arrival by", 0.0),
        ("lemma 1", "Lemma 1, selectivities above one too: above the sum of the δ by", 0.0),
        ("below", "Proposition 3: chart below its lower envelope by", 0.0),
        ("greedy", "Greedy mirrors Chain where priorities fall: queue sizes apart by", 0.0),
        ("uniform", "uniform arrivals: FIFO's peak above the least of all schedules by", 0.0),
    )
    claims = [_none_above(table[name], text, limit) for name, text, limit in said]
    return [
        *claims,
        Claim(
            f"Example 1: peaks of FIFO and Greedy, and a threshold of {THRESHOLD:g}",
            '"fifo scheduling becomes infeasible, while greedy scheduling does not"',
            f"{fifo:g} and {greedy:g}",
            greedy <= THRESHOLD < fifo,
        ),
    ]


def _none_above(values: Sequence[float], text: str, limit: float) -> Claim:
    measured = f"{max(values):.2g} at most, {len(values)} instances"
    return Claim(text, f"at most {limit:g}", measured, max(values) <= limit + ROUNDING)


EXPERIMENT = experiment(__name__, "Propositions 1 to 3, Lemma 1 and remarks")
