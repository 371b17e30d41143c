"""Bursts as networks have them: flows that send for heavy-tailed lengths of time.

Summed up, such flows are self-similar: bursts at every time scale.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from millpond.errors import InputError
from millpond.workloads.process import CHUNK_ARRIVALS, ArrivalProcess, FloatArray, require_positive

Intervals: TypeAlias = tuple[FloatArray, FloatArray]
"""Starts and ends, in seconds."""


@dataclass(frozen=True)
class Pareto:
    """Heavy-tailed lengths of time, P(X > x) = (minimum / x) ** shape (1 < shape: finite mean)."""

    shape: float
    mean_seconds: float

    def __post_init__(self) -> None:
        require_positive(self, "mean_seconds")
        if self.shape <= 1:
            raise InputError("Pareto: the shape must be above 1, or there is no mean")

    @property
    def minimum_seconds(self) -> float:
        """The shortest length."""
        return self.mean_seconds * (self.shape - 1) / self.shape

    def sample(self, generator: np.random.Generator, count: int) -> FloatArray:
        """Independent lengths."""
        return self.minimum_seconds * (1 - generator.random(count)) ** (-1 / self.shape)

    def residual(self, generator: np.random.Generator, count: int) -> FloatArray:
        """What is left of a length that is under way when one starts to look."""
        uniform = generator.random(count)
        below = (self.shape - 1) / self.shape  # the chance of a residual under the minimum
        tail = (1 / (self.shape * (1 - np.maximum(uniform, below)))) ** (1 / (self.shape - 1))
        return np.where(uniform < below, uniform * self.mean_seconds, self.minimum_seconds * tail)


class _Sending(Protocol):
    """When flows send, handed out as time goes on."""

    def before(self, high_seconds: float) -> Intervals:
        """The intervals of sending that start before a time, each once."""

    def quiet_until(self) -> float:
        """No interval starts before this time that was not handed out."""


class _Flows(ArrivalProcess):
    """Poisson arrivals while flows are sending; a subclass says when they are."""

    @property
    @abstractmethod
    def _flow_arrivals_per_second(self) -> float: ...

    @property
    def _peak_arrivals_per_second(self) -> float:
        return self.mean_arrivals_per_second

    @abstractmethod
    def _sending(self, generator: np.random.Generator) -> _Sending: ...

    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The arrival times. Long intervals are worked off slice by slice, so memory is bounded."""
        generator = np.random.default_rng(seed)
        sending = self._sending(generator)
        slice_seconds = CHUNK_ARRIVALS / self._peak_arrivals_per_second
        starts, ends, low = np.empty(0), np.empty(0), 0.0
        while True:
            high = low + slice_seconds
            new_starts, new_ends = sending.before(high)
            starts, ends = np.append(starts, new_starts), np.append(ends, new_ends)
            chunk = self._within(np.maximum(starts, low), np.minimum(ends, high), generator)
            if len(chunk):
                yield chunk
            starts, ends = starts[ends > high], ends[ends > high]
            low = high if len(ends) else max(high, sending.quiet_until())

    def _within(
        self, starts: FloatArray, ends: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        lengths = ends - starts
        counts = generator.poisson(lengths * self._flow_arrivals_per_second)
        offsets = np.repeat(lengths, counts) * generator.random(counts.sum())
        return np.sort(np.repeat(starts, counts) + offsets)


class _OnOffFlows:
    """Flows that alternate between sending and silence; ``next_starts`` has one entry a flow."""

    def __init__(self, on: Pareto, off: Pareto, generator: np.random.Generator) -> None:
        self.on, self.off, self.generator = on, off, generator
        self.next_starts = np.zeros(1)
        self.handed_in: Intervals = (np.empty(0), np.empty(0))

    def in_steady_state(self, flows: int) -> _OnOffFlows:
        """So many flows, each found somewhere in its life."""
        share_on = self.on.mean_seconds / (self.on.mean_seconds + self.off.mean_seconds)
        is_on = self.generator.random(flows) < share_on
        ends = self.on.residual(self.generator, flows)[is_on]
        self.next_starts = self.off.residual(self.generator, flows)
        self.next_starts[is_on] = ends + self.off.sample(self.generator, len(ends))
        self.handed_in = np.zeros(len(ends)), ends
        return self

    def before(self, high_seconds: float) -> Intervals:
        starts, ends = [self.handed_in[0]], [self.handed_in[1]]
        while (behind := np.flatnonzero(self.next_starts < high_seconds)).size:
            starts.append(self.next_starts[behind])
            ends.append(starts[-1] + self.on.sample(self.generator, len(behind)))
            self.next_starts[behind] = ends[-1] + self.off.sample(self.generator, len(behind))
        self.handed_in = np.empty(0), np.empty(0)
        return np.concatenate(starts), np.concatenate(ends)

    def quiet_until(self) -> float:
        return float(self.next_starts.min())


@dataclass(frozen=True)
class ParetoOnOff(_Flows):
    """One flow that sends, then is silent, and so on, for Pareto lengths of time."""

    arrivals_per_second: float
    on_shape: float = 1.4
    off_shape: float = 1.2
    on_seconds: float = 1.0
    off_seconds: float = 2.0

    def __post_init__(self) -> None:
        require_positive(self, "arrivals_per_second")
        _ = self._on, self._off

    @property
    def _on(self) -> Pareto:
        return Pareto(self.on_shape, self.on_seconds)

    @property
    def _off(self) -> Pareto:
        return Pareto(self.off_shape, self.off_seconds)

    @property
    def mean_arrivals_per_second(self) -> float:
        """Times of sending and of silence together."""
        return self.arrivals_per_second

    @property
    def _peak_arrivals_per_second(self) -> float:
        return self.arrivals_per_second * (self.on_seconds + self.off_seconds) / self.on_seconds

    @property
    def _flow_arrivals_per_second(self) -> float:
        return self._peak_arrivals_per_second

    def _sending(self, generator: np.random.Generator) -> _Sending:
        return _OnOffFlows(self._on, self._off, generator)


@dataclass(frozen=True)
class SelfSimilar(ParetoOnOff):
    """Many Pareto ON/OFF flows at once (Path-Capacity paper, section 5: 64 or 128 flows).

    Their sum is long-range dependent with Hurst parameter (3 - smaller shape) / 2.
    """

    flows: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "flows")

    @property
    def _flow_arrivals_per_second(self) -> float:
        return self._peak_arrivals_per_second / self.flows

    def _sending(self, generator: np.random.Generator) -> _Sending:
        return _OnOffFlows(self._on, self._off, generator).in_steady_state(self.flows)


