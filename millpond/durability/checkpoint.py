"""An engine as it is, in records: a log that begins with them needs nothing of what came before.

What is recovered from them is what would be recovered from the whole log, down to the numbers of
operators: names in the log keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from millpond.catalog import Catalog, Declaration, QueryEntry, StreamEntry
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.cql.functions_in_use import functions_in_use
from millpond.cql.statements import Create, Drop
from millpond.delivery.group_results import GroupLog
from millpond.errors import MillpondError
from millpond.functions.user_function import UserFunction
from millpond.intake.inputs import is_one_row
from millpond.sharing.queries import Queries
from millpond.storage.log import Record
from millpond.storage.queues import Queue


def checkpoint(queries: Queries) -> list[Record] | None:
    """The records; None if what is declared can not be told from the present texts alone."""
    declared = list(queries.ground.memory.declarations)
    if any(each.is_dropped for each in declared):
        found = _tellable(declared, queries.ground.catalog)
        if found is None:
            return None
        declared = found
    return [
        queries.ground.opened,
        *_settings(queries),
        *(_statement(each) for each in declared if each.kind in ("stream", "relation")),
        {"kind": "epochs", **queries.ground.inputs.epochs()},
        {"kind": "graph", **queries.graph.numbers()},
        *needs(functions_in_use(queries.ground.catalog)),
        *_views_and_queries(queries, declared),
        *_inputs(queries),
        *({"kind": "cut", **asdict(cut)} for cut in queries.runtime.cutting.history),
        {"kind": "pushed", "keys": [list(pair) for pair in queries.ground.inputs.keys]},
        *_queues(queries),
        *_operators(queries),
        {"kind": "queues", "by_hand": _by_hand(queries)},
        *_results(queries),
        *({"kind": "failed", "failures": [asdict(failure)]} for failure in list(queries.failures)),
        {"kind": "restored", "executed": queries.ground.memory.to_json()},
    ]


# -- what is declared ------------------------------------------------------------------------


def _tellable(declared: list[Declaration], catalog: Catalog) -> list[Declaration] | None:
    """The declarations without views that nobody needs any more, if that gives this catalog.

    A query holds the plan of a view that was dropped since, and its text speaks of it.
    """
    for keeps_dropped in (False, True):
        chosen = declared if keeps_dropped else _without_dropped(declared)
        try:
            told = _told(chosen, catalog)
            if _unaltered(told) == _unaltered(catalog.entries):
                return chosen
        except MillpondError:
            continue
    return None


def _without_dropped(declared: list[Declaration]) -> list[Declaration]:
    kept: list[Declaration] = []
    for each in declared:
        if each.is_dropped:
            last = max(i for i, other in enumerate(kept) if _same_name(other, each))
            del kept[last]
        else:
            kept.append(each)
    return kept


def _same_name(one: Declaration, other: Declaration) -> bool:
    return one.name.lower() == other.name.lower()


def _told(declared: list[Declaration], like: Catalog) -> dict[str, Any]:
    """What some declarations declare, one after the other."""
    catalog = Catalog(like.tick_microseconds, functions=like.functions)
    inputs = [each for each in declared if each.kind in ("stream", "relation")]
    for each in inputs + [each for each in declared if each not in inputs]:
        if each.is_dropped:
            apply(Drop("view", each.name), catalog)
            continue
        action = check_statement(each.text, each.position, catalog).action
        if isinstance(action, Create):
            apply(Create(replace(action.entry, name=each.name)), catalog)
    return catalog.entries


def _unaltered(entries: dict[str, Any]) -> dict[str, Any]:
    """Catalog entries without what ALTER changes."""
    return {key: _unaltered_entry(entry) for key, entry in entries.items()}


def _unaltered_entry(entry: Any) -> Any:
    if isinstance(entry, QueryEntry):
        return replace(entry, weight=1.0, active=True, on_error="stop")
    return replace(entry, delay_ticks=0) if isinstance(entry, StreamEntry) else entry


def _settings(queries: Queries) -> Iterator[Record]:
    for text, position in queries.ground.memory.settings.values():
        at = [position.line, position.column]
        yield {"kind": "statement", "text": text, "at": at, "changes_rows": False}


def needs(functions: list[UserFunction]) -> list[Record]:
    """What says which functions of the user must be there before what follows."""
    facts = [{"name": f.name, "signature": str(f), "digest": f.digest} for f in functions]
    return [{"kind": "needs", "functions": facts}] if facts else []


def _statement(declared: Declaration) -> Record:
    if declared.is_dropped:
        return {"kind": "drop", "name": declared.name}
    at = [declared.position.line, declared.position.column]
    return {"kind": "statement", "text": declared.text, "at": at, "changes_rows": False}


def _views_and_queries(queries: Queries, declared: list[Declaration]) -> Iterator[Record]:
    for each in declared:
        if each.kind == "view":
            yield _statement(each)
        elif each.kind == "query":
            entry = queries.ground.query_entry(each.name)
            yield {
                "kind": "query",
                "name": each.name,
                "text": each.text,
                "at": [each.position.line, each.position.column],
                "weight": entry.weight,
                "active": entry.active,
                "on_error": entry.on_error,
                "epoch": queries.epoch_of(each.name),
                "member": queries.groups.membership(each.name),
                "is_late_alone": queries.groups.is_late_alone(each.name),
                "contained": queries.containments.data(each.name.lower()),
                "joined": queries.numbers_of(each.name),
                "summed": queries.shared_totals.data(each.name.lower()),
                "begins": queries.begins.get(each.name.lower()),
            }


# -- what has come in ------------------------------------------------------------------------


def _inputs(queries: Queries) -> Iterator[Record]:
    for key, intake in queries.ground.inputs.streams.items():
        if intake.entry.has_other_delay:
            yield {"kind": "delay", "name": intake.entry.name, "ticks": intake.entry.delay_ticks}
        yield intake.noted(key)
        yield {"kind": "late", "name": key, "pages": [p.reference() for p in intake.late_log.kept]}
    for key, relation in queries.ground.inputs.relations.items():
        yield relation.noted(key)
    for key, rows in queries.ground.inputs.read_rows.items():
        yield {"kind": "source", "name": key, "rows": rows}


def _queues(queries: Queries) -> Iterator[Record]:
    for name, queue in sorted(queries.ground.inputs.queues.items()):
        if not is_one_row(name):
            yield _queue(queue)


def _queue(queue: Queue) -> Record:
    return {
        "kind": "queue",
        "name": queue.name,
        "heartbeat": queue.heartbeat,
        "freed_until": queue.freed_until,
        "pages": [[page.reference(), floor] for page, floor in queue.placed_pages],
        "base": None if queue.base is None else queue.base.reference(),
        "base_time": queue.base_time,
    }


# -- what was done ---------------------------------------------------------------------------


def _operators(queries: Queries) -> Iterator[Record]:
    for identity, running in sorted(queries.runtime.running.items()):
        state = None if running.state is None else running.state.present()
        yield {
            "kind": "operator",
            "name": identity,
            "cursor": running.cursor,
            "state": state,
            "since": running.reads_since,
        }


def _by_hand(queries: Queries) -> dict[str, bool]:
    """Where a user has put queues in, or taken them out, of what is still there."""
    said = queries.runtime.placement.by_hand
    is_part = queries.runtime.cutting.cuts.is_part
    kept = [name for name in sorted(said) if name in queries.graph.operators or is_part(name)]
    return {name: said[name] for name in kept}


def _results(queries: Queries) -> Iterator[Record]:
    for log in sorted(queries.ground.deliveries, key=lambda each: each.entry.name.lower()):
        key = log.entry.name.lower()
        yield {
            "kind": "results",
            "query": key,
            "until": log.own_until,
            "rows": log.own_rows,
            "came": log.came,
            "position": log.position,
            "pages": [page.reference() for page in log.kept],
            "waiting": [page.reference() for page in log.waiting],
            "content": [page.reference() for page in log.content],
            "complete": log.is_complete,
            **(log.facts() if isinstance(log, GroupLog) else {}),
        }
        if log.sink is not None:
            yield log.sink_note()


def entry_again(catalog: Catalog, declared: Declaration, **altered: Any) -> QueryEntry:
    """The entry of a query as it was, from its text and what ALTER has changed."""
    action = check_statement(declared.text, declared.position, catalog).action
    if not isinstance(action, Create) or not isinstance(action.entry, QueryEntry):
        raise MillpondError(f"internal: {declared.text} declares no query")
    return replace(action.entry, name=declared.name, **altered)
