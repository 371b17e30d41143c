"""What the Chain paper's figures of queue size share: their strategies, workloads and tables.

The progress charts' digits are unreadable, so each figure chooses a chart of the shape its text
describes. "Bursts" are flows that begin as a Poisson process and last Pareto lengths of time;
"trace" is a superposition of 16 Pareto ON/OFF flows, self-similar like the paper's network trace.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from millpond.lab.chain.sentences import STRATEGIES, WORKLOADS, Sentence, check_sentences
from millpond.lab.experiment import Experiment, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.scheduling.charts.progress_chart import Point
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate
from millpond.workloads import ArrivalProcess, PoissonFlows, SelfSimilar

QUANTUM_SECONDS = 0.01
SAMPLES = 400
SEEDS = 10
"""Of a figure drawn by chance: a verdict is on so many of them."""
CHOSEN = (
    "Chart and load are our choice: the print has lost the paper's digits. Selectivities are "
    "drawn tuple by tuple."
)


@dataclass(frozen=True)
class Setting:
    """A plan, how many tuples a second each of its streams brings, and for how long.

    With `measure_seconds` strategies know the averages of the last such window, not the true ones.
    With `split` the streams are parts of one traffic: chance tells which of them a tuple belongs
    to. The trace brings `trace_factor` times as many tuples a second as the bursts.
    """

    plan: Callable[[], SimulatedPlan]
    tuples_per_second: Mapping[str, float]
    seconds: float = 60.0
    quantum_seconds: float = QUANTUM_SECONDS
    measure_seconds: float | None = None
    split: bool = False
    trace_factor: float = 1.0


def queue_size_experiment(
    module: str, title: str, setting: Setting, sentences: Sequence[Sentence]
) -> Experiment:
    """A figure of queue size over time, with what the text says of its peaks."""
    run, check = partial(run_setting, setting), partial(check_sentences, sentences)
    return experiment(
        module, title, note=CHOSEN, run=run, plot=plot_queues, check=check, seeds=SEEDS, long=True
    )


def path_plan(points: Sequence[Point]) -> SimulatedPlan:
    """The operator path of one progress chart."""
    made = SimulatedPlan()
    made.chart("q", made.stream("s"), points)
    return made


def process(workload: str, tuples_per_second: float) -> ArrivalProcess:
    """The arrival process of that name and mean rate."""
    if workload == "trace":
        return SelfSimilar(tuples_per_second, on_seconds=1.0, off_seconds=5.0, flows=16)
    flows_per_second, flow_seconds = 4.0, 0.5
    return PoissonFlows(
        flows_per_second,
        flow_arrivals_per_second=tuples_per_second / (flows_per_second * flow_seconds),
        flow_seconds=flow_seconds,
        shape=1.5,
    )


def arrivals_of(setting: Setting, workload: str, seed: int) -> dict[str, FloatArray]:
    """What comes on each stream."""
    factor = setting.trace_factor if workload == "trace" else 1.0
    rates = {name: factor * rate for name, rate in setting.tuples_per_second.items()}
    if setting.split:
        return _split(process(workload, sum(rates.values())), rates, setting.seconds, seed)
    return {
        name: process(workload, rate).until(setting.seconds, 100 * seed + place)
        for place, (name, rate) in enumerate(rates.items())
    }


def _split(
    traffic: ArrivalProcess, rates: Mapping[str, float], seconds: float, seed: int
) -> dict[str, FloatArray]:
    """Each tuple of one traffic belongs to a stream by chance, to each as often as its rate is."""
    times = traffic.until(seconds, 100 * seed)
    shares = np.array(list(rates.values())) / sum(rates.values())
    streams = np.random.default_rng((seed, 17)).choice(len(rates), len(times), p=shares)
    return {name: times[streams == place] for place, name in enumerate(rates)}


def run_setting(
    setting: Setting,
    seeds: Sequence[int],
    workloads: Sequence[str] = WORKLOADS,
    strategies: Sequence[str] = STRATEGIES,
) -> Tables:
    """Peak and mean queue size for every workload, seed and strategy, and one run over time."""
    rows: list[tuple[str, int, str, float, float, float, int]] = []
    series: dict[str, list[float]] = {}
    for workload in workloads:
        for seed in seeds:
            arrivals = arrivals_of(setting, workload, seed)
            for strategy in strategies:
                record = _simulate(setting, strategy, arrivals, seed)
                rows.append((workload, seed, strategy, *_summary(record)))
                if seed == seeds[0]:
                    times = np.linspace(0.0, setting.seconds, SAMPLES)
                    series.setdefault("seconds", times.tolist())
                    series[f"{workload} {strategy}"] = record.memory.at(times).tolist()
    names = ("workload", "seed", "strategy", "peak", "mean", "latency_seconds", "switches")
    return {"summary": table_of(names, rows), "queue size": series}


def _simulate(
    setting: Setting, strategy: str, arrivals: Mapping[str, FloatArray], seed: int
) -> Record:
    scheduled = make(strategy, slice_seconds=setting.quantum_seconds)
    conditions = Conditions(seed=seed, measure_seconds=setting.measure_seconds)
    return simulate(setting.plan(), scheduled, arrivals, conditions)


def _summary(record: Record) -> tuple[float, float, float, int]:
    return (
        record.peak_bytes,
        record.mean_bytes,
        record.mean_latency_seconds,
        record.context_switches,
    )


def plot_queues(tables: Tables, figure: Figure) -> None:
    """Queue size over time, one panel a workload."""
    series = tables["queue size"]
    panels = figure.subplots(len(WORKLOADS), 1, sharex=True)
    for axes, workload in zip(panels, WORKLOADS, strict=True):
        for strategy in STRATEGIES:
            axes.plot(series["seconds"], series[f"{workload} {strategy}"], label=strategy, lw=1)
        axes.set_ylabel(f"queue size ({workload})")
    panels[0].legend(ncols=len(STRATEGIES))
    panels[-1].set_xlabel("seconds")
