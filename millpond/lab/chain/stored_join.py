"""Chain paper, figure of a join with a stored relation: an operator of selectivity above one.

The first three operators, the second a join of selectivity above one, are one chain, so Chain uses
the selective operator behind the join during bursts; Greedy does not, and Round-robin is as bad.

Chart chosen: (0, 1), (1 ms, 0.9), (3 ms, 1.5), (4 ms, 0.1), (9 ms, 0); 80 tuples a second, load
0.72. The paper shows it on synthetic data only.
"""

from functools import partial

from millpond.lab.chain.bursts import Setting, path_plan, queue_size_experiment
from millpond.lab.chain.sentences import BETTER_THAN_GREEDY, Otherwise, Ratio, Sentence
from millpond.lab.words import CLEARLY, HUGE, MUCH

POINTS = ((0.0, 1.0), (0.001, 0.9), (0.003, 1.5), (0.004, 0.1), (0.009, 0.0))
"""The second operator is the join."""
SETTING = Setting(partial(path_plan, POINTS), {"s": 80.0})
SENTENCES = (
    Sentence("vastly improved performance over greedy", Ratio("greedy", "chain", HUGE)),
    Sentence(
        "round-robin [...] performs as badly as greedy",
        Ratio("round-robin", "greedy", 1 / CLEARLY),
        Otherwise(
            "between Chain and Greedy",
            "Greedy leaves tuples before the join while others have work, Round-robin gives the "
            "join a quantum in turn, so that the selective operator behind it gets tuples: of a "
            "long burst it frees 0.14 tuples a ms, Greedy 0.10, Chain 0.22; the lost digits may "
            "have had it otherwise",
            BETTER_THAN_GREEDY,
        ),
    ),
    Sentence(
        "fifo and round-robin [...] more or less similar to what we observed in the previous "
        "experiments",
        Ratio("fifo", "chain", MUCH),
    ),
)

EXPERIMENT = queue_size_experiment(
    __name__, "Queue size, join with a stored relation", SETTING, SENTENCES
)
