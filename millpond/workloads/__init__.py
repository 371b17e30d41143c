"""Arrival processes: when tuples arrive, the same for the `burst` source and the simulator.

A process is pure data; with a seed it yields its arrival times, in seconds from the start and
in order, as arrays of bounded length. The same process and seed give the same times.
"""

import inspect
from collections.abc import Callable
from typing import Any

from millpond.errors import InputError
from millpond.spelling import suggestion
from millpond.workloads.bursts import OnOff, Phases
from millpond.workloads.flows import Pareto, ParetoOnOff, PoissonFlows, SelfSimilar
from millpond.workloads.hurst import counts_per_bin, hurst_estimate
from millpond.workloads.process import CHUNK_ARRIVALS, ArrivalProcess, FloatArray
from millpond.workloads.steady import Constant, Poisson
from millpond.workloads.trace import SizedArrivals, Trace

__all__ = [
    "CHUNK_ARRIVALS",
    "PROCESSES",
    "ArrivalProcess",
    "Constant",
    "FloatArray",
    "OnOff",
    "Pareto",
    "ParetoOnOff",
    "Phases",
    "Poisson",
    "PoissonFlows",
    "SelfSimilar",
    "SizedArrivals",
    "Trace",
    "counts_per_bin",
    "hurst_estimate",
    "make",
]

PROCESSES: dict[str, Callable[..., ArrivalProcess]] = {
    "constant": Constant,
    "poisson": Poisson,
    "onoff": OnOff,
    "pareto": ParetoOnOff,
    "selfsimilar": SelfSimilar,
    "flows": PoissonFlows,
    "trace": Trace,
}


def make(name: str, **parameters: Any) -> ArrivalProcess:
    """The process called ``name`` with these parameters.

    >>> make("poisson", arrivals_per_second=10)
    Poisson(arrivals_per_second=10)
    """
    wanted = name.lower().replace("_", "").replace("-", "")
    if wanted not in PROCESSES:
        raise InputError(f'no arrival process "{name}"{suggestion(wanted, PROCESSES)}')
    signature = inspect.signature(PROCESSES[wanted])
    try:
        signature.bind(**parameters)
    except TypeError as fault:
        known = ", ".join(signature.parameters)
        raise InputError(f'arrival process "{wanted}": {fault}; its parameters: {known}') from None
    return PROCESSES[wanted](**parameters)
