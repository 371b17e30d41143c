"""Looks for charts of one operator path, whose digits the Chain paper's print has lost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from millpond.lab.chain.bursts import Setting, path_plan, run_setting
from millpond.lab.chain.sentences import Sentence, margins_of
from millpond.lab.search import Margins, Point, Search
from millpond.scheduling.charts.progress_chart import Point as ChartPoint

SCREEN_SECONDS = 15.0
SCREEN_TOLERANCE = 0.9
"""A short run misses by a tenth at most what a long one may have."""


def chart(point: Point) -> tuple[ChartPoint, ...]:
    """Four operators by their milliseconds and the sizes of what they leave."""
    now, points = 0.0, [(0.0, 1.0)]
    for operator, size in (("1", point["size 1"]), ("2", point["size 2"])):
        now += point[f"ms {operator}"]
        points.append((now / 1000, size))
    now += point["ms 3"]
    points.append((now / 1000, point["size 3"]))
    return (*points, ((now + point["ms 4"]) / 1000, 0.0))


def slopes(point: Point) -> list[float]:
    """What each operator frees in a millisecond."""
    sizes = [1.0, *(point[f"size {each}"] for each in (1, 2, 3)), 0.0]
    return [(sizes[n] - sizes[n + 1]) / point[f"ms {n + 1}"] for n in range(4)]


def setting(point: Point) -> Setting:
    """The path with tuples of that load."""
    points = chart(point)
    return Setting(partial(path_plan, points), {"s": point["load"] / points[-1][0]})


def told(point: Point) -> str:
    """The chart in words, as the paper would print it."""
    steps = ", ".join(f"({1000 * time:g} ms, {size:g})" for time, size in chart(point))
    return f"{steps}; load {point['load']:g}"


def chart_search(
    name: str,
    facts: str,
    space: Mapping[str, Sequence[float]],
    is_possible: Callable[[Point], bool],
    sentences: Sequence[Sentence],
) -> Search:
    """The search for a chart and a load such as these sentences stand on both workloads."""

    workloads = list(dict.fromkeys(each for sentence in sentences for each in sentence.workloads))

    def measure(point: Point, seed: int) -> Margins:
        return margins_of(sentences, run_setting(setting(point), [seed], workloads))

    def screen(point: Point, seed: int) -> Margins:
        short = replace(setting(point), seconds=SCREEN_SECONDS)
        found = margins_of(sentences, run_setting(short, [seed], ("bursts",)))
        return {name: margin / SCREEN_TOLERANCE for name, margin in found.items()}

    return Search(name, facts, space, is_possible, measure, screen)
