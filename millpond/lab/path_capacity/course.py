"""What a run of the Path Capacity paper's experiment is judged by, figure by figure.

All is measured in bins of a second, as Figure 2 is: latency, outputs and memory of the whole run,
of its phases, and behind its end.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from millpond.lab.path_capacity.workload import Setting
from millpond.lab.sentences import NOTHING
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Record

BIN_SECONDS = 1.0


class Course(NamedTuple):
    """One strategy's run: `phase_` values are means, phase by phase."""

    latency: float
    phase_latency: Sequence[float]
    calm_latency_seconds: Sequence[float]
    outputs: float
    peak_rate: float
    calm_peak_rate: float
    burst_outputs: float
    silent_share: float
    late_outputs: float
    late_peak_rate: float
    memory: float
    phase_memory: Sequence[float]
    peak_memory: float


Courses: TypeAlias = Mapping[str, Course]
"""By strategy; all faced the same tuples."""


def course_of(record: Record, setting: Setting) -> Course:
    """Measure a run. Rates are told as multiples of the mean of the whole run."""
    phases = range(len(setting.loads))
    counts = record.throughput(BIN_SECONDS)
    mean = counts.mean()
    calm, last = (_bins(setting, phase) for phase in (0, -1))
    late = counts[last.stop :]
    by_second = record.latency_over_time(BIN_SECONDS)[calm]
    memory = record.memory.at(np.arange(0.0, setting.seconds, BIN_SECONDS))
    return Course(
        latency=record.mean_latency_seconds,
        phase_latency=[_latency(record, *setting.phase(phase)) for phase in phases],
        calm_latency_seconds=by_second[~np.isnan(by_second)].tolist(),
        outputs=record.outputs,
        peak_rate=float(counts.max() / mean),
        calm_peak_rate=float(counts[calm].max() / max(counts[calm].mean(), NOTHING)),
        burst_outputs=float(counts[last].sum()),
        silent_share=float((counts[last] == 0).mean()),
        late_outputs=float(late.sum()),
        late_peak_rate=float(late.max(initial=0.0) / mean),
        memory=float(memory.mean()),
        phase_memory=[float(memory[_bins(setting, phase)].mean()) for phase in phases],
        peak_memory=record.peak_bytes,
    )


def _bins(setting: Setting, phase: int) -> slice:
    low, high = setting.phase(phase)
    return slice(int(low / BIN_SECONDS), int(high / BIN_SECONDS))


def _latency(record: Record, low: float, high: float) -> float:
    inside = (record.output_seconds >= low) & (record.output_seconds < high)
    latency: FloatArray = record.output_latency_seconds[inside]
    return float(latency.mean()) if len(latency) else 0.0
