"""Strategies by name: the built-in ones and those that installed packages offer as entry points.

A name stands for a callable that takes the strategy's settings by keyword, most often its class.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from millpond.errors import StrategyError
from millpond.scheduling.check_settings import check_settings
from millpond.scheduling.strategy import Strategy
from millpond.spelling import suggestion

GROUP = "millpond.strategies"

FOLDER = "millpond.scheduling.strategies"

BUILT_IN = {
    "auto": "auto:Auto",
    "chain": "chain:Chain",
    "fifo-chain": "fifo_chain:FifoChain",
    "greedy": "greedy:Greedy",
    "fifo": "fifo:Fifo",
    "round-robin": "round_robin:RoundRobin",
    "gts": "gts:Gts",
    "ots": "ots:Ots",
    "di": "direct_interoperability:DirectInteroperability",
    "hmts": "hmts:Hmts",
    "component-based": "component_based:ComponentBased",
    "maximum-slope-segment": "maximum_slope_segment:MaximumSlopeSegment",
    "per-tuple-greedy": "per_tuple_greedy:PerTupleGreedy",
    "path-capacity": "path_capacity:PathCapacity",
    "segment": "segment:Segment",
    "simplified-segment": "simplified_segment:SimplifiedSegment",
    "threshold": "threshold:Threshold",
    "periodically-oldest": "periodically_oldest:PeriodicallyOldest",
    "dynamic-priority": "dynamic_priority:DynamicPriority",
}


def names() -> tuple[str, ...]:
    """Every strategy that can be made, in alphabetical order."""
    return tuple(sorted(_offers()))


def make(name: str, **settings: object) -> Strategy:
    """A new strategy of that name with these settings.

    >>> type(make("fifo")).__name__
    'Fifo'
    """
    factory = find(name)
    check_settings(name, factory, settings)
    try:
        return factory(**settings)
    except StrategyError as fault:
        raise StrategyError(f'strategy "{name}": {fault}') from None
    except TypeError as fault:
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        raise StrategyError(
            f'strategy "{name}" cannot be made with {given or "no settings"}: {fault}; '
            "give numbers where numbers are due"
        ) from fault


def find(name: str) -> Callable[..., Strategy]:
    """What makes the strategy of that name."""
    offers = _offers()
    if name not in offers:
        raise StrategyError(f'no strategy "{name}"{suggestion(name, offers)}')
    try:
        return cast("Callable[..., Strategy]", offers[name].load())
    except (ImportError, AttributeError) as fault:
        raise StrategyError(
            f'strategy "{name}" ({offers[name].value}) cannot be loaded: {fault}'
        ) from fault


@cache
def _offers() -> Mapping[str, EntryPoint]:
    found = {each.name: each for each in entry_points(group=GROUP)}
    built_in = {
        name: EntryPoint(name, f"{FOLDER}.{value}", GROUP) for name, value in BUILT_IN.items()
    }
    return found | built_in
