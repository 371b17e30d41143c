"""Strategies as users write them: a name, or a name with settings, `threshold(beta = 0.8)`.

The one place that reads `SET strategy`, `--strategy` and an engine's settings, and that refuses
what cannot drive Spark before any data flows.
"""

import re
from dataclasses import replace
from inspect import signature
from typing import NamedTuple

from millpond.errors import StrategyError
from millpond.scheduling.direct_flow import DirectFlow
from millpond.scheduling.registry import find, make, names
from millpond.scheduling.snapshot import PartitionSnapshot
from millpond.scheduling.strategy import Strategy, simulator_only
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.unthreaded import Unthreaded

_WHOLE = re.compile(r"\s*([^\s()=,'\"][^()=,'\"]*?)\s*(?:\((.*)\)\s*)?", re.DOTALL)
_SETTING = re.compile(r"\s*(\w+)\s*=\s*('[^']*'|\"[^\"]*\"|[^\s,'\"()=]+)\s*(?:,|$)")
THREADED = ("di", "gts", "ots", "hmts")
"""The strategies that divide a plan among threads: the modes of an engine."""

DIRECT = "direct"
"""The mode in which whoever brings tuples carries them through; no strategy is asked."""

_WORDS: dict[str, object] = {"none": None, "null": None, "true": True, "false": False}


class StrategyText(NamedTuple):
    """The name and the settings of a strategy."""

    name: str
    settings: dict[str, object]


def parse_strategy(text: str) -> StrategyText:
    """Take a strategy's text apart.

    >>> parse_strategy("gts(strategy = chain, max_tuples = 1_000)")
    StrategyText(name='gts', settings={'strategy': 'chain', 'max_tuples': 1000})
    """
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise _misspelt(text)
    name, inside = whole[1], whole[2] or ""
    settings: dict[str, object] = {}
    place = 0
    while inside[place:].strip():
        found = _SETTING.match(inside, place)
        if found is None:
            raise _misspelt(text)
        key, place = found[1], found.end()
        if key in settings:
            raise StrategyError(f'strategy "{name}": {key} is given twice; give it once')
        settings[key] = _value(found[2])
    return StrategyText(name, settings)


def engine_strategy(
    text: str, budget_bytes: float, mode: str = "free", has_partitions: bool = False
) -> Strategy:
    """The strategy of that text, able to drive Spark, with the budget as its memory if it has one.

    A mode other than free has it in the threads of the HMTS paper: `di`, `gts`, `ots`, `hmts`; in
    the mode `direct` it is not asked, and nothing is chosen. With partitions of users it decides
    for what is in none of them.

    >>> engine_strategy("threshold(beta = 0.8)", budget_bytes=1e9).memory_bytes
    1000000000.0
    """
    name, settings = parse_strategy(text)
    if mode not in ("free", DIRECT):
        name, settings = _in_threads(mode, name, settings)
    strategy = _driving(name, settings, budget_bytes)
    if mode == DIRECT:
        return DirectFlow()
    if has_partitions and not isinstance(strategy, ThreeLevels):
        return Unthreaded(name, settings)
    return strategy


def partition_strategy(text: str, budget_bytes: float) -> StrategyText:
    """The strategy of a partition, which has threads of its own: not one that brings some.

    >>> partition_strategy("threshold(beta = 0.8)", budget_bytes=1e9).settings
    {'beta': 0.8, 'memory_bytes': 1000000000.0}
    """
    name, settings = parse_strategy(text)
    if isinstance(_driving(name, settings, budget_bytes), ThreeLevels):
        raise StrategyError(
            f'strategy "{name}" has threads of its own, and so has a partition; name another one'
        )
    return StrategyText(name, settings)


def partition_snapshot(
    declared: PartitionSnapshot, strategy: str, budget_bytes: float
) -> PartitionSnapshot:
    """A partition with its strategy taken apart; one that names none has the one that is set, or
    what that one has in its threads."""
    text = declared.strategy or strategy
    if not declared.strategy and isinstance(engine_strategy(text, budget_bytes), ThreeLevels):
        text = str(parse_strategy(text).settings.get("strategy", "fifo"))
    name, settings = partition_strategy(text, budget_bytes)
    return replace(declared, strategy=name, settings=settings)


def _driving(name: str, settings: dict[str, object], budget_bytes: float) -> Strategy:
    """A strategy that can drive Spark; the budget is one of its settings if it has a memory."""
    if "memory_bytes" in signature(find(str(settings.get("inner", name)))).parameters:
        settings.setdefault("memory_bytes", budget_bytes)
    strategy = make(name, **settings)
    reason = simulator_only(strategy)
    if reason:
        raise StrategyError(f'strategy "{name}" cannot drive Spark: {reason}')
    return strategy


def _in_threads(mode: str, name: str, settings: dict[str, object]) -> StrategyText:
    """A mode with a strategy in its threads, where it has one."""
    if name in THREADED:
        raise StrategyError(
            f"strategy \"{name}\" has threads of its own; SET mode = 'free', or name another one"
        )
    inside = signature(find(mode)).parameters.keys() - {"strategy"}
    strange = settings.keys() - inside
    if strange:
        raise StrategyError(
            f'mode "{mode}" can not hand {min(strange)} on to strategy "{name}"; leave it away, or '
            "SET mode = 'free'"
        )
    takes = "strategy" in signature(find(mode)).parameters
    return StrategyText(mode, settings | ({"strategy": name} if takes else {}))


def driving_spark() -> tuple[str, ...]:
    """The names of all strategies that can drive Spark, in alphabetical order."""
    return tuple(name for name in names() if simulator_only(make(name)) is None)


def _value(written: str) -> object:
    if written[0] in "'\"":
        return written[1:-1]
    if written.lower() in _WORDS:
        return _WORDS[written.lower()]
    for number in (int, float):
        try:
            return number(written)
        except ValueError:
            continue
    return written


def _misspelt(text: str) -> StrategyError:
    return StrategyError(
        f'strategy "{text.strip()}" cannot be read; write a name, or a name with settings: '
        "threshold(beta = 0.8, max_tuples = 1000)"
    )
