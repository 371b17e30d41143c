"""Strategies on wall-clock bursts, live.

Chain keeps the backlog smallest and Path Capacity answers soonest, on real data too

Wall-clock time on this machine, which is to have nothing else to do; some minutes.
"""

from collections.abc import Sequence

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.live.bursts import (
    FUNCTIONS,
    STRATEGIES,
    Outcome,
    goals,
    measured,
    overloading_rows,
)

SECONDS = 9.0


def run(seeds: Sequence[int]) -> Tables:
    """The medians of as many runs of every strategy as there are seeds."""
    rows_per_second = overloading_rows() / len(FUNCTIONS)
    found: dict[str, list[Outcome]] = {name: [] for name in STRATEGIES}
    for seed in seeds:
        for name, text in STRATEGIES.items():
            found[name].append(measured(text, rows_per_second, SECONDS, seed).outcome)
    outcomes = {name: Outcome.median(each) for name, each in found.items()}
    figures = [vars(outcome) for outcome in outcomes.values()]
    columns = {name: [each[name] for each in figures] for name in figures[0]}
    return {"strategies": {"strategy": list(outcomes), **columns}}


def plot(tables: Tables, figure: Figure) -> None:
    """The plane: every strategy by its peak and its mean latency."""
    table, axes = tables["strategies"], figure.subplots()
    for name, peak, latency in zip(
        table["strategy"], table["peak_bytes"], table["mean_seconds"], strict=True
    ):
        axes.plot(peak / 1e6, latency, "o", label=name)
    axes.set(xlabel="peak backlog, MB", ylabel="mean latency, s", xlim=(0, None), ylim=(0, None))
    axes.legend(fontsize="small")


def check(tables: Tables) -> list[Claim]:
    """What is expected of the strategies."""
    table = tables["strategies"]
    names = [name for name in table if name != "strategy"]
    outcomes = {
        strategy: Outcome(**{name: table[name][place] for name in names})
        for place, strategy in enumerate(table["strategy"])
    }
    return [
        Claim(goal.what, f"at most {goal.at_most:.2f}", f"{goal.ratio:.2f}", goal.is_met)
        for goal in goals(outcomes)
    ]


EXPERIMENT = experiment(
    __name__, "Strategies on wall-clock bursts, live", together="live", group="live"
)
