"""Going on after a restart: the log of a store is read, and everything is as it was.

Statements are executed again, without opening files; pages, heartbeats, steps and failures are
taken from the log. Steps are deterministic and what was not committed is invisible, so that is all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from millpond.catalog import Declaration, QueryEntry, RelationEntry, StreamEntry
from millpond.cql.apply import apply
from millpond.cql.statements import AlterStream
from millpond.delivery.group_results import GroupLog, SliceOfPage, Tags
from millpond.delivery.results import ResultLog
from millpond.durability.checkpoint import entry_again
from millpond.errors import Position, StateError
from millpond.failures import Failure
from millpond.planning.convergence import Merge
from millpond.planning.parts import Cut
from millpond.planning.physical import Graph, form
from millpond.sharing.attachments import open_sink_of, open_source_of
from millpond.sharing.choices import Choices
from millpond.sharing.containments import Data
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Membership
from millpond.sharing.queries import Queries
from millpond.sharing.shared_joins import Numbers
from millpond.sharing.shared_totals import Summed
from millpond.storage.kept_pages import PageLog, Repaging
from millpond.storage.log import Record
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction


def form_of(graph: Graph, identities: Iterable[str]) -> dict[str, str]:
    """The canonical plans of operators, shortened: what the log's names of them stand for."""
    return {each: form(graph.operators[each], graph.epochs[each]) for each in identities}


class Doing(Protocol):
    """Who does again what statements have done."""

    def execute_again(self, text: str, position: Position) -> None:
        """Executes a statement of an earlier run."""
        ...

    def withdraw(self, name: str, text: str) -> None:
        """Takes a CREATE back of which it turned out that it cannot be done."""
        ...

    def drop_and_log(self, name: str) -> None:
        """Drops something that nobody uses."""
        ...

    def restart(self, name: str) -> None:
        """Runs a query that has failed again."""
        ...


def recover(queries: Queries, statements: Doing) -> None:
    """Has queries go on where an earlier run with their store has ended."""
    replay, ground = Replay(queries, statements), queries.ground
    replay.act_on_all()
    check_files(queries)
    ground.store.remove_garbage(file_names(queries))
    for key, entry in ground.catalog.entries.items():
        match entry:
            case StreamEntry() | RelationEntry():
                _resume_source(ground, key, entry)
            case QueryEntry():
                sink = open_sink_of(ground, entry, replay.marks.get(key))
                ground.deliveries.of(key).sink = sink
                ground.deliveries.has_news(key)
    queries.purge_again()
    ground.journal.flush()


def _resume_source(ground: Ground, key: str, entry: StreamEntry | RelationEntry) -> None:
    is_read_once = isinstance(entry, RelationEntry) and not entry.has_changes
    has_ended = ground.inputs.read_rows.get(key, 0) < 0
    if entry.source.name != "push" and not is_read_once and not has_ended:
        ground.inputs.resume(key, open_source_of(ground, entry))


def check_files(queries: Queries) -> None:
    """Refuses a store whose files are not as the log says.

    What steps read is read through; results and late tuples are when somebody asks for them, and
    until then only their lengths are looked at.
    """
    store, needed = queries.ground.store, step_file_names(queries)
    store.refuse(store.faults(needed) | store.faults(file_names(queries) - needed, is_whole=False))


def step_file_names(queries: Queries) -> set[str]:
    """The files that are needed to go on: what waits in queues and for sinks, and states."""
    ground = queries.ground
    pages = (page for queue in ground.inputs.queues.values() for page in queue.all_pages)
    to_sinks = (page for log in ground.deliveries for page in log.waiting)
    return {name for page in (*pages, *to_sinks) for name in page.names} | _state_names(queries)


def file_names(queries: Queries) -> set[str]:
    """The files of the store that are needed."""
    ground = queries.ground
    return ground.inputs.file_names() | ground.deliveries.file_names() | _state_names(queries)


def _state_names(queries: Queries) -> set[str]:
    running = queries.runtime.running.values() if queries.has_runtime else ()
    return {name for each in running if each.state for name in each.state.names}


