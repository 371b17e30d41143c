"""Experiments made up for the tests of the lab itself."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from millpond.lab.experiment import Claim, Experiment, Instead, Tables
from millpond.lab.running import Outcome

HOLDS = Claim("water is wet", "wet", "wet", True)
DIFFERS = Claim("pigs fly", '"pigs fly"', "1 cm", False, Instead("they jump", "no <wings>", True))
FAILS = Claim("pigs sing", "yes", "no", False, Instead("they hum", "no ear", False))


def experiment(name: str, *claims: Claim) -> Experiment:
    def check(tables: Tables) -> Sequence[Claim]:
        return claims

    return Experiment(name, "Chain", "Pigs", "Pigs fly.", lambda _: {}, _no_plot, check)


def _no_plot(tables: Tables, figure: Figure) -> None:
    figure.subplots()


def outcome(name: str, *claims: Claim) -> Outcome:
    return Outcome(name, {}, claims, 0.0)
