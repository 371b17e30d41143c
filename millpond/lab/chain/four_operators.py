"""Chain paper, second figure pair: a selective operator sandwiched between unproductive ones.

Chain recognises the fast, selective third operator although two unproductive ones stand before it;
Greedy does not, and FIFO and Round-robin do nearly as badly as Greedy.

The chart was searched for among those that fit the text (see docs/papers.md).
"""

from millpond.lab.chain import searched_chart
from millpond.lab.chain.bursts import queue_size_experiment
from millpond.lab.chain.sentences import Ratio, Sentence
from millpond.lab.search import Point
from millpond.lab.words import CLEARLY, MUCH

AS_BAD = "both of which perform nearly as bad as greedy in either case"
SENTENCES = (
    Sentence(
        "greedy is expected to perform badly as compared to chain. indeed, we observe this",
        Ratio("greedy", "chain", MUCH),
    ),
    Sentence(f"fifo and round-robin [...] {AS_BAD}", Ratio("fifo", "greedy", 1 / CLEARLY)),
    Sentence(f"fifo and round-robin [...] {AS_BAD}", Ratio("round-robin", "greedy", 1 / CLEARLY)),
    Sentence(
        "unlike the previous case round-robin does badly compared to chain",
        Ratio("round-robin", "chain", MUCH),
    ),
)


def is_possible(point: Point) -> bool:
    """What the text says of the chart."""
    first, second, third, fourth = searched_chart.slopes(point)
    falls = 1 > point["size 1"] > point["size 2"] > point["size 3"]
    fast = MUCH * point["ms 3"] <= min(point["ms 2"], point["ms 4"])
    return falls and fast and MUCH * max(second, fourth) <= third and first > 0


SEARCH = searched_chart.chart_search(
    "chain-four-operators",
    'four operators "with selectivities less than 1"; "the third operator is fast and highly '
    'selective" (a fifth at most passes, in half the time of its neighbours at most), "between two '
    'operators that have much lower tuple consumption per unit time" (half at most)',
    {
        "ms 1": (0.5, 1.0),
        "size 1": (0.95, 0.9),
        "ms 2": (3.0, 4.0, 4.5, 6.0),
        "size 2": (0.93, 0.89),
        "ms 3": (0.25, 0.5),
        "size 3": (0.05, 0.1),
        "ms 4": (2.0, 4.0, 6.0),
        "load": (0.7, 0.8, 0.9, 0.95),
    },
    is_possible,
    SENTENCES,
)
SETTING = searched_chart.setting(SEARCH.found)
EXPERIMENT = queue_size_experiment(__name__, "Queue size, four operators", SETTING, SENTENCES)
