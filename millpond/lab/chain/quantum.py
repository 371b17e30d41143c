"""Chain paper, section 6: the quantum of Round-robin, and statistics that are measured.

The size of the time quantum affects Round-robin, but does not change the nature of the results; nor
do progress charts that are made from the statistics of the last window of time.

The queries of two and of four operators, with bursts. The figures' quantum is 10 ms; 2 and 50 ms
are tried beside it, and windows of five seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from millpond.lab.chain import four_operators, two_operators
from millpond.lab.chain.bursts import CHOSEN, SEEDS, Setting, run_setting
from millpond.lab.chain.sentences import Ratio, Sentence
from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import on_most_seeds, told_by_seed

SECONDS = 30.0
QUERIES: Mapping[str, tuple[Setting, Sequence[Sentence]]] = {
    "two operators": (two_operators.SETTING, two_operators.SENTENCES),
    "four operators": (four_operators.SETTING, four_operators.SENTENCES),
}
QUANTA_SECONDS = (0.002, 0.01, 0.05)
WINDOW_SECONDS = 5.0
STATIC = "static estimates"
WINDOWS = f"windows of {WINDOW_SECONDS:g} s"
UNCHANGED = "does not change the nature of the results presented here"
SIMILAR = "the results were similar to our other experiments"


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """Each sentence's ratio, by query, variation and seed."""
    rows = []
    for query, (setting, sentences) in QUERIES.items():
        for variation, varied in _variations(replace(setting, seconds=seconds)).items():
            tables = run_setting(varied, seeds, ("bursts",))
            rows += [
                (query, variation, sentence.text("bursts"), seed, ratio)
                for sentence in sentences
                for seed, ratio in zip(seeds, sentence.ratio.of(tables, "bursts"), strict=True)
            ]
    return {"ratios": table_of(("query", "variation", "sentence", "seed", "ratio"), rows)}


def _variations(setting: Setting) -> dict[str, Setting]:
    found = {_quantum(each): replace(setting, quantum_seconds=each) for each in QUANTA_SECONDS}
    return {**found, WINDOWS: replace(setting, measure_seconds=WINDOW_SECONDS)}


def _quantum(seconds: float) -> str:
    return f"quantum of {1000 * seconds:g} ms"


def plot(tables: Tables, figure: Figure) -> None:
    """A spot for each seed, a row for each sentence and variation."""
    axes = figure.subplots()
    table = tables["ratios"]
    names = [
        f"{query}: {sentence.removeprefix('bursts: ')}, {variation}"
        for query, variation, sentence in zip(
            table["query"], table["variation"], table["sentence"], strict=True
        )
    ]
    axes.scatter(table["ratio"], names, s=8)
    axes.tick_params(axis="y", labelsize=5)
    axes.set(xlabel="ratio of peak queue sizes", xscale="log")


def check(tables: Tables) -> Sequence[Claim]:
    """Each sentence is as true with every quantum, and with measured statistics."""
    return [
        claim
        for query, (_, sentences) in QUERIES.items()
        for sentence in sentences
        for claim in _claims(tables, query, sentence)
    ]


def _claims(tables: Tables, query: str, sentence: Sentence) -> list[Claim]:
    claims = [_same(tables, query, sentence, WINDOWS, SIMILAR)]
    if "round-robin" in sentence.ratio[:2]:
        others = (_quantum(each) for each in QUANTA_SECONDS if each != QUANTA_SECONDS[1])
        claims += [_same(tables, query, sentence, other, UNCHANGED) for other in others]
    return claims


def _same(tables: Tables, query: str, sentence: Sentence, variation: str, words: str) -> Claim:
    """What holds of a seed with the figures' own setting holds of it in the variation too."""
    text = sentence.text("bursts").removeprefix("bursts: ")
    usual, varied = (
        picked(
            tables["ratios"],
            "ratio",
            {"query": query, "variation": each, "sentence": f"bursts: {text}"},
        )
        for each in (_quantum(QUANTA_SECONDS[1]), variation)
    )
    ratio: Ratio = sentence.ratio
    so = [
        not ratio.least <= one <= ratio.most or ratio.least <= other <= ratio.most
        for one, other in zip(usual, varied, strict=True)
    ]
    return Claim(
        f"{query}, {variation}: {text}",
        f'"{words}": {ratio.bounds} wherever it is so in the figure\'s setting',
        told_by_seed(varied, so),
        on_most_seeds(so),
        Instead(
            "of what is so in the figure's setting some is not",
            "a long quantum lets Round-robin carry more tuples from operator to operator, a short "
            "one fewer; averages of a window are of few tuples",
            sum(so) > 0,
        ),
    )


EXPERIMENT = experiment(
    __name__, "Quanta and statistics windows", note=CHOSEN, seeds=SEEDS, long=True
)
