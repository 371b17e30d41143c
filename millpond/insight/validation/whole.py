"""Whether all parts of an engine agree: hands each check the parts that it looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from millpond.execution.runtime import EngineRuntime


def complaints(queries: Queries, is_spilling: bool) -> list[str]:
    """Where the parts of an engine do not agree; its lock is held.

    ``is_spilling``: somebody has pages leave memory, which is counted when it is done.
    """
    found = [*_declared(queries), *_queries(queries), *_shared(queries), *_graph(queries)]
    found += [*_queues(queries, is_spilling), *_results(queries), *_files(queries, is_spilling)]
    if queries.started is not None:
        found += _operators(queries, queries.started)
        if not is_spilling:
            found += queues.waiting(queries.started.backlog, queries.ground.inputs.queues)
    return found


def _declared(queries: Queries) -> Iterator[str]:
    catalog, inputs, graph = queries.ground.catalog, queries.ground.inputs, queries.graph
    yield from declared.declarations(
        catalog, queries.ground.memory.living(), queries.ground.journal.is_durable
    )
    yield from declared.entries_of_inputs(catalog, inputs)
    yield from declared.names_of_inputs(inputs)
    yield from declared.queues_of_inputs(inputs)
    yield from declared.copies_of_relations(inputs.relations, graph)
    yield from declared.late_tuples(inputs.streams)
    yield from declared.epochs(inputs, graph)


def _queries(queries: Queries) -> Iterator[str]:
    catalog, deliveries = queries.ground.catalog, queries.ground.deliveries
    outputs, groups = queries.outputs, queries.groups
    yield from registered.who_runs(catalog, queries.failures, outputs)
    yield from registered.outputs_in_graph(queries.graph, outputs, groups)
    yield from registered.beginnings(queries.begins, outputs)
    yield from registered.logs_of_queries(catalog, deliveries, groups)
    yield from registered.outputs_left_out(deliveries, outputs)
    yield from registered.slices_of_groups(deliveries, groups)


def _shared(queries: Queries) -> Iterator[str]:
    groups, outputs = queries.groups, queries.outputs
    containments, totals = queries.containments, queries.shared_totals
    yield from shared.members(groups)
    yield from shared.numbers(groups)
    yield from shared.weights(groups)
    yield from shared.constants(groups)
    yield from shared.group_in_graph(groups, queries.graph, outputs)
    yield from shared.alone(groups, outputs)
    yield from shared.shapes(groups)
    yield from shared.selections(containments, groups, outputs)
    yield from shared.readers_of_selections(containments)
    yield from shared.contained(containments)
    yield from shared.totals(totals, groups, outputs)
    yield from shared.totals_in_graph(totals, queries.graph)
    yield from shared.skeletons(queries.templates)


def _graph(queries: Queries) -> Iterator[str]:
    graph = queries.graph
    yield from graphs.inputs(graph, queries.ground.inputs.queues)
    yield from graphs.order(graph)
    yield from graphs.readers(graph)
    yield from graphs.purposes(graph)
    yield from graphs.what_is_known(graph)
    yield from graphs.forms(graph)
    yield from graphs.twins(graph)
    yield from graphs.nodes(graph)
    yield from graphs.copies(graph)


def _operators(queries: Queries, runtime: EngineRuntime) -> Iterator[str]:
    graph, running, all_queues = queries.graph, runtime.running, queries.ground.inputs.queues
    groups, outputs = queries.groups, queries.outputs
    yield from operators.who_runs(runtime, graph)
    yield from operators.definitions(running, graph)
    yield from operators.subscriptions(running, all_queues)
    yield from operators.workers(running, all_queues)
    yield from operators.cursors(running, all_queues)
    yield from operators.heartbeats(running)
    yield from operators.freed(running)
    yield from operators.claims(runtime)
    yield from operators.steps(runtime)
    yield from operators.units(runtime)
    yield from operators.circles(runtime)
    yield from operators.queues_of_operators(runtime, queries.ground.inputs)
    yield from operators.parts(runtime, graph)
    yield from operators.answered(runtime, queries.ground.deliveries)
    yield from operators.weights(runtime, queries.ground.catalog, groups, outputs)
    yield from operators.pins(runtime, all_queues)
    yield from queues.backlog(runtime.backlog, all_queues)
    yield from files.files_of_states(queries.ground.store, running)
    yield from files.versions(running)
    yield from files.cached_states(runtime.states)


def _queues(queries: Queries, is_spilling: bool) -> Iterator[str]:
    there = queries.ground.inputs.queues.values()
    yield from queues.amounts(there)
    yield from () if is_spilling else queues.spilled(there)
    yield from queues.index(there)
    yield from queues.floors(there)
    yield from queues.holders(there)
    yield from queues.needed_pages(there)
    yield from queues.kinds(there)
    yield from queues.contents(there)


def _results(queries: Queries) -> Iterator[str]:
    logs, books = list(queries.ground.deliveries), queries.ground.deliveries.keeper.books
    yield from results.positions(logs)
    yield from results.pages_of_logs(logs)
    yield from results.rows_of_logs(logs)
    yield from results.counts_of_groups(logs)
    yield from results.holders_of_pages(logs)
    yield from results.account(books)
    yield from results.accounted(books, _kept_pages(queries))


def _files(queries: Queries, is_spilling: bool) -> Iterator[str]:
    store, pages, started = queries.ground.store, _pages(queries), queries.started
    if started is None or operators.is_idle(started):
        yield from files.bytes_of_pages(store, pages)
    yield from () if is_spilling else files.files_of_pages(store, pages)
    yield from files.files_of_log(store)
    yield from files.tables_read_again(store)
    yield from files.end_of_log(store, queries.ground.journal)


def _kept_pages(queries: Queries) -> set[Page]:
    late = (
        page for intake in queries.ground.inputs.streams.values() for page in intake.late_log.kept
    )
    return results.whole_pages(queries.ground.deliveries) | set(late)


def _pages(queries: Queries) -> set[Page]:
    """All pages, with those that were let go and are being read."""
    books = queries.ground.deliveries.keeper.books
    read = {page for page in books._in_memory if page._pins}
    waiting = (page for queue in queries.ground.inputs.queues.values() for page in queue.all_pages)
    return _kept_pages(queries) | read | set(waiting)
