"""Chain paper, first figure pair: one stream, a fast selective operator before a slow one.

With a fast, selective operator before a slow one, Chain and Greedy are almost identical,
Round-robin does almost as well, and FIFO does badly.

Chart chosen: (0, 1), (1 ms, 0.2), (6 ms, 0); 120 tuples a second, load 0.72.
"""

from functools import partial

from millpond.lab.chain.bursts import Setting, path_plan, queue_size_experiment
from millpond.lab.chain.sentences import Ratio, Sentence
from millpond.lab.words import CLEARLY, MUCH, SAME

POINTS = ((0.0, 1.0), (0.001, 0.2), (0.006, 0.0))
SETTING = Setting(partial(path_plan, POINTS), {"s": 120.0})
SENTENCES = (
    Sentence(
        "chain and greedy have almost identical performance",
        Ratio("greedy", "chain", 1 - SAME, 1 + SAME),
    ),
    Sentence(
        "round-robin performs almost as well as chain on both data sets",
        Ratio("round-robin", "chain", most=CLEARLY),
    ),
    Sentence("fifo performs badly with respect to chain", Ratio("fifo", "chain", MUCH)),
)

EXPERIMENT = queue_size_experiment(__name__, "Queue size, two operators", SETTING, SENTENCES)
