"""What the Path Capacity paper says of its Figures 2 to 4, each sentence as a measure and limits.

A sentence is judged seed by seed; how far it is from failing is what `searched_setting` looks for.
"""

from collections.abc import Callable
from itertools import pairwise

from millpond.lab.path_capacity.course import Courses
from millpond.lab.sentences import ABOVE_ONE, NOTHING, Otherwise, Sentence
from millpond.lab.words import ABOUT, CLEARLY, FEW, HUGE, MUCH, SAME

PATH, SIMPLE, CHAIN = "path-capacity", "simplified-segment", "chain"


def over(measured: str, strategy: str, other: str) -> Callable[[Courses], float]:
    """A measure of one strategy over another's."""

    def ratio(courses: Courses) -> float:
        mine, theirs = (float(getattr(courses[name], measured)) for name in (strategy, other))
        return mine / max(theirs, NOTHING)

    return ratio


def least_rise(courses: Courses) -> float:
    """The smallest ratio of the mean latencies of two phases that follow each other."""
    means = [course.phase_latency for course in courses.values()]
    return min(after / max(before, NOTHING) for each in means for before, after in pairwise(each))


def whole_rise(courses: Courses) -> float:
    """The smallest ratio of the mean latencies of the last phase and the first."""
    means = [course.phase_latency for course in courses.values()]
    return min(each[-1] / max(each[0], NOTHING) for each in means)


def gap_growth(courses: Courses) -> float:
    """The largest difference of mean latencies in the last phase over that in the first."""
    first, last = (
        max(means) - min(means)
        for means in (
            [course.phase_latency[place] for course in courses.values()] for place in (0, -1)
        )
    )
    return last / max(first, NOTHING)


def calm_on_axis(courses: Courses) -> float:
    """The largest mean latency of the first phase over the largest of the last."""
    first, last = (
        max(course.phase_latency[place] for course in courses.values()) for place in (0, -1)
    )
    return first / max(last, NOTHING)


def spikes(courses: Courses) -> float:
    """Chain's slowest second of the first phase over that of the slower of the others."""
    others = max(max(courses[name].calm_latency_seconds, default=0.0) for name in (PATH, SIMPLE))
    return max(courses[CHAIN].calm_latency_seconds, default=0.0) / max(others, NOTHING)


def spike_share(courses: Courses) -> float:
    """The share of the seconds of the first phase in which Chain is twice as slow as its mean."""
    seconds = courses[CHAIN].calm_latency_seconds
    limit = MUCH * courses[CHAIN].phase_latency[0]
    return sum(each > limit for each in seconds) / max(len(seconds), 1)


def unlike_outputs(courses: Courses) -> float:
    """The most outputs over the fewest."""
    outputs = [course.outputs for course in courses.values()]
    return max(outputs) / max(min(outputs), NOTHING)


def calm_rates(courses: Courses) -> float:
    """The largest of the peak-to-mean ratios of the first phase over the smallest."""
    rates = [course.calm_peak_rate for course in courses.values()]
    return max(rates) / max(min(rates), NOTHING)


def late_share(courses: Courses) -> float:
    """Chain's highest rate once the input has ended, over the highest of the others."""
    others = max(courses[name].late_peak_rate for name in (PATH, SIMPLE))
    return courses[CHAIN].late_peak_rate / max(others, NOTHING)


def silence(courses: Courses) -> float:
    """The share of the seconds of the last phase in which Chain puts out nothing."""
    return courses[CHAIN].silent_share


def path_silence(courses: Courses) -> float:
    """The same of Path Capacity."""
    return courses[PATH].silent_share


def chain_peak_rate(courses: Courses) -> float:
    """Chain's highest output rate over its mean."""
    return courses[CHAIN].peak_rate


def most_memory(courses: Courses) -> float:
    """Path Capacity's mean memory in the last phase over the larger of the others'."""
    others = max(courses[name].phase_memory[-1] for name in (SIMPLE, CHAIN))
    return courses[PATH].phase_memory[-1] / max(others, NOTHING)


def a_little_more(courses: Courses) -> float:
    """Simplified Segment's mean memory in the last phase over Chain's."""
    return courses[SIMPLE].phase_memory[-1] / max(courses[CHAIN].phase_memory[-1], NOTHING)


def calm_memory(courses: Courses) -> float:
    """Path Capacity's and Chain's mean memory in the first phase apart, over the highest peak."""
    apart = abs(courses[PATH].phase_memory[0] - courses[CHAIN].phase_memory[0])
    return apart / max(course.peak_memory for course in courses.values())


