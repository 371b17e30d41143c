"""What a simulation measured: queue memory over time, latencies, throughput, switches, waits."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from millpond.scheduling.snapshot import FloatArray


@dataclass(frozen=True)
class StepFunction:
    """A value over time that jumps at `times` and keeps `values` until the next."""

    times: FloatArray
    values: FloatArray

    @classmethod
    def of_changes(cls, times: FloatArray, changes: FloatArray) -> StepFunction:
        """The running sum of changes; those of one instant happen at once."""
        order = np.argsort(times, kind="stable")
        times, values = times[order], _without_drift(np.cumsum(changes[order]))
        last = np.append(np.diff(times) > 0, True)[: len(times)]
        return cls(times[last], values[last])

    def at(self, times: FloatArray | list[float] | float) -> FloatArray:
        """The value at each of these times, changes at that very time included."""
        places = np.searchsorted(self.times, np.asarray(times) + 1e-9, side="right") - 1
        found: FloatArray = np.append(0.0, self.values)[places + 1]
        return found

    @property
    def peak(self) -> float:
        """The largest value."""
        return float(self.values.max(initial=0.0))

    def mean(self, until_seconds: float) -> float:
        """The mean from time zero until then."""
        inside = self.times < until_seconds
        edges = np.append(self.times[inside], until_seconds)
        return float((np.diff(edges) * self.values[inside]).sum() / until_seconds)


def _without_drift(values: FloatArray) -> FloatArray:
    """Zero where only rounding is left."""
    near = np.abs(values) < 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
    return np.where(near, 0.0, values)


@dataclass(slots=True)
class Waits:
    """How long an operator was ready before each of its steps."""

    steps: int = 0
    total_seconds: float = 0.0
    longest_seconds: float = 0.0

    @property
    def mean_seconds(self) -> float:
        """The mean over its steps."""
        return self.total_seconds / self.steps if self.steps else 0.0


class Execution(NamedTuple):
    """One step in the trace."""

    start_seconds: float
    end_seconds: float
    operator: int
    tuples: float


@dataclass
class Record:
    """The measurements of one simulation; arrays are complete once it has run."""

    executions: int = 0
    tuples_served: float = 0.0
    context_switches: int = 0
    thread_switches: int = 0
    busy_seconds: float = 0.0
    finished_seconds: float = 0.0
    waits: dict[int, Waits] = field(default_factory=dict)
    trace: list[Execution] = field(default_factory=list)
    memory: StepFunction = field(default_factory=lambda: StepFunction(np.empty(0), np.empty(0)))
    output_seconds: FloatArray = field(default_factory=lambda: np.empty(0))
    output_latency_seconds: FloatArray = field(default_factory=lambda: np.empty(0))
    output_mass: FloatArray = field(default_factory=lambda: np.empty(0))
    output_operator: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def longest_wait_seconds(self) -> dict[int, float]:
        """The longest that each operator was ready before it ran."""
        return {operator: waits.longest_seconds for operator, waits in self.waits.items()}

    @property
    def peak_bytes(self) -> float:
        """The largest queue memory at any instant."""
        return self.memory.peak

    @property
    def mean_bytes(self) -> float:
        """The mean queue memory until everything was done."""
        return self.memory.mean(self.finished_seconds) if self.finished_seconds > 0 else 0.0

    @property
    def outputs(self) -> float:
        """How many tuples left the system, by mass."""
        return float(self.output_mass.sum())

    @property
    def mean_latency_seconds(self) -> float:
        """The mean time from arrival to output, by mass."""
        if not len(self.output_mass):
            return 0.0
        return float(np.average(self.output_latency_seconds, weights=self.output_mass))

    def latency_percentile_seconds(self, percent: float) -> float:
        """The latency that `percent` of all outputs, by mass, do not exceed."""
        latency, mass = self.output_latency_seconds, self.output_mass
        if not len(latency):
            return 0.0
        if mass.min() == mass.max():
            return float(np.percentile(latency, percent))
        order = np.argsort(latency)
        share = np.cumsum(mass[order]) / mass.sum()
        place = int(np.searchsorted(share, percent / 100 * (1 - 1e-12)))
        return float(latency[order[min(place, len(latency) - 1)]])

    def throughput(self, bin_seconds: float, until_seconds: float | None = None) -> FloatArray:
        """Outputs in each bin of time, by mass."""
        counts, _ = self._binned(bin_seconds, until_seconds)
        return counts

    def latency_over_time(
        self, bin_seconds: float, until_seconds: float | None = None
    ) -> FloatArray:
        """Mean latency of the outputs in each bin of time; NaN where there were none."""
        counts, sums = self._binned(bin_seconds, until_seconds)
        means: FloatArray = np.full(len(counts), np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means

    def _binned(
        self, bin_seconds: float, until_seconds: float | None
    ) -> tuple[FloatArray, FloatArray]:
        end = self.finished_seconds if until_seconds is None else until_seconds
        bins = max(1, int(np.ceil(end / bin_seconds - 1e-9)))
        place = np.minimum((self.output_seconds / bin_seconds).astype(np.int64), bins - 1)
        mass = self.output_mass
        counts = np.bincount(place, mass, bins)
        sums = np.bincount(place, mass * self.output_latency_seconds, bins)
        return counts.astype(np.float64), sums.astype(np.float64)


class Recorder:
    """Collects measurements cheaply while a simulation runs: 16 bytes a step, 24 an output."""

    def __init__(self) -> None:
        self.record = Record()
        self._change_seconds = array("d")
        self._changes = array("d")
        self._arrivals: list[tuple[FloatArray, FloatArray]] = []
        self._outputs: list[tuple[FloatArray, FloatArray, FloatArray, int]] = []
        self._single_outputs = array("d")

    def arrivals(self, seconds: FloatArray, changes: FloatArray) -> None:
        """Note all future arrivals of a stream and how much memory each takes."""
        self._arrivals.append((seconds, changes))

    def change(self, seconds: float, change: float) -> None:
        """Note that queue memory changed."""
        self._change_seconds.append(seconds)
        self._changes.append(change)

    def output(
        self, operator: int, seconds: FloatArray, arrival: FloatArray, mass: FloatArray | None
    ) -> None:
        """Note tuples that left the system."""
        weight = np.ones(len(seconds)) if mass is None else mass
        self._outputs.append((seconds, seconds - arrival, weight, operator))

    def output_one(self, operator: int, seconds: float, arrival_seconds: float) -> None:
        """Note one tuple that left the system."""
        self._single_outputs.extend((seconds, seconds - arrival_seconds, operator))

    def close(self, now_seconds: float) -> Record:
        """Put the arrays together."""
        record = self.record
        record.finished_seconds = now_seconds
        arrived = [seconds <= now_seconds for seconds, _ in self._arrivals]
        pairs = list(zip(self._arrivals, arrived, strict=True))
        seconds = [times[seen] for (times, _), seen in pairs]
        changes = [sizes[seen] for (_, sizes), seen in pairs]
        record.memory = StepFunction.of_changes(
            np.concatenate([*seconds, np.frombuffer(self._change_seconds)]),
            np.concatenate([*changes, np.frombuffer(self._changes)]),
        )
        self._gather_outputs()
        return record

    def _gather_outputs(self) -> None:
        singles = np.frombuffer(self._single_outputs).reshape(-1, 3)
        chunks = [(singles[:, 0], singles[:, 1], np.ones(len(singles)), singles[:, 2])]
        chunks += [
            (ends, latency, mass, np.full(len(ends), float(operator)))
            for ends, latency, mass, operator in self._outputs
        ]
        columns = [np.concatenate(column) for column in zip(*chunks, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        record = self.record
        record.output_seconds, record.output_latency_seconds = columns[0][order], columns[1][order]
        record.output_mass, record.output_operator = columns[2][order], columns[3][order]
