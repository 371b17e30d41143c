"""Loads, bursts and plan of the Path Capacity paper's experiment, which it does not print.

Looked for are such as all that the paper says of its Figures 2 to 4 stands at once.
"""

from millpond.lab.path_capacity.course import Courses, course_of
from millpond.lab.path_capacity.figure_sentences import ALL
from millpond.lab.path_capacity.queries import Ranges
from millpond.lab.path_capacity.workload import (
    STRATEGIES,
    UNIT_SECONDS,
    Setting,
    record_of,
    run_phases,
)
from millpond.lab.search import Margins, Point, Search
from millpond.lab.sentences import margins
from millpond.scheduling.registry import make

HIGH_LOAD = 0.9
"""Of the phase before the last: what can just be done."""
PHASE_SECONDS = 40.0
FASTER = 2.0
SCREEN_TOLERANCE = 0.5
SEEDS = 10
NOTE = (
    "Loads, lengths, costs and selectivities are not in the paper; they were searched for among "
    "such as fit its words (see docs/papers.md). Four phases of 40 s stand for a day, the last "
    "one for the burst; a second is a bin, as in Figure 2."
)


def setting(point: Point) -> Setting:
    """The loads rise from calm to burst; leaves and what is behind them are drawn in ranges."""
    calm = point["calm load"]
    low, leaf = point["leaf passes"], point["leaf cost"]
    second, others = point["second passes"], point["others pass"]
    ranges = Ranges(
        leaf_cost=(leaf, 2 * leaf),
        leaf_selectivity=(low, 3 * low),
        second_selectivity=(second, min(1.0, second + 0.3)),
        selectivity=(others, min(1.0, others + 0.3)),
        deeper=point["deeper"],
    )
    loads = (calm, (calm + HIGH_LOAD) / 2, HIGH_LOAD, point["burst load"])
    return Setting(loads, PHASE_SECONDS, point["on seconds"], ranges, FASTER)


def is_possible(point: Point) -> bool:
    """Leaves are faster and more selective than the others (section 3.3)."""
    mean_cost = sum(Ranges().cost) / 2
    return (
        1.5 * point["leaf cost"] <= mean_cost and 2 * point["leaf passes"] <= point["others pass"]
    )


def measure(point: Point, seed: int) -> Margins:
    """Margins of all sentences on one seed; what was run is not kept."""
    chosen = setting(point)
    courses: Courses = {
        name: course_of(run_phases(make(name, slice_seconds=UNIT_SECONDS), chosen, seed), chosen)
        for name in STRATEGIES
    }
    return margins(ALL, courses)


def screen(point: Point, seed: int) -> Margins:
    """The same, with much more room."""
    return {name: margin / SCREEN_TOLERANCE for name, margin in measure(point, seed).items()}


SEARCH = Search(
    "path-capacity-figures",
    '"the leaf nodes are the operators that have faster processing capacities and less '
    'selectivity"; "the system load is moderate" at first and "highly bursty" in the last phase; '
    "16 queries with 116 operators over 5 streams of 64 or 128 flows, bins of 1 second",
    {
        "calm load": (0.2, 0.3, 0.5),
        "burst load": (1.3, 1.5, 1.75, 2.0),
        "on seconds": (5.0, 20.0, 40.0),
        "leaf passes": (0.05, 0.1, 0.2),
        "leaf cost": (1.0, 2.0),
        "second passes": (0.1, 0.4, 0.7),
        "others pass": (0.4, 0.7),
        "deeper": (0.8, 1.0, 1.5),
    },
    is_possible,
    measure,
    screen,
)


def chosen_setting() -> Setting:
    """The one that was found, or the nearest."""
    return setting(SEARCH.found)


def courses_of(setting: Setting, seed: int) -> Courses:
    """What each strategy did, by name; runs are kept, for several figures ask for them."""
    return {name: course_of(record_of(name, setting, seed), setting) for name in STRATEGIES}
