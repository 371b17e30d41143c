"""The Path Capacity paper's Table 2: two selections and a join under FIFO and Chain.

On the plan of Figure 1 Chain needs less queue memory than FIFO, but all its tuples wait for five or
six time units and come out in one burst; every cell of the table.

Time units of one second, arrivals at the start of a step, latency from arrival to the end of the
step that emits.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.scheduling.registry import make
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate

STEPS = range(1, 11)
A_MOMENT = 1e-10
ARRIVALS = {"1": (1, 3, 10), "2": (2, 3 + A_MOMENT)}
"""Of the two tuples of time 3 that of stream 1 is the first, so that the join need not wait."""
NONE = -1.0
"""In the latency columns: no output in that step."""
EXPECTED: Mapping[str, Mapping[str, Sequence[float]]] = {
    "queue size": {
        "fifo": (1.0, 1.2, 3.0, 2.2, 2.0, 1.2, 1.0, 0.2, 0, 1.0),
        "chain": (1.0, 1.2, 2.4, 1.6, 0.8, 0.6, 0.4, 0.2, 0, 1.0),
    },
    "tuple latency": {
        "fifo": (NONE, NONE, 2, NONE, 3, NONE, 4, NONE, 6, NONE),
        "chain": (NONE, NONE, NONE, NONE, NONE, 5, 5, 5, 6, NONE),
    },
    "throughput": {
        "fifo": (0, 0, 0.16, 0, 0.16, 0, 0.16, 0, 0.16, 0),
        "chain": (0, 0, 0, 0, 0, 0.16, 0.16, 0.16, 0.16, 0),
    },
}


def figure_1() -> SimulatedPlan:
    """The plan of Figure 1 with the operators of Table 1."""
    plan = SimulatedPlan()
    first = plan.operator("1", plan.stream("1"), cost_seconds=1.0, selectivity=0.2)
    second = plan.operator("2", plan.stream("2"), cost_seconds=1.0, selectivity=0.2)
    plan.query("q", plan.join("3", first, second, cost_seconds=5.0, selectivity=0.8))
    return plan


def run(seeds: Sequence[int]) -> Tables:
    """Every cell, time unit by time unit; no chance is involved."""
    conditions = Conditions(tuples="fluid", on_demand_timestamps=True)
    tables: dict[str, dict[str, list[float]]] = {
        name: {"time": [float(step) for step in STEPS]} for name in EXPECTED
    }
    for name in ("fifo", "chain"):
        record = simulate(figure_1(), make(name, slice_seconds=1.0), ARRIVALS, conditions)
        tables["queue size"][name] = record.memory.at(tables["queue size"]["time"]).tolist()
        tables["tuple latency"][name] = [_latency(record, step) for step in STEPS]
        tables["throughput"][name] = [_throughput(record, step) for step in STEPS]
    return tables


def _latency(record: Record, step: int) -> float:
    now = np.isclose(record.output_seconds, step)
    return float(record.output_latency_seconds[now].mean().round(9)) if now.any() else NONE


def _throughput(record: Record, step: int) -> float:
    return float(record.output_mass[np.isclose(record.output_seconds, step)].sum().round(9))


def plot(tables: Tables, figure: Figure) -> None:
    """The three measures over time."""
    for axes, (measure, table) in zip(figure.subplots(1, 3), tables.items(), strict=True):
        for name, marker in (("fifo", "o"), ("chain", "s")):
            values = [np.nan if value == NONE else value for value in table[name]]
            axes.plot(table["time"], values, marker=marker, label=name)
        axes.set(xlabel="time", title=measure)
        axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """All sixty cells."""
    claims = []
    for measure, columns in EXPECTED.items():
        for name, expected in columns.items():
            measured = tables[measure][name]
            holds = bool(np.allclose(measured, expected))
            claims.append(Claim(f"{measure} under {name}", _row(expected), _row(measured), holds))
    return claims


def _row(values: Sequence[float]) -> str:
    return " ".join("-" if value == NONE else f"{round(value, 9):g}" for value in values)


EXPERIMENT = experiment(__name__, "Table 2, FIFO against Chain", seeds=1)
