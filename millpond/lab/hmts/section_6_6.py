"""What section 6.6 of the HMTS paper says of Figures 9 and 10, as measures with limits."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from millpond.lab.hmts.expensive_selection import EXPENSIVE_SECONDS, PHASES, Elements
from millpond.lab.sentences import ABOVE_ONE, NOTHING, Otherwise, Sentence
from millpond.lab.words import ABOUT, CLEARLY, FEW, MUCH, SAME, SLIGHTLY
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Record

BURST = PHASES[0][0]
AXIS_ELEMENTS = PHASES[2][0]
"""How high Figure 9 is at least: its second burst."""
SLOW_RATE = PHASES[1][1]
SECOND_BURST_SECONDS, INPUT_ENDS_SECONDS = 80.0, 160.0
BEFORE_SECONDS = 0.01
"""A burst of 20,000 elements is not counted to what was before it."""


class Runs(NamedTuple):
    """The three runs over the same elements."""

    elements: Elements
    fifo: Record
    chain: Record
    hmts: Record

    @property
    def all(self) -> tuple[Record, ...]:
        """All three."""
        return self[1:]


def start(runs: Runs) -> float:
    """The smallest of the curves' peaks in the first second, over the burst."""
    times = np.linspace(0.0, 1.0, 1001)
    return min(float(each.memory.at(times).max()) for each in runs.all) / BURST


def _mean(record: Record, low: float, high: float) -> float:
    times = np.arange(low, high, 0.05)
    return float(record.memory.at(times).mean()) if len(times) else 0.0


def swings(runs: Runs) -> float:
    """How often Chain's queue grows from 50 to 80 s by half of what comes in two seconds."""
    sizes = runs.chain.memory.at(np.arange(50.0, SECOND_BURST_SECONDS, 0.1))
    turns = [sizes[0], *_turns(sizes), sizes[-1]]
    least = SLOW_RATE * EXPENSIVE_SECONDS / 2
    return float(sum(after - before >= least for before, after in pairwise(turns)))


def _turns(sizes: FloatArray) -> list[float]:
    steps = np.diff(sizes)
    moved = np.flatnonzero(steps)
    signs = np.sign(steps[moved])
    return [float(sizes[place]) for place in moved[1:][signs[1:] != signs[:-1]]]


def second_rise(runs: Runs) -> float:
    """Chain's mean from the second burst to 160 s over that from 50 s to the burst."""
    burst = runs.elements.second_burst_seconds - BEFORE_SECONDS
    before = _mean(runs.chain, 50.0, burst)
    return _mean(runs.chain, burst, INPUT_ENDS_SECONDS) / max(before, NOTHING)


def second_peak(runs: Runs) -> float:
    """The same of the most that it queues."""
    burst = runs.elements.second_burst_seconds - BEFORE_SECONDS
    before, behind = (
        float(runs.chain.memory.at(np.arange(low, high, 0.005)).max(initial=0.0))
        for low, high in ((50.0, burst), (burst, INPUT_ENDS_SECONDS))
    )
    return behind / max(before, NOTHING)


def later_mean(runs: Runs) -> float:
    """Chain's mean from 160 to 260 s over that from 80 to 160 s."""
    during = _mean(runs.chain, SECOND_BURST_SECONDS, INPUT_ENDS_SECONDS)
    return _mean(runs.chain, INPUT_ENDS_SECONDS, 260.0) / max(during, NOTHING)


def low_in_the_end(runs: Runs) -> float:
    """Chain's mean from 160 to 260 s over the axis."""
    return _mean(runs.chain, INPUT_ENDS_SECONDS, 260.0) / AXIS_ELEMENTS


def fifo_over_chain(runs: Runs) -> float:
    """Mean elements queued until the input ends."""
    fifo, chain = (_mean(each, 0.0, INPUT_ENDS_SECONDS) for each in (runs.fifo, runs.chain))
    return fifo / max(chain, NOTHING)


def fifo_falls(runs: Runs) -> float:
    """By how much FIFO's queue falls a second behind the input, over before, from 120 s on."""
    sizes = runs.fifo.memory.at(np.array([120.0, INPUT_ENDS_SECONDS, 260.0]))
    ends = min(max(runs.fifo.finished_seconds, INPUT_ENDS_SECONDS + 1), 260.0)
    before = (sizes[0] - sizes[1]) / (INPUT_ENDS_SECONDS - 120.0)
    behind = (sizes[1] - sizes[2]) / (ends - INPUT_ENDS_SECONDS)
    return float(behind / max(before, 1.0))


def below_chain(runs: Runs) -> float:
    """Chain's mean less HMTS's, over the axis."""
    chain, ours = (_mean(each, 0.0, INPUT_ENDS_SECONDS) for each in (runs.chain, runs.hmts))
    return (chain - ours) / AXIS_ELEMENTS


