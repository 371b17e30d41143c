"""Every experiment of the lab, and every search for a setting: modules of its folders that declare
an `EXPERIMENT` or a `SEARCH`."""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from millpond import lab
from millpond.errors import StateError
from millpond.lab.experiment import Experiment
from millpond.lab.search import Search
from millpond.spelling import suggestion

_ORDER = ("STREAM", "Chain", "Path Capacity", "Unified", "HMTS", "beyond the papers")


@cache
def everything() -> Mapping[str, Experiment]:
    """All experiments by name, in the order of the papers."""
    found = [each for each in _declared("EXPERIMENT") if isinstance(each, Experiment)]
    found.sort(key=lambda each: (_ORDER.index(each.paper), each.name))
    return MappingProxyType({each.name: each for each in found})


def _declared(name: str) -> Iterator[Any]:
    """What modules of the lab declare by that name."""
    for module in pkgutil.walk_packages(lab.__path__, f"{lab.__name__}."):
        if not module.name.endswith("__main__"):
            yield getattr(import_module(module.name), name, None)


@cache
def searches() -> Mapping[str, Search]:
    """The searches by the names of the experiments whose settings they find."""
    found = [each for each in _declared("SEARCH") if isinstance(each, Search)]
    return MappingProxyType({each.name: each for each in found})


def find_search(name: str) -> Search:
    """The search of that name."""
    known = searches()
    if name not in known:
        raise StateError(f'no search "{name}"{suggestion(name, known)}')
    return known[name]


@cache
def experiments() -> Mapping[str, Experiment]:
    """Those whose verdicts are the same on every machine."""
    found = {name: each for name, each in everything().items() if not each.group}
    return MappingProxyType(found)


def choose(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names or groups; without any, those that are in no group."""
    known = everything()
    groups = {each.group for each in known.values() if each.group}
    for name in names:
        if name not in known and name not in groups:
            raise StateError(f'no experiment "{name}"{suggestion(name, [*known, *groups])}')
    chosen = [each for name in names for each in known.values() if name in (each.name, each.group)]
    return chosen if names else list(experiments().values())
