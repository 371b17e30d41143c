"""Whether all parts of an engine agree: hands each check the parts that it looks at.

A check is a public generator of complaints in a module beside this one; it is found by being there.
Its parameters name the parts it looks at, and it is made whenever all of these are at hand.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from millpond.insight.validation import (
    declared,
    files,
    graphs,
    operators,
    queues,
    registered,
    results,
    shared,
)
from millpond.sharing.queries import Queries
from millpond.storage.pages import Page


def _checks_of(module: ModuleType) -> Iterator[tuple[Callable[..., Iterator[str]], frozenset[str]]]:
    for name, each in inspect.getmembers(module, inspect.isgeneratorfunction):
        if each.__module__ == module.__name__ and not name.startswith("_"):
            yield each, frozenset(inspect.signature(each).parameters)


_MODULES = (declared, registered, shared, graphs, queues, results, files, operators)
_CHECKS = [check for module in _MODULES for check in _checks_of(module)]


def complaints(queries: Queries, is_spilling: bool) -> list[str]:
    """Where the parts of an engine do not agree; its lock is held.

    ``is_spilling``: somebody has pages leave memory, which is counted when it is done.
    """
    parts = {**_of_all(queries), **_of_runtime(queries), **_at_rest(queries, is_spilling)}
    parts["there"] = files.names_there(queries.ground.store)
    return [
        complaint
        for check, names in _CHECKS
        if parts.keys() >= names
        for complaint in check(**{name: parts[name] for name in names})
    ]


def _of_all(queries: Queries) -> Mapping[str, Any]:
    """What is there at any time."""
    ground, inputs, deliveries = queries.ground, queries.ground.inputs, queries.ground.deliveries
    return {
        "catalog": ground.catalog,
        "declared": ground.memory.living(),
        "are_all_texts": ground.journal.is_durable,
        "inputs": inputs,
        "streams": inputs.streams,
        "relations": inputs.relations,
        "queues": inputs.queues,
        "graph": queries.graph,
        "reads": {each: queries.graph.queues_of(each) for each in queries.graph.operators},
        "outputs": queries.outputs,
        "failures": queries.failures,
        "begins": queries.begins,
        "groups": queries.groups,
        "containments": queries.containments,
        "shared_totals": queries.shared_totals,
        "templates": queries.templates,
        "deliveries": deliveries,
        "logs": list(deliveries),
        "books": deliveries.keeper.books,
        "kept_pages": _kept_pages(queries),
        "store": ground.store,
        "log_files": files.names_in_log(ground.store),
        "journal": ground.journal,
    }


def _of_runtime(queries: Queries) -> Mapping[str, Any]:
    """What is there once queries run."""
    runtime = queries.started
    if runtime is None:
        return {}
    return {
        "runtime": runtime,
        "running": runtime.running,
        "state_files": files.names_of_states(runtime.running),
        "counted": runtime.backlog,
        "cache": runtime.states,
    }


def _at_rest(queries: Queries, is_spilling: bool) -> Mapping[str, Any]:
    """What can be counted while nobody changes it without the lock."""
    found: dict[str, Any] = {}
    pages = _pages(queries)
    if queries.started is None or operators.is_idle(queries.started):
        found["idle_pages"] = pages
    if not is_spilling:
        found["page_files"] = files.names_of_pages(pages)
        found["settled_queues"] = queries.ground.inputs.queues
    return found


def _kept_pages(queries: Queries) -> set[Page]:
    aside = (
        page
        for intake in queries.ground.inputs.streams.values()
        for log in (intake.late_log, intake.violating_log)
        for page in log.kept
    )
    return results.whole_pages(queries.ground.deliveries) | set(aside)


def _pages(queries: Queries) -> set[Page]:
    """All pages, with those that were let go and are being read."""
    books = queries.ground.deliveries.keeper.books
    read = {page for page in books._in_memory if page._pins}
    waiting = (page for queue in queries.ground.inputs.queues.values() for page in queue.all_pages)
    return _kept_pages(queries) | read | set(waiting)