def _result(record: Record) -> float:
    return float(record.output_seconds.mean()) if record.outputs else NOTHING


def fifo_earlier(runs: Runs) -> float:
    """The mean time of a result by Chain over that by FIFO."""
    return _result(runs.chain) / _result(runs.fifo)


def hmts_earlier(runs: Runs) -> float:
    """The smaller mean time of a result by GTS over that by HMTS."""
    return min(_result(runs.fifo), _result(runs.chain)) / _result(runs.hmts)


WORK_CONSERVING = (
    "beside an autonomous source one thread has 126 s of work at most in 160 s, so it ends when "
    "the input does; 260 s follow when the thread that schedules also emits"
)
AT_ONCE = "the first group takes 0.1 s for the second burst"
SECOND_BURST = "The memory usage increases from 80 s to 160 s rapidly due to the second burst"
SENTENCES: tuple[Sentence[Runs], ...] = (
    Sentence(
        "all curves start with a queue memory usage of 10,000 elements",
        "smallest of the three peaks in the first second, over 10,000",
        start,
        1 - ABOUT,
        otherwise=Otherwise(
            "elements are served while the burst comes, which takes 20 ms", 1 / MUCH
        ),
    ),
    Sentence(
        "Chain takes about 260 s to complete",
        "end of Chain",
        lambda runs: runs.chain.finished_seconds,
        260 * (1 - ABOUT),
        260 * (1 + ABOUT),
        Otherwise(WORK_CONSERVING, 160 * (1 - ABOUT), 160 * (1 + ABOUT)),
    ),
    Sentence(
        "Like Chain, FIFO finishes after 260 seconds",
        "end of FIFO",
        lambda runs: runs.fifo.finished_seconds,
        260 * (1 - ABOUT),
        260 * (1 + ABOUT),
        Otherwise(WORK_CONSERVING, 160 * (1 - ABOUT), 160 * (1 + ABOUT)),
    ),
    Sentence(
        "the whole processing is finished within 160 seconds",
        "end of HMTS",
        lambda runs: runs.hmts.finished_seconds,
        160 * (1 - ABOUT),
        160 * (1 + ABOUT),
    ),
    Sentence(
        "a maximum running time of 162 seconds in the worst case [...] finishes shortly after 160",
        "end of HMTS behind the last element, s",
        lambda runs: runs.hmts.finished_seconds - runs.elements.emission_seconds,
        most=(1 + SAME) * EXPENSIVE_SECONDS,
    ),
    Sentence(
        "After 50 seconds, the memory usage vacillates",
        "rises of Chain's queue from 50 to 80 s by 250 elements at least",
        swings,
        2.0,
    ),
    Sentence(
        SECOND_BURST,
        "most elements queued by Chain, from the second burst to 160 s over from 50 s to it",
        second_peak,
        MUCH,
    ),
    Sentence(
        SECOND_BURST,
        "mean elements queued by Chain, from the second burst to 160 s over from 50 s to it",
        second_rise,
        MUCH,
        otherwise=Otherwise(AT_ONCE, ABOVE_ONE),
    ),
    Sentence(
        "but decreases afterward",
        "mean elements queued by Chain, from 160 to 260 s over from 80 to 160 s",
        later_mean,
        most=1 - SAME,
    ),
    Sentence(
        "with very low memory usage in the period from 160 to 260 seconds",
        "mean elements queued by Chain from 160 to 260 s, over the figure's axis",
        low_in_the_end,
        most=FEW,
    ),
    Sentence(
        "The FIFO memory usage curve in Figure 9 decreases slower compared to Chain",
        "mean elements queued by FIFO over Chain's",
        fifo_over_chain,
        ABOVE_ONE,
    ),
    Sentence(
        "The memory size drops faster from 160 to 260 as the input rate is zero",
        "by what FIFO's queue falls a second, from 160 s on over from 120 s on",
        fifo_falls,
        ABOVE_ONE,
        otherwise=Otherwise("beside an autonomous source nothing is left at 160 s", most=SAME),
    ),
    Sentence(
        "The memory usage curve is slightly below the corresponding curve from Chain",
        "Chain's mean elements queued less HMTS's, over the figure's axis",
        below_chain,
        NOTHING,
        SLIGHTLY,
    ),
    Sentence(
        "the results are produced continuously and earlier",
        "mean time of a result by Chain over that by FIFO",
        fifo_earlier,
        1 + SAME,
        otherwise=Otherwise(
            "one thread spends its time on the 2 s selection under either strategy, and Chain "
            "serves as FIFO while it profiles",
            1 - SAME,
            1 + SAME,
        ),
    ),
    Sentence(
        "the results are produced significantly earlier",
        "mean time of a result by GTS, the smaller, over that by HMTS",
        hmts_earlier,
        CLEARLY,
        otherwise=Otherwise(WORK_CONSERVING, 1 - SAME, CLEARLY),
    ),
)