class Replay:
    """Acts on the records of a log, one after the other."""

    def __init__(self, queries: Queries, statements: Doing) -> None:
        self._queries, self._ground = queries, queries.ground
        self._statements = statements
        settings = queries.ground.settings
        self.given: dict[str, Any] = {
            "tick": settings.tick_microseconds,
            "seed": settings.seed,
            "linear": settings.linear,
            "sharing": settings.sharing,
        }
        """The settings that times, samples and plans depend on."""
        self.runs = 0
        self._gone: dict[str, GroupLog] = {}
        self.marks: dict[str, Any] = {}
        """What each query's sink contains, as it said itself."""

    def act_on_all(self) -> None:
        """Has the engine be as the log says, with its files still to be looked at."""
        queries, journal = self._queries, self._ground.journal
        keeps = queries.keeps_results
        journal.is_replaying = True
        for record in journal.records():
            _ = queries.runtime
            self.act(record)
        journal.is_replaying = False
        self._ground.store.replayed()
        queries.failures.told()
        self._ground.memory.recovered()
        if queries.has_runtime:
            queries.runtime.free()
        self._ground.store.run = self.runs + 1
        self._ground.opened = journal.note(**self.opening(keeps))

    def sinks(self) -> dict[str, tuple[int, Any]]:
        """How far each query's sink is, and what it contains."""
        logs = self._ground.deliveries
        return {name: (logs.of(name).sink_position, mark) for name, mark in self.marks.items()}

    def opening(self, keeps: bool) -> Record:
        """What the log says of the run that begins now."""
        self._queries.keep_results(keeps)
        return {"kind": "open", "run": self.runs + 1, **self.given, "keeps": keeps}

    def act(self, record: Record) -> None:
        """Does what a record says."""
        facts = dict(record)
        getattr(self, f"_{facts.pop('kind')}")(**facts)

    def _open(self, run: int, keeps: bool, **given: Any) -> None:
        self.runs = run
        self._queries.keep_results(keeps)
        for name, now in self.given.items():
            if given.get(name) != now:
                raise StateError(
                    f"the store was opened with {name} = {given.get(name)}, now with {name} = "
                    f"{now}; set the same or another store"
                )

    def _statement(
        self,
        text: str,
        at: list[int],
        changes_rows: bool,
        form: dict[str, str] | None = None,
        **chosen: Any,
    ) -> None:
        self._queries.choices = Choices(**chosen)
        if changes_rows:  # its pages follow
            self._ground.memory.count(text)
        else:
            self._statements.execute_again(text, Position(*at))
        graph = self._queries.graph
        if form and form_of(graph, form.keys() & graph.operators.keys()) != form:
            raise _planned_otherwise(text)

    def _needs(self, functions: list[dict[str, str]]) -> None:
        registered = self._ground.catalog.functions
        for facts in functions:
            function = registered.get(facts["name"])
            if function is None:
                raise StateError(
                    f"the store has queries that call {facts['signature']}, which is not "
                    "registered: give it to Engine(functions=…), or register it before SET store"
                )
            if function.digest != facts["digest"] or str(function) != facts["signature"]:
                raise StateError(
                    f"the store has queries that call {facts['signature']}, and {function} is "
                    "registered with other code or types: register the function that it was, or "
                    "begin anew with another store"
                )

    def _undone(self, name: str, text: str) -> None:
        self._statements.withdraw(name, text)

    def _drop(self, name: str) -> None:
        self._statements.drop_and_log(name)

    def _restart(self, name: str, **chosen: Any) -> None:
        self._queries.choices = Choices(**chosen)
        self._statements.restart(name)

    def _files(self, made: list[list[Any]], gone: list[str]) -> None:
        self._ground.store.replay(made, gone)

    # -- inputs ----------------------------------------------------------------------------

    def _page(self, queue: str, page: dict[str, Any]) -> None:
        self._ground.inputs.queues[queue].add(self._referred(page))

    def _stream(
        self,
        name: str,
        largest: int | None,
        arrived: int,
        late_count: int,
        heartbeat: int,
        late: dict[str, Any] | None = None,
    ) -> None:
        intake = self._ground.inputs.streams[name]
        intake.largest, intake.arrived, intake.late_count = largest, arrived, late_count
        intake.queue.advance(heartbeat)
        if late is not None:
            intake.late_log.append(self._referred(late))

    def _relation(self, name: str, last_change: int, changed_rows: int) -> None:
        intake = self._ground.inputs.relations[name]
        intake.last_change, intake.changed_rows = last_change, changed_rows

    def _heartbeat(self, queue: str, time: int) -> None:
        self._ground.inputs.queues[queue].advance(time)
        for relation in self._ground.inputs.relations.values():
            relation.reader.cursor = relation.queue.heartbeat

    def _moved(self) -> None:
        self._ground.inputs.moved()

    def _source(self, name: str, rows: int) -> None:
        self._ground.inputs.read_rows[name] = rows

    # -- steps -----------------------------------------------------------------------------

    def _step(
        self,
        operator: str,
        until: int,
        page: dict[str, Any] | None,
        state: Any = None,
        tags: str | None = None,
    ) -> None:
        referred = None if page is None else self._referred(page)
        if referred is not None and tags is not None:
            log = self._queries.log_of_output(operator)
            if isinstance(log, GroupLog):
                log.know(referred, Tags.from_json(tags))
        self._queries.runtime.replay(operator, until, referred, state)

    def _skip(self, operator: str, until: int) -> None:
        self._queries.runtime.replay(operator, until, None, None)

    def _cut(self, part: str, is_cut: bool, at: int) -> None:
        self._queries.runtime.cut(Cut(part, is_cut, at))

    def _merge(self, queue: str, into: str, at: int) -> None:
        merge = Merge(queue, into, at)
        self._queries.runtime.merge(merge)
        self._queries.merged(merge)

    def _compact(
        self, queue: str, page: dict[str, Any] | None, replaced: list[str], until: int | None
    ) -> None:
        target = self._ground.inputs.queues[queue]
        names = set(replaced)
        pages = tuple(each for each in target.pages if names.intersection(each.names))
        new = None if page is None else self._referred(page)
        target.compact(Compaction(new, pages, until))
        target.free()

    def _sink(self, query: str, position: int, mark: Any) -> None:
        self.marks[query] = mark
        log = self._ground.deliveries.of(query)
        log.sink_position = position
        log.forget()

    def _came(self, query: str, elements: int) -> None:
        self._ground.deliveries.of(query).came = elements

    def _let_go(self, query: str | None = None, late: str | None = None, **facts: int) -> None:
        self._page_log(query, late).let_go_again(**facts)

    def _repaged(
        self,
        place: int,
        count: int,
        page: dict[str, Any] | None,
        is_content: bool,
        passed: dict[str, Any] | None,
        query: str | None = None,
        late: str | None = None,
        tags: str | None = None,
        passed_tags: str | None = None,
    ) -> None:
        log = self._page_log(query, late)
        new, gone = (None if each is None else self._referred(each) for each in (page, passed))
        for known, text in ((new, tags), (gone, passed_tags)):
            if isinstance(log, GroupLog) and known is not None and text is not None:
                log.know(known, Tags.from_json(text))
        log.repage(Repaging(place, count, new, is_content, gone))

    def _page_log(self, query: str | None, late: str | None) -> PageLog:
        if late is not None:
            return self._ground.inputs.streams[late].late_log
        return self._ground.deliveries.of(query or "")

    def _taken_back(self, query: str, page: dict[str, Any], at: int) -> None:
        self._ground.deliveries.put_out(query, self._referred(page), at)

    def _pushed(self, keys: list[str | list[str]]) -> None:
        """Earlier versions have not told which input a key was for."""
        pairs = (("", key) if isinstance(key, str) else (key[0], key[1]) for key in keys)
        self._ground.inputs.restore_keys(pairs)

    def _failed(self, failures: list[dict[str, Any]]) -> None:
        found = [Failure(**failure | {"rows": tuple(failure["rows"])}) for failure in failures]
        self._queries.fail(found, StateError(found[0].error))

    # -- a log that begins with a checkpoint -----------------------------------------------

    def _epochs(self, **facts: Any) -> None:
        self._ground.inputs.restore_epochs(**facts)

    def _graph(self, operators: dict[str, str], next: int, **known: Any) -> None:  # noqa: A002
        self._queries.graph.restore_numbers(operators, next, **known)

    def _query(
        self,
        name: str,
        text: str,
        at: list[int],
        weight: float,
        active: bool,
        epoch: int | None,
        member: Membership | None,
        is_late_alone: bool | None,
        on_error: str,
        contained: Data,
        begins: int | None,
        joined: Numbers | None = None,
        summed: Summed | None = None,
    ) -> None:
        declared = Declaration(name, "query", text, Position(*at))
        altered: dict[str, Any] = {"weight": weight, "active": active, "on_error": on_error}
        key = name.lower()
        choices = Choices({key: contained}, {key: joined or {}}, {key: summed or []})
        try:
            entry = entry_again(self._ground.catalog, declared, **altered)
            self._queries.register_again(
                entry, declared, epoch, member, is_late_alone, choices, begins
            )
        except StateError:
            raise _planned_otherwise(text) from None

    def _delay(self, name: str, ticks: int) -> None:
        apply(AlterStream(name, ticks), self._ground.catalog)
        self._ground.inputs.use_delay(name.lower())

    def _late(self, name: str, pages: list[dict[str, Any]]) -> None:
        for page in pages:
            self._ground.inputs.streams[name].late_log.append(self._referred(page))

    def _queue(
        self,
        name: str,
        heartbeat: int,
        freed_until: int,
        pages: list[tuple[dict[str, Any], int]],
        base: dict[str, Any] | None,
        base_time: int,
    ) -> None:
        referred = [(self._referred(page), floor) for page, floor in pages]
        base_page = None if base is None else self._referred(base)
        queue = self._ground.inputs.queues[name]
        queue.restore(heartbeat, freed_until, referred, base_page, base_time)
        for relation in self._ground.inputs.relations.values():
            relation.reader.cursor = relation.queue.heartbeat

    def _operator(
        self, name: str, cursor: int, state: Any, since: dict[str, int] | None = None
    ) -> None:
        self._queries.runtime.replay(name, cursor, None, state)
        self._queries.runtime.running[name].read_since(since or {})

    def _queues(self, by_hand: dict[str, bool]) -> None:
        for operator, has_queue in by_hand.items():
            self._queries.place_queues(operator, has_queue)

    def _results(
        self,
        query: str,
        pages: list[dict[str, Any]],
        waiting: list[dict[str, Any]],
        content: list[dict[str, Any]],
        counts: list[int] | None = None,
        gone: list[int] | None = None,
        tags: list[str] | None = None,
        **facts: Any,
    ) -> None:
        log = self._ground.deliveries.of(query)
        known = {
            json.dumps(reference): self._page_or_slice(reference, log)
            for reference in {
                json.dumps(each): each for each in (*pages, *waiting, *content)
            }.values()
        }
        kept, left, passed = (
            [known[json.dumps(each)] for each in some] for some in (pages, waiting, content)
        )
        log.restore(kept, left, passed, **facts)
        if isinstance(log, GroupLog):
            log.restore_facts(counts or [], gone or [], tags or [])

    def _page_or_slice(self, reference: dict[str, Any], own: ResultLog) -> Page:
        if "group" not in reference:
            return self._page_of(own, reference)
        log = self._group_log(reference["group"], own)
        page = self._page_of(log, reference["page"])
        return SliceOfPage(log, page, reference["number"], reference["rows"])

    def _page_of(self, log: ResultLog, reference: dict[str, Any]) -> Page:
        """A page of a log; of a group's a query may have a slice already."""
        known = log.page_in(tuple(reference["names"])) if isinstance(log, GroupLog) else None
        return known or self._referred(reference)

    def _group_log(self, name: str, own: ResultLog) -> GroupLog:
        """The log of a group; of one that is gone those know who have parts of its pages."""
        group = self._queries.groups.get(name)
        if group is not None:
            return group.log
        if name not in self._gone:
            entry = replace(own.entry, name=name)
            self._gone[name] = GroupLog(entry, own.tick_microseconds, own.in_timestamps)
        return self._gone[name]

    def _restored(self, executed: dict[str, int]) -> None:
        self._ground.memory.restore(executed)
        try:
            self._queries.graph.restored()
        except StateError as error:
            raise _planned_otherwise(str(error)) from None

    def _referred(self, reference: dict[str, Any]) -> Page:
        return Page.referred(self._ground.store, reference)


def _planned_otherwise(text: str) -> StateError:
    return StateError(
        f"the store was written by a version of Millpond that plans this differently:\n  {text}\n"
        "open it with that version, or begin anew with another store"
    )
