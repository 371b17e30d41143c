"""The engine as the server uses it: statements from outside are confined, results are kept."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from millpond.catalog import QueryEntry, RelationEntry, StreamEntry, kind_of
from millpond.connectors.registry import check_connectors
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.cql.statements import (
    AlterPartition,
    AlterPlan,
    AlterQuery,
    AlterStream,
    Create,
    Drop,
    SetOption,
    Statement,
)
from millpond.cql.text.split import split_statements
from millpond.delivery.results import ResultLog
from millpond.errors import CqlError, CqlWarning, MillpondError, Position
from millpond.facade.engine import Engine
from millpond.scheduling.strategy_text import engine_strategy
from millpond.server.comparing import Comparing
from millpond.server.confinement import Confinement
from millpond.server.faults import RequestError, not_found
from millpond.server.feeds import Feeds
from millpond.server.history import History
from millpond.server.ingest import IdempotencyKeys
from millpond.server.limits import Limits
from millpond.server.logs import tell
from millpond.server.plan_folding import Folding
from millpond.server.plane import Plane
from millpond.sharing.waits import waits

LOOK_SECONDS = 1.0
"""So long it is good who waits."""

MOST_LOOKED_AT = 200
"""So many queries, of those that do not run as one, are asked whether they wait."""

LOGGED_CHARACTERS = 120
"""So much of a statement is said in the log."""


class Service:
    """One engine behind the server."""

    def __init__(
        self, engine: Engine, limits: Limits | None = None, confinement: Confinement | None = None
    ) -> None:
        self.engine = engine
        self.limits = limits or Limits()
        self.confinement = confinement or Confinement(limits=self.limits)
        self.feeds = Feeds(engine, self.limits)
        self.history = History(engine)
        self.plane = Plane(engine)
        self.folding = Folding()
        self.keys = IdempotencyKeys(self.limits.idempotency_keys)
        self.started_seconds = time.time()
        self.is_ready = False
        self.trouble = ""
        """Why the engine's work has stopped and was begun anew, if it has."""
        self.burst: Callable[[], None] | None = None
        """Has the demo's traffic burst, where this is a demo."""
        self.comparing: Comparing | None = None
        """Who has two strategies work on the same burst, where this is a demo."""
        self.previews: set[str] = set()
        """The names of queries that are only tried."""
        self._asks = threading.BoundedSemaphore(self.limits.asks_at_once)
        self._waiting: list[dict[str, Any]] = []
        self._waiting_seconds = -LOOK_SECONDS
        self._changes = threading.Lock()
        """Whoever changes what is declared does so alone: a script is checked as a whole."""
        self.changed = threading.Event()
        """Set whenever what is declared has changed."""

    # -- statements ------------------------------------------------------------------------

    def checked(self, text: str) -> Iterator[Statement]:
        """The statements of a text, each checked when its turn comes; raises ``CqlError``."""
        trial = self.engine.catalog.copy()
        for part, position in self._split(text):
            tolerate = self.engine.settings.tolerate
            statement = check_statement(part, position, trial, tolerate)
            self.confinement.check(statement)
            _check_connectors(statement)
            _check_strategy(self.engine, statement)
            apply(statement.action, trial)
            yield statement

    def _split(self, text: str) -> list[tuple[str, Position]]:
        if len(text) > self.limits.text_characters:
            raise RequestError(
                413, f"a text may have {self.limits.text_characters:,} characters at most"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RequestError(400, "the text has half of a surrogate pair in it") from None
        parts = split_statements(text)
        if len(parts) > self.limits.statements:
            raise RequestError(
                413, f"a text may have {self.limits.statements:,} statements at most"
            )
        return parts

    def execute(self, text: str) -> list[Any]:
        """Executes a script, once all of it was checked; the answers of SHOW and EXPLAIN."""
        return self.execute_and_warn(text)[0]

    def execute_and_warn(self, text: str) -> tuple[list[Any], list[CqlWarning]]:
        """Executes a script; the answers, and warnings of what is hardly meant."""
        with self._changes:
            statements = list(self.checked(text))
            self._refuse_too_many(statements)
            answers = [self._execute(statement) for statement in statements]
            warnings = [each for statement in statements for each in statement.warnings]
            return [answer for answer in answers if answer is not None], warnings

    def _execute(self, statement: Statement) -> Any:
        try:
            answer = self.engine.execute_anew(statement.text)
        except CqlError as error:
            raise CqlError(error.message, statement.position) from None
        except MillpondError as error:
            raise CqlError(str(error), statement.position) from error
        self._note(statement)
        return answer

    def _note(self, statement: Statement) -> None:
        match statement.action:
            case Drop(kind, name) if kind == "query":
                self.feeds.dropped(name)
            case SetOption(key, value):
                self.history.mark(f"{key} = {value}")
        changing = Create | Drop | AlterQuery | AlterStream | AlterPlan | AlterPartition
        changing |= SetOption
        if isinstance(statement.action, changing):
            self.changed.set()
            first, *_ = statement.text.strip().splitlines()
            tell(logging.INFO, "statement", f"executed: {first[:LOGGED_CHARACTERS]}")

    def _refuse_too_many(self, statements: list[Statement]) -> None:
        actions = [each.action for each in statements]
        new = sum(isinstance(a, Create) and isinstance(a.entry, QueryEntry) for a in actions)
        present = len(list(self.engine.catalog.of_kind(QueryEntry)))
        if new and present + new > self.limits.queries:
            raise RequestError(
                429,
                f"{self.limits.queries:,} queries are the most there can be; DROP some, or serve "
                "with --queries N",
            )

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A one-time question is worked on, one of the few at once."""
        if not self._asks.acquire(timeout=self.limits.ask_seconds):
            raise RequestError(429, "too many questions at once; come back in a while")
        try:
            yield
        finally:
            self._asks.release()

    def waiting(self) -> list[dict[str, Any]]:
        """The queries that wait for time, looked at once a second for all who ask."""
        now = time.monotonic()
        if now - self._waiting_seconds > LOOK_SECONDS:
            self._waiting_seconds = now
            with self.engine.held():
                found = list(waits(self.engine.queries, MOST_LOOKED_AT))
            self._waiting = [
                {"query": name, "words": str(wait), **asdict(wait)} for name, wait in found
            ]
        return self._waiting

    # -- what is there ---------------------------------------------------------------------

    def entry(self, name: str, kind: str) -> Any:
        """What is declared under a name, if it is of a kind."""
        entry = self.engine.catalog.get(name)
        if entry is None or kind_of(entry) != kind:
            raise not_found(f'no {kind} "{name[:100]}"')
        return entry

    def query(self, name: str) -> QueryEntry:
        """A registered query."""
        entry: QueryEntry = self.entry(name, "query")
        return entry

    def registered(self) -> list[QueryEntry]:
        """The registered queries, in order, without those that are only tried."""
        entries = self.engine.catalog.of_kind(QueryEntry)
        return [entry for entry in entries if entry.name not in self.previews]

    def stream(self, name: str) -> StreamEntry:
        """A declared stream."""
        entry: StreamEntry = self.entry(name, "stream")
        return entry

    def relation(self, name: str) -> RelationEntry:
        """A declared relation."""
        entry: RelationEntry = self.entry(name, "relation")
        return entry

    def log(self, query: str) -> ResultLog:
        """What a query has put out."""
        return self.engine.deliveries.of(self.query(query).name)


def _check_connectors(statement: Statement) -> None:
    try:
        check_connectors(getattr(statement.action, "entry", None))
    except MillpondError as error:
        raise CqlError(str(error), statement.position) from None


def _check_strategy(engine: Engine, statement: Statement) -> None:
    action = statement.action
    if not isinstance(action, SetOption):
        return
    try:
        settings = engine.settings.with_option(action.key, str(action.value))
        engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
    except CqlError as error:
        raise CqlError(error.message, statement.position) from None
    except MillpondError as error:
        raise CqlError(str(error), statement.position) from None
