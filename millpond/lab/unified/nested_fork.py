"""Figures 6 to 8 of the Unified paper: nested forks, normalised bottom-up for latency. The text
names its operators and the partitions that an example of unknown costs falls into; here costs are
drawn, and the slopes say which partitions the text's rule gives.

Bottom-up normalisation joins a fork to its stem or breaks it by the slopes, and falls into
E+D+G+H+P, C+A+B and O where these say so; on trees of like tuples no schedule has a smaller total
latency.

The figure of the tree is not readable: E forks into D, C and G; C into A and B; G into H, P and O.
Costs are drawn between a quarter and sixteen seconds, those of the picture are chosen. The paper
claims no optimality for partitioned trees; with like tuples that all wait it holds.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.unified import trees
from millpond.lab.unified.small_instances import SmallInstance
from millpond.scheduling.charts.chart_parts import ChartPart, unfold
from millpond.scheduling.charts.component_partition import charts, parts
from millpond.scheduling.registry import make

DRAWN = (1.0, 1.0, 4.0, 1.0, 2.0, 1.0, 0.5, 0.8, 10.0)
"""Costs of the picture."""
PAPER = "E+D+G+H+P | C+A+B | O"
DRAWS, TREES = 3000, 40


def run(seeds: Sequence[int]) -> Tables:
    """Partitions of forks and trees of drawn costs, and random trees against all schedules."""
    whole = trees.snapshot(trees.PARENTS, DRAWN)
    step, behind = charts(whole, "latency").step(whole.by_id[0]), charts(whole, "latency").behind[0]
    return {
        "fork of C": _forks(seeds),
        "tree": _trees(seeds),
        "unnormalised": _curve([step, *unfold(behind)]),
        "normalised": _curve(parts(whole, "latency")),
        "areas": _areas(trees.random_trees(seeds, TREES)),
    }


def _forks(seeds: Sequence[int]) -> dict[str, list[object]]:
    """The fork under C (Figure 7), the branch that delivers faster being A."""
    rows = []
    for cost in trees.drawn_costs(seeds, TREES):
        if cost["A"] < cost["B"]:
            said = "C+A | B" if cost["C"] + cost["A"] < cost["B"] else "C+A+B"
            plan = trees.snapshot(("s", 0, 0), [cost[name] for name in "CAB"])
            longest = max("CAB", key=cost.__getitem__)
            rows.append((longest, said, _named(parts(plan, "latency"), "CAB")))
    return table_of(("longest", "slopes say", "found"), rows)


def _trees(seeds: Sequence[int]) -> dict[str, list[object]]:
    """The tree under E (Figure 8), where C's fork and G's are as the text has them."""
    table: dict[str, list[object]] = {"slopes say": [], "found": []}
    for cost in trees.drawn_costs(seeds, DRAWS):
        if trees.as_in_the_text(cost):
            plan = trees.snapshot(trees.PARENTS, [cost[name] for name in trees.NAMES])
            table["slopes say"].append("the paper's" if trees.is_the_papers(cost) else "others")
            table["found"].append(_named(parts(plan, "latency"), trees.NAMES))
    return table


def _areas(instances: Sequence[SmallInstance]) -> dict[str, list[float]]:
    whole = make("fifo", max_tuples=1)
    partitioned = make("component-based", max_tuples=1)
    return {
        "least": [each.least_area("latency") for each in instances],
        "component-based": [each.area(partitioned, "latency") for each in instances],
        "depth first": [each.area(whole, "latency") for each in instances],
    }


def _named(found: Sequence[ChartPart], names: str) -> str:
    return " | ".join("+".join(names[each] for each in sorted(part.operators)) for part in found)


def _curve(drawn: Sequence[ChartPart]) -> dict[str, list[float]]:
    seconds = np.cumsum([0.0, *(part.seconds for part in drawn)])
    falls = np.cumsum([0.0, *(part.fall for part in drawn)])
    return {"seconds": seconds.tolist(), "outputs left": (falls[-1] - falls).tolist()}


def plot(tables: Tables, figure: Figure) -> None:
    """Figure 8: the chart of the tree before and after normalisation."""
    axes = figure.subplots()
    for name, style in (("unnormalised", "o-"), ("normalised", "s--")):
        axes.plot(tables[name]["seconds"], tables[name]["outputs left"], style, label=name)
    axes.set(xlabel="seconds of work", ylabel="outputs still to come")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """The partitions that slopes say, and that no schedule is better."""
    return [*_figure_7(tables), *_figure_8(tables), *_against_all_schedules(tables)]


def _figure_7(tables: Tables) -> list[Claim]:
    fork = tables["fork of C"]
    rows = list(zip(fork["longest"], fork["slopes say"], fork["found"], strict=True))
    agree = sum(said == found for _, said, found in rows)
    two = sum(found == "C+A | B" for *_, found in rows)
    long = [found for longest, _, found in rows if longest == "C"]
    return [
        Claim(
            "fork of C: partitions are those with the steepest slopes",
            "on all draws, one partition on some and two on others",
            f"{agree} of {len(rows)}; two on {two}",
            agree == len(rows) and 0 < two < len(rows),
        ),
        Claim(
            "fork of C: partitions where C takes longest",
            '"a very long C segment will result into a chart with one partition": C+A+B',
            f"on {long.count('C+A+B')} of {len(long)}",
            bool(long) and set(long) == {"C+A+B"},
        ),
    ]


def _figure_8(tables: Tables) -> list[Claim]:
    table = tables["tree"]
    rows = list(zip(table["slopes say"], table["found"], strict=True))
    papers = [found for said, found in rows if said == "the paper's"]
    others = [found for said, found in rows if said == "others"]
    apart = [found for _, found in rows if not (_as_one("GHP", found) and _as_one("CAB", found))]
    return [
        Claim(
            "tree whose forks are as in the text: partitions where the slopes say the paper's",
            PAPER,
            f"on {papers.count(PAPER)} of {len(papers)}",
            bool(papers) and set(papers) == {PAPER},
        ),
        Claim(
            "tree whose forks are as in the text: partitions where they say others",
            "others",
            f"on {len(others) - others.count(PAPER)} of {len(others)}",
            bool(others) and PAPER not in others,
        ),
        Claim(
            "tree whose forks are as in the text: what was one partition is one in the whole",
            '"they will never need to be separated again"',
            f"on {len(rows) - len(apart)} of {len(rows)}",
            bool(rows) and not apart,
        ),
    ]


def _as_one(operators: str, partition: str) -> bool:
    return any(set(operators) <= set(part) for part in partition.split(" | "))


def _against_all_schedules(tables: Tables) -> list[Claim]:
    least = np.array(tables["areas"]["least"])
    claims = []
    for name in ("component-based", "depth first"):
        excess = (np.array(tables["areas"][name]) / least - 1).round(9) + 0.0
        optimal = name == "component-based"
        text = f"random trees, {name}: latency above the least of all schedules"
        found = f"worst {excess.max():+.1%}, mean {excess.mean():+.1%}, {len(least)} trees"
        holds = excess.max() <= 0 if optimal else excess.mean() > 0
        claims.append(Claim(text, "+0.0 % on all" if optimal else "above it", found, bool(holds)))
    return claims


EXPERIMENT = experiment(__name__, "Figures 6 to 8, nested forks")
