"""A Runtime on a virtual clock: the papers' experiments, millions of decisions, no JVM."""

from millpond.simulator.conditions import IDEAL, Conditions
from millpond.simulator.distributions import Listed, Normal, Outliers
from millpond.simulator.plan import SimulatedPlan, Window
from millpond.simulator.record import Record, StepFunction
from millpond.simulator.simulation import Simulation, simulate

__all__ = [
    "IDEAL",
    "Conditions",
    "Listed",
    "Normal",
    "Outliers",
    "Record",
    "SimulatedPlan",
    "Simulation",
    "StepFunction",
    "Window",
    "simulate",
]