@dataclass(frozen=True)
class PoissonFlows(_Flows):
    """Flows that begin as a Poisson process and last Pareto lengths (Chain paper, section 6)."""

    flows_per_second: float
    flow_arrivals_per_second: float
    shape: float = 1.4
    flow_seconds: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "flows_per_second", "flow_arrivals_per_second")
        _ = self._length

    @property
    def _length(self) -> Pareto:
        return Pareto(self.shape, self.flow_seconds)

    @property
    def mean_arrivals_per_second(self) -> float:
        """Flows under way on average, times what each sends."""
        return self.flows_per_second * self.flow_seconds * self.flow_arrivals_per_second

    @property
    def _flow_arrivals_per_second(self) -> float:
        return self.flow_arrivals_per_second

    def _sending(self, generator: np.random.Generator) -> _Sending:
        return _NewFlows(self.flows_per_second, self._length, generator)


class _NewFlows:
    """Flows that begin at random and send once; those under way at the start are there too."""

    def __init__(
        self, flows_per_second: float, length: Pareto, generator: np.random.Generator
    ) -> None:
        self.flows_per_second, self.length, self.generator = flows_per_second, length, generator
        under_way = int(generator.poisson(flows_per_second * length.mean_seconds))
        self.ends_under_way = length.residual(generator, under_way)
        self.low_seconds = 0.0

    def before(self, high_seconds: float) -> Intervals:
        under_way, self.ends_under_way = self.ends_under_way, np.empty(0)
        expected = (high_seconds - self.low_seconds) * self.flows_per_second
        count = int(self.generator.poisson(expected))
        starts = np.sort(self.generator.uniform(self.low_seconds, high_seconds, count))
        ends = starts + self.length.sample(self.generator, count)
        self.low_seconds = high_seconds
        return np.append(np.zeros(len(under_way)), starts), np.append(under_way, ends)

    def quiet_until(self) -> float:
        return self.low_seconds