ALL_WAIT = (
    "in an overload all tuples wait for the backlog before them, under every strategy; what is put "
    "off half-way adds to that, but does not double it"
)
HEAVY_TAILS = "flows of heavy-tailed lengths make a phase busier now and then than its load says"
CALM = "far below what can be done hardly any tuple waits, under Chain neither"
LEAVES_FIRST = "Simplified Segment serves leaves first as Chain does, and the rest behind the burst"
BIN_OF_A_SECOND = "in bins of a second there are few outputs, whose number varies by chance too"
NOT_ALL_BUSY = "flows pause in the burst too, and Chain works off what it has put off then"
FEW_OUTPUTS = "with selective leaves few tuples come out at all, so that a second may have none"
RISES = "the overall tuple latency increases as the system load increases"
MUCH_BETTER = "the overall tuple latency is much better under the path capacity strategy"
SMOOTHER = "have a much smoother output rate than the Chain strategy"
HIGHER = "have a higher throughput during the high bursty input periods [...] Chain [...] lower"
LATENCY = (
    Sentence(
        MUCH_BETTER,
        "mean latency of Simplified Segment over Path Capacity's",
        over("latency", SIMPLE, PATH),
        MUCH,
        otherwise=Otherwise(ALL_WAIT, CLEARLY),
    ),
    Sentence(
        MUCH_BETTER,
        "mean latency of Chain over Path Capacity's",
        over("latency", CHAIN, PATH),
        MUCH,
    ),
    Sentence(
        "The Chain strategy performs worst among them",
        "mean latency of Chain over Simplified Segment's",
        over("latency", CHAIN, SIMPLE),
        ABOVE_ONE,
    ),
    Sentence(
        RISES,
        "smallest ratio of the mean latencies of the last phase and the first",
        whole_rise,
        MUCH,
    ),
    Sentence(
        RISES,
        "smallest ratio of the mean latencies of two phases that follow each other",
        least_rise,
        ABOVE_ONE,
        otherwise=Otherwise(HEAVY_TAILS, 1 / HUGE),
    ),
    Sentence(
        "the difference among them becomes much sharper as the system load increases",
        "largest difference of the mean latencies, last phase over first",
        gap_growth,
        MUCH,
    ),
    Sentence(
        "During the first 4000 seconds, all of them have a reasonable tuple latency",
        "largest mean latency of the first phase over that of the last",
        calm_on_axis,
        most=FEW,
    ),
    Sentence(
        "except that the Chain has a few spikes",
        "first phase: Chain's slowest second over the others'",
        spikes,
        CLEARLY,
        otherwise=Otherwise(CALM, 1 / MUCH, MUCH),
    ),
    Sentence(
        "except that the Chain has a few spikes",
        "first phase: share of the seconds in which Chain is twice as slow as its mean",
        spike_share,
        most=FEW,
    ),
)
THROUGHPUT = (
    Sentence(
        "it should output the same number of output tuples no matter whatever scheduling strategy",
        "outputs in the end, the most over the fewest",
        unlike_outputs,
        most=ABOVE_ONE,
    ),
    Sentence(
        SMOOTHER,
        "peak-to-mean ratio of Chain over Path Capacity's",
        over("peak_rate", CHAIN, PATH),
        MUCH,
        otherwise=Otherwise(BIN_OF_A_SECOND, CLEARLY),
    ),
    Sentence(
        SMOOTHER,
        "peak-to-mean ratio of Chain over Simplified Segment's",
        over("peak_rate", CHAIN, SIMPLE),
        MUCH,
        otherwise=Otherwise(LEAVES_FIRST, 1 / CLEARLY, MUCH),
    ),
    Sentence(
        "the path capacity strategy performs best among them in terms of the bursty output",
        "peak-to-mean ratio of Simplified Segment over Path Capacity's",
        over("peak_rate", SIMPLE, PATH),
        1.0,
    ),
    Sentence(
        "Its highest output rate is almost 5 times its average output rate",
        "peak-to-mean ratio of Chain",
        chain_peak_rate,
        5 * (1 - ABOUT),
        5 * (1 + ABOUT),
        otherwise=Otherwise(BIN_OF_A_SECOND, 5 * (1 + ABOUT), 5 * MUCH),
    ),
    Sentence(
        "when the system load is moderate [...] their output patterns do not differ [...] too much",
        "first phase: largest peak-to-mean ratio over the smallest",
        calm_rates,
        most=CLEARLY,
    ),
    Sentence(
        HIGHER,
        "outputs in the burst, Path Capacity's over Chain's",
        over("burst_outputs", PATH, CHAIN),
        ABOVE_ONE,
    ),
    Sentence(
        HIGHER,
        "outputs in the burst, Simplified Segment's over Chain's",
        over("burst_outputs", SIMPLE, CHAIN),
        ABOVE_ONE,
    ),
    Sentence(
        "it has a surprisingly high throughput after the highly bursty input periods",
        "highest rate behind the burst, Chain's over the others'",
        late_share,
        ABOVE_ONE,
        otherwise=Otherwise(LEAVES_FIRST, 1 / CLEARLY, MUCH),
    ),
    Sentence(
        "the Chain scheduling strategy has very small or even no throughput at all",
        "share of the seconds of the burst without output, Chain",
        silence,
        0.5,
        otherwise=Otherwise(NOT_ALL_BUSY, 1 / HUGE),
    ),
    Sentence(
        "the path capacity strategy still has reasonable throughput",
        "share of the seconds of the burst without output, Path Capacity",
        path_silence,
        most=FEW,
        otherwise=Otherwise(FEW_OUTPUTS, most=1 / HUGE),
    ),
)
MEMORY = (
    Sentence(
        "the Chain strategy performs better than the other two",
        "mean queue memory of Path Capacity over Chain's",
        over("memory", PATH, CHAIN),
        ABOVE_ONE,
    ),
    Sentence(
        "the Chain strategy performs better than the other two",
        "mean queue memory of Simplified Segment over Chain's",
        over("memory", SIMPLE, CHAIN),
        ABOVE_ONE,
    ),
    Sentence(
        "the path capacity strategy requires much more memory",
        "last phase: mean queue memory of Path Capacity over the others'",
        most_memory,
        MUCH,
    ),
    Sentence(
        "requires a little bit more memory than the Chain strategy during the highly bust periods",
        "last phase: mean queue memory of Simplified Segment over Chain's",
        a_little_more,
        ABOVE_ONE,
        CLEARLY,
    ),
    Sentence(
        "Under the non-overload conditions, the amount of memory [...] is similar",
        "first phase: mean queue memories of Path Capacity and Chain apart, over the figure's axis",
        calm_memory,
        most=SAME,
    ),
)
ALL = (*LATENCY, *THROUGHPUT, *MEMORY)
