"""Statements are executed: what they change is decided, then in the log, then done; or nothing."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa

from millpond.catalog import (
    Declaration,
    Entry,
    PartitionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    ViewEntry,
    kind_of,
)
from millpond.cql.apply import altered, apply
from millpond.cql.check.statements import check_statement
from millpond.cql.functions_in_use import functions_called_by
from millpond.cql.statements import (
    Action,
    AlterPartition,
    AlterPlan,
    AlterQuery,
    AlterStream,
    Create,
    Delete,
    Drop,
    Explain,
    Insert,
    Punctuate,
    SetOption,
    Show,
    Statement,
    Update,
)
from millpond.cql.text.parse import syntax_tree
from millpond.delivery.transitions import SinkFed
from millpond.errors import CqlError, MillpondError, Position, StateError
from millpond.facade.setting_changes import Whole, refuse_setting, use_setting
from millpond.identities import InputId, StreamId
from millpond.insight.constraints import dropped_rows
from millpond.insight.display import Plan
from millpond.insight.query_plans import plan_text
from millpond.intake.inputs import Coming, is_read_at_once
from millpond.intake.promises import keep_promise
from millpond.intake.pushing import change_relation, change_time, content_of, push
from millpond.intake.relation_changes import changed_rows
from millpond.sharing.arrangement import Stopped, needs
from millpond.sharing.arranging import Arranging
from millpond.sharing.attachments import bad_rows_entry, open_sink_of, open_source_of
from millpond.sharing.beginnings import refuse_what_is_gone
from millpond.sharing.planned import planned
from millpond.sharing.policy_changes import succession
from millpond.sharing.queries import Queries
from millpond.sharing.statement import Dropped, counted, said
from millpond.sharing.window_changes import refuse_unknown, renewal
from millpond.storage.transitions import Transition


class Statements:
    """Decides what statements change, and has it done."""

    def __init__(self, queries: Queries, whole: Whole, show: Callable[[str], pa.Table]) -> None:
        self._queries, self._ground = queries, queries.ground
        self._whole = whole
        self._show = show

    def execute(self, text: str, position: Position, is_anew: bool = False) -> Any:
        """Executes one statement; the answer of SHOW and EXPLAIN, and of DROP CONSTRAINT.

        One that an earlier run with this store has executed is passed over, unless it is meant
        anew.
        """
        ground = self._ground
        with ground.lock:
            ground.check_open()
            if ground.memory.passes_over(text) and not is_anew:
                return None
            tolerate = ground.settings.tolerate
            statement = check_statement(text, position, ground.catalog, tolerate)
        try:
            answer = self._act(statement)
        except CqlError as error:
            raise CqlError(error.message, error.position or position) from None
        except MillpondError as error:
            raise CqlError(str(error), position) from error
        self._whole.validate_if_set()
        return answer

    def declare(self, entry: StreamEntry | RelationEntry | QueryEntry) -> None:
        """Declares something that has no text; for engines whose store does not last."""

        def change(decided: list[Transition]) -> None:
            self._declare(entry)
            self._queries.change(decided)

        with self._ground.lock:
            self._create(entry, change)

    def drop(self, name: str) -> None:
        """Drops a query, view, stream or relation that nobody uses."""
        ground = self._ground
        with ground.lock, ground.deliveries.at_rest(name):
            ground.check_open()
            self.refuse_drop(name)
            self._queries.change([Dropped(name)])

    def restart(self, name: str) -> None:
        """Runs a query that has failed again, from now on."""
        ground, queries = self._ground, self._queries
        with ground.lock:
            ground.check_open()
            entry = ground.query_entry(name)
            if queries.failures.of(name) is None:
                raise StateError(f'query "{entry.name}" has not failed')
            refuse_unknown(queries, entry)
            arranging = Arranging(queries)
            arranging.activate(entry)
            queries.change(arranging.decided())

    def refuse_drop(self, name: str) -> None:
        """Refuses what cannot be dropped."""
        entry = self._ground.catalog.get(name)
        self._try(Drop(kind_of(entry) if entry else "query", name))

    def _try(self, action: Action) -> None:
        """Refuses what the catalog would."""
        apply(action, self._ground.catalog.copy())

    # -- kinds of statements ---------------------------------------------------------------

    def _act(self, statement: Statement) -> Any:
        action = statement.action
        match action:
            case Show():
                return self._show(action.kind)
            case Explain():
                with self._ground.lock:
                    return self._explain(action, statement.text)
            case Delete() | Update():  # these may ask Spark, which must not hold the lock up
                self._modify(action, statement)
            case _:
                with self._ground.lock, self._at_rest(action):
                    self._ground.check_open()
                    self._change(statement)
                    return self._told(action)
        return None

    def _told(self, action: Action) -> pa.Table | None:
        """From when on all tuples are part of a stream again that has a constraint less."""
        match action:
            case AlterStream(drops=str() as dropped):
                stream, name = action.name.lower(), dropped.lower()
                rows = [
                    {"constraint": row["name"], "complete from": row["complete from"]}
                    for row in dropped_rows(self._queries)
                    if (row["stream"].lower(), row["name"].lower()) == (stream, name)
                ]
                return pa.Table.from_pylist(rows) if rows else None
        return None

    def _change(self, statement: Statement) -> None:
        """Does what a statement says, and has it in the log when this returns; or nothing."""
        ground, queries = self._ground, self._queries
        match statement.action:
            case Create(entry) as action:
                functions = needs(functions_called_by(action)) if ground.catalog.functions else []
                first = [*functions, said(statement)]
                if action.replaces:  # a view, of which nothing runs
                    queries.change(first)
                else:
                    self._create(entry, lambda decided: queries.change([*first, *decided]))
            case Insert() as action:
                coming = Coming()
                push(ground.inputs, action.relation, list(action.rows), coming)
                queries.change([counted(statement), *coming])
            case Punctuate() as action:
                coming = Coming()
                told = action.pattern, action.on_violation
                ground.inputs.punctuate(action.stream, *told, coming)
                queries.change([counted(statement), *coming])
            case SetOption() as action if action.key.lower() == "store":
                refuse_setting(queries, action)
                self._whole.move_to(str(action.value))
                self._whole.use(ground.settings.with_option("store", str(action.value)))
                ground.memory.done(statement)
            case action:
                within = queries.watching.measured(action)
                queries.change([said(statement, within), *self._decide(action)])
                self._follow_up(action)

    def _decide(self, action: Action) -> list[Transition]:
        """What a statement changes beside names and settings; what it cannot do is refused."""
        match action:
            case Drop():
                self.refuse_drop(action.name)
            case AlterQuery():
                return self._altering(action)
            case AlterStream():
                self._try(action)
                return self._leaving(action)
            case AlterPlan():
                self._queries.refuse_placing(action.operator)
            case AlterPartition():
                for each in action.adds:
                    self._queries.partitioning.refuse(each)
            case SetOption():
                refuse_setting(self._queries, action)
        return []

    def _leaving(self, action: AlterStream) -> list[Transition]:
        """What a dropped constraint forbids still by which rows were freed; refused if those would
        be missing for ever."""
        entry = self._ground.catalog.get(action.name)
        if action.drops is None or not isinstance(entry, StreamEntry):
            return []
        return self._queries.leaving.decided(entry, action.drops)

    def _follow_up(self, action: Action) -> None:
        """What follows from a statement that is done, and may be decided later as well."""
        match action:
            case AlterStream():
                keep_promise(self._ground.inputs, StreamId(action.name))
            case AlterPlan() | AlterPartition():
                self._queries.runtime.move_queues()
            case SetOption() if action.key.lower() == "durability":
                self._ground.force()
        self._ground.journal.try_to_flush()

    def _create(self, entry: Entry, change: Callable[[list[Transition]], None]) -> None:
        """Declares something, with its source or sink open; if that fails, these are let go."""
        ground = self._ground
        ground.catalog.refuse(entry)
        try:
            match entry:
                case StreamEntry() | RelationEntry():
                    self._create_input(entry, change)
                case QueryEntry():
                    self._create_query(entry, change)
                case ViewEntry() | PartitionEntry():
                    change([])
        except BaseException:
            if ground.catalog.get(entry.name) is None:
                ground.claims.release(entry.name)
            raise

    def _create_input(
        self,
        entry: StreamEntry | RelationEntry,
        change: Callable[[list[Transition]], None],
    ) -> None:
        inputs, decided = self._ground.inputs, list[Transition]()
        source = open_source_of(self._ground, entry)
        if isinstance(entry, RelationEntry) and is_read_at_once(entry):
            decided = content_of(inputs, entry, source)
        bad_rows = bad_rows_entry(entry) if isinstance(entry, StreamEntry) else None
        if bad_rows is None:
            change(decided)
        else:
            self._with_sink(bad_rows, lambda fed: change([*fed, *decided]))
        inputs.read_from(entry, source)

    def _create_query(self, entry: QueryEntry, change: Callable[[list[Transition]], None]) -> None:
        queries = self._queries
        plans = planned(entry, queries.templates)
        if entry.begins is not None:
            refuse_what_is_gone(queries, entry, plans.optimised)

        def create(fed: list[Transition]) -> None:
            with self._kept_for(entry) as filled:
                arranging = Arranging(queries)
                arranging.create(entry, plans)
                change([*fed, *filled, *arranging.decided()])

        self._with_sink(entry, create)

    @contextmanager
    def _kept_for(self, entry: QueryEntry) -> Iterator[list[Transition]]:
        """Has what is kept of a stream be there for a query; what it holds from the start."""
        inputs, filled = self._ground.inputs, list[Transition]()
        if entry.tolerates is not None and inputs.add_kept(entry.tolerates):
            filled = inputs.fill_kept(entry.tolerates)
        try:
            yield filled
        except BaseException:
            self._queries.forget_queues(inputs.forget_kept())
            raise

    def _with_sink(self, entry: QueryEntry, create: Callable[[list[Transition]], None]) -> None:
        """Creates what has results, with its sink open; if that fails, the sink is let go."""
        sink = open_sink_of(self._ground, entry)
        try:
            fed = list[Transition]()
            if sink is not None:
                fed.append(SinkFed(entry.identity, 0, sink.mark()))
            create(fed)
        except BaseException:
            if sink is not None:
                sink.close()
                self._ground.claims.release(entry.name)
            raise
        self._ground.deliveries.of(entry.identity).sink = sink

    def _altering(self, action: AlterQuery) -> list[Transition]:
        """How a query goes on that ALTER changes."""
        ground, queries, arranging = self._ground, self._queries, Arranging(self._queries)
        entry, changed = ground.query_entry(action.name), altered(action, ground.catalog)
        has_failed = queries.failures.of(entry.name) is not None
        if action.plan is not None:
            anew = renewal(queries, entry, changed)
            if anew is not None:
                arranging.begin_anew(changed, anew)
            return arranging.decided()
        if entry.active and not changed.active:
            return [Stopped(entry.identity)]
        if action.active is True and (has_failed or not entry.active):
            refuse_unknown(queries, entry)
            arranging.activate(changed)
        elif entry.on_error != changed.on_error:
            arranging.succeed(changed, succession(queries, entry, changed))
        return arranging.decided()

    def _at_rest(self, action: Action) -> AbstractContextManager[None]:
        """Before anything is changed: whoever writes to a sink that is to be closed has done so."""
        if isinstance(action, Drop):
            bad_rows = self._ground.deliveries.bad_rows(action.name)
            name = action.name if bad_rows is None else bad_rows.entry.name
            return self._ground.deliveries.at_rest(name)
        return nullcontext()

    # -- what is in the log happens --------------------------------------------------------

    def say(self, statement: Statement) -> None:
        """Has names and settings be as a statement says, which can be done."""
        ground, queries = self._ground, self._queries
        match statement.action:
            case Create(entry) as action:
                if action.replaces:
                    self.forget(entry.name)
                self._declare(entry)
            case Drop(_, name):
                self.forget(name)
            case AlterQuery() as action:
                changed = altered(action, ground.catalog)
                apply(action, ground.catalog)
                queries.alter(changed)
                if action.partition is not None:
                    self._whole.use_partitions()
            case AlterStream() as action:
                apply(action, ground.catalog)
                constraint = "" if action.alters is None else action.alters.name
                ground.inputs.use_entry(StreamId(action.name), constraint)
                if action.kept_percent is not None:
                    ground.inputs.kept_because[StreamId(action.name)] = "ALTER STREAM has said so"
            case AlterPlan() as action:
                queries.place_queue(action.operator, action.has_queue)
            case AlterPartition() as action:
                apply(action, ground.catalog)
                self._whole.use_partitions()
            case SetOption() as action:
                use_setting(queries, self._whole, action)
        ground.memory.done(statement)

    def _declare(self, entry: Entry) -> None:
        ground = self._ground
        ground.catalog.add(entry)
        match entry:
            case StreamEntry():
                ground.inputs.add_stream(entry)
                self._queries.declare_bad_rows(entry)
            case RelationEntry():
                ground.inputs.add_relation(entry)
            case QueryEntry():
                if entry.tolerates is not None:
                    ground.inputs.add_kept(entry.tolerates)
                self._queries.declare(entry)
            case PartitionEntry():
                self._whole.use_partitions()

    def checked(self, text: str, position: Position, tolerate: str) -> Statement:
        """What a text says, where queries that say nothing of it tolerate that."""
        return check_statement(text, position, self._ground.catalog, tolerate)

    def count(self, digest: str) -> None:
        """A statement was executed, which changes rows."""
        self._ground.memory.executed[digest] += 1

    def declare_again(self, entry: Entry, text: str, position: Position) -> None:
        """Something is declared, as a statement has said it."""
        self._declare(entry)
        self._ground.memory.declare(Declaration(entry.name, kind_of(entry), text, position))

    def forget(self, name: str) -> None:
        """Something is declared no more; the sink of a query is at rest."""
        ground, key = self._ground, name.lower()
        entry = ground.catalog.get(name)
        ground.catalog.remove(name)
        ground.memory.forget(key)
        try:
            if isinstance(entry, QueryEntry):
                self._queries.remove(entry.identity)
                if entry.partition:
                    self._whole.use_partitions()
            elif isinstance(entry, PartitionEntry):
                self._whole.use_partitions()
            bad_rows = ground.deliveries.bad_rows(key)
            if bad_rows is not None:
                ground.claims.release(bad_rows.entry.name)
                ground.deliveries.remove(bad_rows.entry.identity)
        finally:  # a sink may not come to its end well
            self._queries.forget_queues(ground.inputs.drop(InputId(key)))
            self._queries.forget_queues(ground.inputs.forget_kept())
            ground.claims.release(key)

    def keep(self, stream: str, percent: float, reason: str) -> None:
        """So many tuples of a stream are kept from now on."""
        ground, name = self._ground, StreamId(stream)
        ground.catalog.replace(replace(ground.stream_entry(stream), shed_percent=percent))
        ground.inputs.use_entry(name)
        ground.inputs.kept_because[name] = reason

    def restore(self, executed: dict[str, int]) -> None:
        """Statements were executed so often."""
        self._ground.memory.restore(executed)

    def _modify(self, action: Delete | Update, statement: Statement) -> None:
        """DELETE, and UPDATE as removal and insertion, decided on the present content."""
        ground = self._ground
        while True:
            with ground.lock:
                intake = ground.inputs.relation(action.relation)
                seen, rows = intake.changed_rows, intake.content()
            schema, present = intake.entry.schema, rows.drop_columns(["_te"])
            old, new = changed_rows(action, schema, present, lambda: ground.spark)
            with ground.lock:
                ground.check_open()
                if intake.changed_rows != seen:
                    continue  # somebody else was quicker: look again
                at = change_time(ground.inputs, intake)
                parts = [(old, -1), *([] if new is None else [(new, 1)])]
                coming = Coming()
                change_relation(intake, parts, at, coming)
                self._queries.change([counted(statement), *coming])
                return

    def _explain(self, action: Explain, text: str) -> Plan:
        stage = action.stage.lower()
        if stage == "syntax":
            return Plan(action.query.name, stage, syntax_tree(text))
        return Plan(action.query.name, stage, plan_text(self._queries, action.query, stage))
