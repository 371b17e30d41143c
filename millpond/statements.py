"""Statements are executed: each is checked, done, and in the log when it is done; or nothing is."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from millpond.attachments import open_sink_of, open_source_of
from millpond.beginnings import refuse_what_is_gone
from millpond.catalog import QueryEntry, RelationEntry, StreamEntry, ViewEntry, kind_of
from millpond.checkpoint import needs
from millpond.choices import Choices
from millpond.connectors import Source
from millpond.cql.apply import altered, apply
from millpond.cql.check.statements import check_statement
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
from millpond.display import Plan
from millpond.errors import CqlError, MillpondError, Position
from millpond.function_registry import functions_of
from millpond.memory import noted
from millpond.planned import planned
from millpond.policy_changes import succession
from millpond.query_plans import plan_text
from millpond.recovery import form_of
from millpond.relation_changes import changed_rows
from millpond.setting_changes import set_option
from millpond.window_changes import refuse_unknown, renewal

if TYPE_CHECKING:
    from millpond.engine import Engine


class Statements:
    """Does what statements say to an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def execute(self, text: str, position: Position, is_anew: bool = False) -> Any:
        """Executes one statement; the answer of SHOW and EXPLAIN.

        One that an earlier run with this store has executed is passed over, unless it is meant
        anew.
        """
        engine = self._engine
        with engine.lock:
            engine.check_open()
            if engine.memory.passes_over(text) and not is_anew:
                return None
            statement = check_statement(text, position, engine.catalog)
        try:
            return self._act(statement)
        except CqlError as error:
            raise CqlError(error.message, error.position or position) from None
        except MillpondError as error:
            raise CqlError(str(error), position) from error

    def execute_again(self, text: str, position: Position) -> None:
        """Executes a statement of an earlier run: its files are opened later, if still needed."""
        statement = check_statement(text, position, self._engine.catalog)
        self._apply(statement.action)
        self._engine.memory.done(statement)

    def declare(self, entry: StreamEntry | RelationEntry | QueryEntry) -> None:
        """Declares something that has no text; for engines whose store does not last."""
        with self._engine.lock:
            self._create(Create(entry))

    def drop(self, name: str) -> None:
        """Drops a query, view, stream or relation that nobody uses.

        The lock is held, and if it is a query its sink is at rest.
        """
        engine = self._engine
        entry = engine.catalog.get(name)
        apply(Drop(kind_of(entry) if entry else "query", name), engine.catalog)
        key = name.lower()
        engine.memory.forget(key)
        if isinstance(entry, QueryEntry):
            engine.queries.remove(key)
        engine.queries.forget_queues(engine.inputs.drop(key))
        engine.claims.release(key)

    # -- kinds of statements ---------------------------------------------------------------

    def _act(self, statement: Statement) -> Any:
        action = statement.action
        match action:
            case Show():
                return self._engine.show(action.kind)
            case Explain():
                with self._engine.lock:
                    return self._explain(action, statement.text)
            case Delete() | Update():  # these may ask Spark, which must not hold the lock up
                self._modify(action, statement)
            case _:
                self._change(statement)
        return None

    def _change(self, statement: Statement) -> None:
        """Does what a statement says, and has it in the log when this returns; or nothing."""
        engine, queries = self._engine, self._engine.queries
        with engine.lock, self._at_rest(statement.action):
            before, queries.begun = engine.journal.length, []
            queries.choices = Choices()
            if engine.catalog.functions:
                for record in needs(functions_of(statement.action)):
                    engine.journal.note(**record)
            note = noted(statement, engine.journal)
            try:
                self._apply(statement.action)
            except BaseException:
                engine.journal.take_back(before)
                raise
            if engine.journal.is_durable:
                note["form"] = form_of(engine.graph, queries.begun)
                note |= vars(queries.choices)
            engine.memory.done(statement)
            engine.journal.flush()

    def _at_rest(self, action: Action) -> AbstractContextManager[None]:
        """Before anything is changed: whoever writes to a sink that is to be closed has done so."""
        if isinstance(action, Drop):
            return self._engine.deliveries.at_rest(action.name)
        return nullcontext()

    def _apply(self, action: Action) -> None:
        engine = self._engine
        match action:
            case Create():
                self._create(action)
            case Drop():
                self.drop(action.name)
            case Insert():
                engine.inputs.push(action.relation, list(action.rows))
            case AlterQuery():
                self._alter(action)
            case AlterStream():
                apply(action, engine.catalog)
                engine.inputs.use_delay(action.name.lower())
            case AlterPlan():
                engine.queries.place_queues(action.operator, action.has_queue)
            case SetOption():
                set_option(engine, action)

    def _alter(self, action: AlterQuery) -> None:
        engine, catalog = self._engine, self._engine.catalog
        entry, changed = engine.query_entry(action.name), altered(action, catalog)
        if action.plan is not None:
            anew = renewal(engine, entry, changed)
            apply(action, catalog)
            engine.queries.alter(entry, changed, restarts=False)
            if anew is not None:
                engine.queries.begin_anew(changed, anew)
            return
        has_failed = engine.queries.failures.of(entry.name) is not None
        if action.active is True and (has_failed or not entry.active):
            refuse_unknown(engine, entry)
        way = succession(engine, entry, changed) if entry.on_error != changed.on_error else None
        apply(action, catalog)
        engine.queries.alter(entry, changed, restarts=action.active is True)
        if way is not None:
            engine.queries.succeed(changed, way)

    def _create(self, action: Create) -> None:
        engine, entry = self._engine, action.entry
        match entry:
            case StreamEntry():
                source = self._source_of(entry)
                apply(action, engine.catalog)
                engine.inputs.add_stream(entry, source)
            case RelationEntry():
                source = self._source_of(entry)
                apply(action, engine.catalog)
                self._add_relation(entry, source)
            case QueryEntry():
                plans = planned(entry, engine.queries.templates)
                if entry.begins is not None and not engine.journal.is_replaying:
                    refuse_what_is_gone(engine, entry, plans.optimised)
                sink = None if engine.journal.is_replaying else open_sink_of(engine, entry)
                apply(action, engine.catalog)
                engine.queries.add(entry, plans, sink)
            case ViewEntry():
                apply(action, engine.catalog)

    def _source_of(self, entry: StreamEntry | RelationEntry) -> Source | None:
        return None if self._engine.journal.is_replaying else open_source_of(self._engine, entry)

    def _add_relation(self, entry: RelationEntry, source: Source | None) -> None:
        """Reads the relation's content; if it cannot be read there is no such relation."""
        try:
            self._engine.inputs.add_relation(entry, source)
        except BaseException:
            self.drop(entry.name)
            raise

    def _modify(self, action: Delete | Update, statement: Statement) -> None:
        """DELETE, and UPDATE as removal and insertion, decided on the present content."""
        engine = self._engine
        while True:
            with engine.lock:
                intake = engine.inputs.relation(action.relation)
                seen, rows = intake.changed_rows, intake.content()
            schema, present = intake.entry.schema, rows.drop_columns(["_te"])
            old, new = changed_rows(action, schema, present, lambda: engine.spark)
            with engine.lock:
                engine.check_open()
                if intake.changed_rows != seen:
                    continue  # somebody else was quicker: look again
                at = engine.inputs.change_time(intake)
                noted(statement, engine.journal)
                engine.inputs.change(intake, old, at, -1)
                if new is not None:
                    engine.inputs.change(intake, new, at, 1)
                engine.memory.done(statement)
                engine.journal.flush()
                return

    def _explain(self, action: Explain, text: str) -> Plan:
        stage = action.stage.lower()
        if stage == "syntax":
            return Plan(action.query.name, stage, syntax_tree(text))
        return Plan(action.query.name, stage, plan_text(self._engine, action.query, stage))
