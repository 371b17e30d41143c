"""Chain paper, figure of a join with a stored relation: an operator of selectivity above one.

The first three operators, the second a join of selectivity above one, are one chain, so Chain uses
the selective operator behind the join during bursts; Greedy does not, and Round-robin is as bad.

The chart was searched for among those that fit the text (see docs/papers.md). The paper shows it on
synthetic data only.
"""

from functools import partial

from millpond.lab.chain import searched_chart
from millpond.lab.chain.bursts import Setting, path_plan, queue_size_experiment
from millpond.lab.chain.sentences import BETTER_THAN_GREEDY, Otherwise, Ratio, Sentence
from millpond.lab.search import Point
from millpond.lab.words import CLEARLY, HUGE, MUCH

SYNTHETIC = ("bursts",)
SENTENCES = (
    Sentence(
        "vastly improved performance over greedy", Ratio("greedy", "chain", HUGE), None, SYNTHETIC
    ),
    Sentence(
        "round-robin [...] performs as badly as greedy",
        Ratio("round-robin", "greedy", 1 / CLEARLY),
        Otherwise(
            "between Chain and Greedy",
            "Greedy leaves tuples before the join while others have work, Round-robin gives the "
            "join a quantum in turn, so that the selective operator behind it gets tuples; in no "
            "chart that was tried do all three sentences stand",
            BETTER_THAN_GREEDY,
        ),
        SYNTHETIC,
    ),
    Sentence(
        "fifo and round-robin [...] more or less similar to what we observed in the previous "
        "experiments",
        Ratio("fifo", "chain", MUCH),
        None,
        SYNTHETIC,
    ),
)


def is_possible(point: Point) -> bool:
    """What the text says of the chart."""
    first, join, third, fourth = searched_chart.slopes(point)
    ends = [1000 * time for time, _ in searched_chart.chart(point)]
    left = point["size 3"]
    chain = (1 - left) / ends[3]
    one_chain = chain >= max(first, (1 - point["size 2"]) / ends[2], 1 / ends[4]) and chain > fourth
    fast = MUCH * point["ms 3"] <= point["ms 2"] and 5 * left <= point["size 2"]
    return point["size 2"] > point["size 1"] and join < 0 < third and fast and one_chain


SEARCH = searched_chart.chart_search(
    "chain-stored-join",
    '"the second operator is a join with a stored relation", of selectivity above one; "the fast '
    'and selective operator which follows the join" (a fifth at most passes, in half the time of '
    'the join at most); "the first three operators comprise a single chain"',
    {
        "ms 1": (0.25, 0.5, 1.0),
        "size 1": (0.95, 0.9),
        "ms 2": (3.0, 4.0, 4.5),
        "size 2": (1.5, 2.0),
        "ms 3": (0.25, 0.5, 1.0),
        "size 3": (0.05, 0.1),
        "ms 4": (2.0, 3.5, 4.5),
        "load": (0.8, 0.85, 0.9, 0.95),
    },
    is_possible,
    SENTENCES,
)
SETTING = searched_chart.setting(SEARCH.found)
POINTS = ((0.0, 1.0), (0.001, 0.9), (0.003, 1.5), (0.004, 0.1), (0.009, 0.0))
"""A chart of that shape at a lower load, for what does not depend on it."""
PLAIN_SETTING = Setting(partial(path_plan, POINTS), {"s": 80.0})
EXPERIMENT = queue_size_experiment(
    __name__, "Queue size, join with a stored relation", SETTING, SENTENCES
)
