"""Whether all parts of an engine agree: hands each check the parts that it looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millpond.insight.validation import (
    declared,
    files,
    graphs,
    operators,
    queries,
    queues,
    results,
    shared,
)
from millpond.storage.pages import Page

if TYPE_CHECKING:
    from millpond.facade.engine import Engine
    from millpond.spark.runtime import SparkRuntime


def complaints(engine: Engine, is_spilling: bool) -> list[str]:
    """Where the parts of an engine do not agree; its lock is held.

    ``is_spilling``: somebody has pages leave memory, which is counted when it is done.
    """
    found = [*_declared(engine), *_queries(engine), *_shared(engine), *_graph(engine)]
    found += [*_queues(engine, is_spilling), *_results(engine), *_files(engine, is_spilling)]
    if engine.queries.started is not None:
        found += _operators(engine, engine.queries.started)
        if not is_spilling:
            found += queues.waiting(engine.queries.started.backlog, engine.inputs.queues)
    return found


def _declared(engine: Engine) -> Iterator[str]:
    catalog, inputs, graph = engine.catalog, engine.inputs, engine.graph
    yield from declared.declarations(catalog, engine.memory.living(), engine.journal.is_durable)
    yield from declared.entries_of_inputs(catalog, inputs)
    yield from declared.names_of_inputs(inputs)
    yield from declared.queues_of_inputs(inputs)
    yield from declared.copies_of_relations(inputs.relations, graph)
    yield from declared.late_tuples(inputs.streams)
    yield from declared.epochs(inputs, graph)


def _queries(engine: Engine) -> Iterator[str]:
    catalog, deliveries = engine.catalog, engine.deliveries
    outputs, groups = engine.queries.outputs, engine.queries.groups
    yield from queries.who_runs(catalog, engine.queries.failures, outputs)
    yield from queries.outputs_in_graph(engine.graph, outputs, groups)
    yield from queries.beginnings(engine.queries.begins, outputs)
    yield from queries.logs_of_queries(catalog, deliveries, groups)
    yield from queries.outputs_left_out(deliveries, outputs)
    yield from queries.parts_of_groups(deliveries, groups)


def _shared(engine: Engine) -> Iterator[str]:
    groups, outputs = engine.queries.groups, engine.queries.outputs
    containments, totals = engine.queries.containments, engine.queries.shared_totals
    yield from shared.members(groups)
    yield from shared.numbers(groups)
    yield from shared.weights(groups)
    yield from shared.constants(groups)
    yield from shared.group_in_graph(groups, engine.graph, outputs)
    yield from shared.alone(groups, outputs)
    yield from shared.shapes(groups)
    yield from shared.selections(containments, groups, outputs)
    yield from shared.readers_of_selections(containments)
    yield from shared.contained(containments)
    yield from shared.totals(totals, groups, outputs)
    yield from shared.totals_in_graph(totals, engine.graph)
    yield from shared.skeletons(engine.queries.templates)


def _graph(engine: Engine) -> Iterator[str]:
    graph = engine.graph
    yield from graphs.inputs(graph, engine.inputs.queues)
    yield from graphs.order(graph)
    yield from graphs.readers(graph)
    yield from graphs.purposes(graph)
    yield from graphs.what_is_known(graph)
    yield from graphs.forms(graph)
    yield from graphs.twins(graph)
    yield from graphs.nodes(graph)
    yield from graphs.copies(graph)


def _operators(engine: Engine, runtime: SparkRuntime) -> Iterator[str]:
    graph, running, all_queues = engine.graph, runtime.running, engine.inputs.queues
    groups, outputs = engine.queries.groups, engine.queries.outputs
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
    yield from operators.queues_of_operators(runtime, engine.inputs)
    yield from operators.parts(runtime, graph)
    yield from operators.answered(runtime, engine.deliveries)
    yield from operators.weights(runtime, engine.catalog, groups, outputs)
    yield from operators.pins(runtime, all_queues)
    yield from queues.backlog(runtime.backlog, all_queues)
    yield from files.files_of_states(engine.store, running)
    yield from files.versions(running)
    yield from files.cached_states(runtime._states)


def _queues(engine: Engine, is_spilling: bool) -> Iterator[str]:
    there = engine.inputs.queues.values()
    yield from queues.amounts(there)
    yield from () if is_spilling else queues.spilled(there)
    yield from queues.index(there)
    yield from queues.floors(there)
    yield from queues.holders(there)
    yield from queues.needed_pages(there)
    yield from queues.kinds(there)
    yield from queues.contents(there)


def _results(engine: Engine) -> Iterator[str]:
    logs, books = list(engine.deliveries), engine.deliveries.keeper.books
    yield from results.positions(logs)
    yield from results.pages_of_logs(logs)
    yield from results.rows_of_logs(logs)
    yield from results.counts_of_groups(logs)
    yield from results.holders_of_pages(logs)
    yield from results.account(books)
    yield from results.accounted(books, _kept_pages(engine))


def _files(engine: Engine, is_spilling: bool) -> Iterator[str]:
    store, pages, started = engine.store, _pages(engine), engine.queries.started
    if started is None or operators.is_idle(started):
        yield from files.bytes_of_pages(store, pages)
    yield from () if is_spilling else files.files_of_pages(store, pages)
    yield from files.files_of_log(store)
    yield from files.tables_read_again(store)
    yield from files.end_of_log(store, engine.journal)


def _kept_pages(engine: Engine) -> set[Page]:
    late = (page for intake in engine.inputs.streams.values() for page in intake.late_log.kept)
    return results.whole_pages(engine.deliveries) | set(late)


def _pages(engine: Engine) -> set[Page]:
    """All pages, with those that were let go and are being read."""
    books = engine.deliveries.keeper.books
    read = {page for page in books._in_memory if page._pins}
    waiting = (page for queue in engine.inputs.queues.values() for page in queue.all_pages)
    return _kept_pages(engine) | read | set(waiting)
