"""Statements are executed: each is checked, done, and in the log when it is done; or nothing is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import pyarrow as pa

from millpond.catalog import QueryEntry, RelationEntry, StreamEntry, ViewEntry, kind_of
from millpond.connectors import Source
from millpond.cql.apply import altered, apply
from millpond.cql.check.statements import check_statement
from millpond.cql.functions_in_use import functions_called_by
from millpond.cql.statements import (
    Action,
    AlterPlan,
    AlterQuery,
    AlterStream,
    Create,
    Delete,
    Drop,
    Explain,
    Insert,
    SetOption,
    Show,
    Statement,
    Update,
)
from millpond.cql.text.parse import syntax_tree
from millpond.durability.checkpoint import needs
from millpond.durability.recovery import form_of
from millpond.errors import CqlError, MillpondError, Position, StateError
from millpond.facade.setting_changes import Whole, setting
from millpond.insight.display import Plan
from millpond.insight.query_plans import plan_text
from millpond.intake.inputs import Coming
from millpond.intake.relation_changes import changed_rows
from millpond.sharing.attachments import open_sink_of, open_source_of
from millpond.sharing.beginnings import refuse_what_is_gone
from millpond.sharing.choices import Choices
from millpond.sharing.planned import planned
from millpond.sharing.policy_changes import succession
from millpond.sharing.queries import Queries
from millpond.sharing.window_changes import refuse_unknown, renewal
from millpond.storage.log import Record
from millpond.storage.statement_memory import noted


def _begins_anew(action: AlterQuery) -> bool:
    """Whether a query is begun, by choices that the log is to tell."""
    return action.plan is not None or action.on_error is not None or action.active is True


def _nothing_more() -> None:
    """What was to be done is done when what is coming has come."""


class Statements:
    """Does what statements say to an engine."""

    def __init__(self, queries: Queries, whole: Whole, show: Callable[[str], pa.Table]) -> None:
        self._queries, self._ground = queries, queries.ground
        self._whole = whole
        self._show = show

    def execute(self, text: str, position: Position, is_anew: bool = False) -> Any:
        """Executes one statement; the answer of SHOW and EXPLAIN.

        One that an earlier run with this store has executed is passed over, unless it is meant
        anew.
        """
        ground = self._ground
        with ground.lock:
            ground.check_open()
            if ground.memory.passes_over(text) and not is_anew:
                return None
            statement = check_statement(text, position, ground.catalog)
        try:
            answer = self._act(statement)
        except CqlError as error:
            raise CqlError(error.message, error.position or position) from None
        except MillpondError as error:
            raise CqlError(str(error), position) from error
        self._whole.validate_if_set()
        return answer

    def execute_again(self, text: str, position: Position) -> None:
        """Executes a statement of an earlier run: its files are opened later, if still needed."""
        statement = check_statement(text, position, self._ground.catalog)
        self._apply(statement.action)
        self._ground.memory.done(statement)

    def declare(self, entry: StreamEntry | RelationEntry | QueryEntry) -> None:
        """Declares something that has no text; for engines whose store does not last."""
        with self._ground.lock:
            self._create(Create(entry))

    def drop(self, name: str) -> None:
        """Drops a query, view, stream or relation that nobody uses.

        The lock is held, and if it is a query its sink is at rest.
        """
        ground = self._ground
        entry = ground.catalog.get(name)
        apply(self._drop_of(name), ground.catalog)
        key = name.lower()
        ground.memory.forget(key)
        try:
            if isinstance(entry, QueryEntry):
                self._queries.remove(key)
        finally:  # a sink may not come to its end well
            self._queries.forget_queues(ground.inputs.drop(key))
            ground.claims.release(key)

    def drop_and_log(self, name: str) -> None:
        """Drops something that nobody uses, and has that in the log."""
        ground = self._ground
        with ground.lock, ground.deliveries.at_rest(name):
            ground.check_open()
            self.refuse_drop(name)
            with ground.journal.ahead():
                ground.journal.note("drop", name=name)
            self.drop(name)
            ground.journal.try_to_flush()

    def restart(self, name: str) -> None:
        """Runs a query that has failed again, from now on."""
        ground, queries = self._ground, self._queries
        with ground.lock:
            ground.check_open()
            entry = ground.query_entry(name)
            if queries.failures.of(name) is None:
                raise StateError(f'query "{entry.name}" has not failed')
            refuse_unknown(queries, entry)
            if not ground.journal.is_replaying:
                queries.choices = Choices()
            before, note = ground.journal.length, ground.journal.note("restart", name=entry.name)
            try:
                queries.restart(entry)
            except BaseException:
                ground.journal.take_back(before)
                raise
            note |= vars(queries.choices)
            ground.journal.flush_what_is_done(f"RESTART of {entry.name}")

    def refuse_drop(self, name: str) -> None:
        """Refuses what cannot be dropped."""
        self._try(self._drop_of(name))

    def _drop_of(self, name: str) -> Drop:
        entry = self._ground.catalog.get(name)
        return Drop(kind_of(entry) if entry else "query", name)

    def _try(self, action: Action) -> None:
        """Refuses what the catalog would."""
        apply(action, self._ground.catalog.copy())

    def withdraw(self, name: str, text: str) -> None:
        """Takes a CREATE back of which it turned out that it cannot be done."""
        self.drop(name)
        self._ground.memory.discount(text)

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
                self._change(statement)
        return None

    def _change(self, statement: Statement) -> None:
        """Does what a statement says, and has it in the log when this returns; or nothing."""
        ground, queries = self._ground, self._queries
        with ground.lock, self._at_rest(statement.action):
            ground.check_open()
            queries.begun, queries.choices = [], Choices()
            match statement.action:
                case Create():
                    self._create_and_log(statement, statement.action)
                case AlterQuery() as action if _begins_anew(action):
                    self._alter_and_log(statement, action)
                case _:
                    self._log_and_do(statement)

    def _log_and_do(self, statement: Statement) -> None:
        """First a statement is in the log; nothing goes wrong with it from then on."""
        ground = self._ground
        with ground.inputs.ahead() as coming:
            noted(statement, ground.journal)
            do = self._checked(statement.action, coming)
        try:
            do()
        finally:
            ground.memory.done(statement)
        ground.journal.try_to_flush()

    def _create_and_log(self, statement: Statement, action: Create) -> None:
        """What the log says of a query follows from how it was begun: if the log cannot say it, or
        it could not be begun, it is dropped again, and the log says both."""
        ground, before = self._ground, self._ground.journal.length
        if ground.catalog.functions:
            for record in needs(functions_called_by(action)):
                ground.journal.note(**record)
        note = noted(statement, ground.journal)
        try:
            self._create(action)
            self._complete(note)
            ground.journal.flush()
        except BaseException:
            self._undo(statement, action, note, before)
            raise
        ground.memory.done(statement)

    def _undo(self, statement: Statement, action: Create, note: Record, before: int) -> None:
        ground, name = self._ground, action.entry.name
        found = ground.catalog.get(name)
        if found is not action.entry:  # it was refused before anything was done
            ground.journal.take_back(before)
            if found is None:
                ground.claims.release(name)
            return
        if ground.journal.is_durable:
            note |= vars(self._queries.choices)
        self.drop(name)
        ground.journal.note("undone", name=name, text=statement.text)
        ground.journal.try_to_flush()

    def _alter_and_log(self, statement: Statement, action: AlterQuery) -> None:
        """A query that begins anew is no longer what it was: it stays so if the log cannot be
        written, and is there as soon as it can."""
        ground, before = self._ground, self._ground.journal.length
        note = noted(statement, ground.journal)
        try:
            self._alter(action)
        except BaseException:
            ground.journal.take_back(before)
            raise
        self._complete(note)
        ground.memory.done(statement)
        ground.journal.flush_what_is_done(f"ALTER QUERY {action.name}")

    def _complete(self, note: Record) -> None:
        """Adds what was chosen for the queries that a statement has begun."""
        ground, queries = self._ground, self._queries
        if ground.journal.is_durable:
            note["form"] = form_of(queries.graph, queries.begun)
            note |= vars(queries.choices)

    def _at_rest(self, action: Action) -> AbstractContextManager[None]:
        """Before anything is changed: whoever writes to a sink that is to be closed has done so."""
        if isinstance(action, Drop):
            return self._ground.deliveries.at_rest(action.name)
        return nullcontext()

    def _apply(self, action: Action) -> None:
        """Does what a statement of an earlier run says."""
        match action:
            case Create():
                self._create(action)
            case AlterQuery():
                self._alter(action)
            case _:
                self._checked(action, [])()

    def _checked(self, action: Action, coming: Coming) -> Callable[[], None]:
        """What does what a statement says, and cannot fail; what could is found out now."""
        ground = self._ground
        match action:
            case Drop():
                self.refuse_drop(action.name)
                return partial(self.drop, action.name)
            case Insert():
                ground.inputs.push(action.relation, list(action.rows), coming)
            case AlterQuery():
                self._try(action)
                return partial(self._alter, action)
            case AlterStream():
                self._try(action)
                return partial(self._delay, action)
            case AlterPlan():
                return self._queries.placing(action.operator, action.has_queue)
            case SetOption():
                return setting(self._queries, self._whole, action)
        return _nothing_more

    def _delay(self, action: AlterStream) -> None:
        apply(action, self._ground.catalog)
        self._ground.inputs.use_delay(action.name.lower())

    def _alter(self, action: AlterQuery) -> None:
        ground, queries = self._ground, self._queries
        catalog = ground.catalog
        entry, changed = ground.query_entry(action.name), altered(action, catalog)
        if action.plan is not None:
            anew = renewal(queries, entry, changed)
            apply(action, catalog)
            queries.alter(entry, changed, restarts=False)
            if anew is not None:
                queries.begin_anew(changed, anew)
            return
        has_failed = queries.failures.of(entry.name) is not None
        if action.active is True and (has_failed or not entry.active):
            refuse_unknown(queries, entry)
        way = succession(queries, entry, changed) if entry.on_error != changed.on_error else None
        apply(action, catalog)
        queries.alter(entry, changed, restarts=action.active is True)
        if way is not None:
            queries.succeed(changed, way)

    def _create(self, action: Create) -> None:
        ground, entry = self._ground, action.entry
        match entry:
            case StreamEntry():
                source = self._source_of(entry)
                apply(action, ground.catalog)
                ground.inputs.add_stream(entry, source)
            case RelationEntry():
                source = self._source_of(entry)
                apply(action, ground.catalog)
                ground.inputs.add_relation(entry, source)
            case QueryEntry():
                plans = planned(entry, self._queries.templates)
                if entry.begins is not None and not ground.journal.is_replaying:
                    refuse_what_is_gone(self._queries, entry, plans.optimised)
                sink = None if ground.journal.is_replaying else open_sink_of(ground, entry)
                apply(action, ground.catalog)
                self._queries.add(entry, plans, sink)
            case ViewEntry():
                apply(action, ground.catalog)

    def _source_of(self, entry: StreamEntry | RelationEntry) -> Source | None:
        return None if self._ground.journal.is_replaying else open_source_of(self._ground, entry)

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
                at = ground.inputs.change_time(intake)
                parts = [(old, -1), *([] if new is None else [(new, 1)])]
                with ground.inputs.ahead() as coming:
                    noted(statement, ground.journal)
                    ground.inputs.change(intake, parts, at, coming)
                ground.memory.done(statement)
                return

    def _explain(self, action: Explain, text: str) -> Plan:
        stage = action.stage.lower()
        if stage == "syntax":
            return Plan(action.query.name, stage, syntax_tree(text))
        return Plan(action.query.name, stage, plan_text(self._queries, action.query, stage))
