"""What the shell does with what is typed: statements in, results out.

A bare SELECT runs at once over all there is from its start, in an engine of its own, and is
forgotten. CREATE QUERY registers: `\\run` reads the sources, and INSERT, DELETE, UPDATE and
`\\push` show directly what they change.
"""

import sys
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from millpond.catalog import Catalog, QueryEntry
from millpond.cli.completion import HERE, names_of
from millpond.cli.describing import describe_entry, list_entries
from millpond.cli.faults import Script, warn
from millpond.cli.feeding import pages_of
from millpond.cli.notices import say_what_has_no_end
from millpond.cli.progress import ProgressDisplay, ended_by_printing
from millpond.cli.results import TablePrinter
from millpond.cli.running import print_answers, print_results
from millpond.cli.speaking import say, surviving
from millpond.cli.typed import Typed
from millpond.cli.words import fed, words_for
from millpond.cql.check.statements import check_statement
from millpond.cql.statements import (
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
from millpond.cql.text.split import split_statements
from millpond.errors import InputError, Position
from millpond.facade.engine import Engine
from millpond.settings import Settings, parse_seconds

HELP = """\
  statement;          run it; it may take several lines
  \\d                  what is declared
  \\d NAME             the columns and the definition of one thing
  \\run [TIME]         read the sources of the registered queries, to their end or for so long
  \\push NAME FILE     feed a stream or relation from a CSV, JSON or Parquet file
  \\advance NAME TIME  promise that nothing of a stream at or before a time will follow
  \\timing             show how long statements take, or stop showing it
  \\?                  this help
  \\q                  leave (also Ctrl-D)
Ctrl-C stops a running query or discards what is typed.
A bare SELECT answers once, over all there is from its start, and is not registered; CREATE QUERY
name AS SELECT … registers a query, which goes on answering."""

WAY_OUT = "Ctrl-C stops it"


class Shell:
    """What the shell knows and does; reading lines is done elsewhere."""

    commands: tuple[str, ...] = HERE

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine: Engine | None = None
        self._typed = Typed()
        self._printer = TablePrinter(lambda query, ts: self._opened().format_time(query, ts))
        self._display = ProgressDisplay()
        self._timing = False
        self.wants_to_leave = False
        self._commands: dict[str, Callable[[str], None]] = {
            "\\q": self._leave,
            "\\d": self._describe,
            "\\run": self._run,
            "\\push": self._push,
            "\\advance": self._advance,
            "\\timing": self._switch_timing,
            "\\?": lambda _: say(HELP),
        }

    @property
    def catalog(self) -> Catalog:
        """The names declared so far."""
        return self._opened().catalog

    def names(self) -> list[str]:
        """The names declared so far, and their columns."""
        return names_of(self.catalog)

    def handle(self, text: str) -> None:
        """Runs what was typed: a command or statements; faults are printed."""
        with surviving(text, lambda: self._timing), ended_by_printing():
            self._command_or_statements(text)

    def _command_or_statements(self, text: str) -> None:
        if text.strip().startswith("\\"):
            self._command(text.strip())
        else:
            self._statements(text)

    def close(self) -> None:
        """Stops the engine."""
        if self._engine is not None:
            self._engine.close()

    def _opened(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._settings)
            self._prepare(self._engine)
            self._take_up(self._engine)
        return self._engine

    def _prepare(self, engine: Engine) -> None:
        engine.ground.claims.keep_stdin("the shell")
        engine.ground.lazy_spark.while_starting = partial(self._display.waiting_for, "Spark")

    def _take_up(self, engine: Engine) -> None:
        """What the store has from earlier, bare SELECTs see too; what is typed again is meant."""
        for text, _ in engine.memory.settings.values():
            self._typed.declare(text)
        for declared in engine.memory.living():
            if declared.kind != "query":
                self._typed.declare(declared.text, declared.name)
        engine.memory.meet_all()

    def _command(self, text: str) -> None:
        name, _, argument = text.rstrip(";").partition(" ")
        if name not in self._commands:
            say(f"no command {name}; \\? lists them")
            return
        self._commands[name](argument.strip())

    def _statements(self, text: str) -> None:
        for part, position in split_statements(text):
            statement = check_statement(part, position, self.catalog)
            warn(statement.warnings, Script("<shell>", text))
            if _is_bare_select(statement):
                self._select(statement)
            else:
                self._execute(statement)

    def _execute(self, statement: Statement) -> None:
        """Runs a statement on the lasting engine; new results of registered queries show."""
        engine, action = self._opened(), statement.action
        print_answers(engine.execute(_placed(statement)), sys.stdout)
        if isinstance(action, Show | Explain):
            return
        self._remember(statement)
        if isinstance(action, Create) and isinstance(action.entry, QueryEntry):
            name = action.entry.name
            engine.subscribe(name, partial(self._display.printing(self._printer), name))
        say(words_for(action, engine))
        engine.run_until_idle()

    def _remember(self, statement: Statement) -> None:
        """For the bare SELECTs to come; registered queries are none of their business."""
        action, text = statement.action, statement.text
        match action:
            case Create() if not isinstance(action.entry, QueryEntry):
                self._typed.declare(text, action.entry.name)
            case Drop():
                self._typed.forget(action.name)
            case SetOption() if action.key != "store":
                self._typed.declare(text)
            case Punctuate():
                self._typed.feed(action.stream, lambda engine: _execute_again(engine, text))
            case Insert() | Delete() | Update():
                self._typed.feed(action.relation, lambda engine: _execute_again(engine, text))

    def _select(self, statement: Statement) -> None:
        """Runs a query in an engine of its own, so that it sees its streams from their start."""
        with Engine(self._settings, store="memory") as engine:
            self._prepare(engine)
            self._typed.replay(engine, _placed(statement))
            say_what_has_no_end(engine, WAY_OUT)
            print_results(engine, TablePrinter(engine.format_time))
            (query,) = engine.catalog.of_kind(QueryEntry)
            count = engine.result_count(query.name)
        earlier = " over what this shell was given" if self._opened().store.is_durable else ""
        results = f"{count or 'no'} result{'' if count == 1 else 's'}{earlier}"
        say(f"({results}; the query is not registered: CREATE QUERY name AS … does that)")

    def _describe(self, name: str) -> None:
        if not name:
            say(list_entries(self.catalog))
            return
        entry = self.catalog.get(name)
        say(describe_entry(entry) if entry else f'nothing is called "{name}"; \\d lists what is')

    def _run(self, time_text: str) -> None:
        engine = self._opened()
        if not engine.catalog.of_kind(QueryEntry):
            say("no query is registered, so there is nothing to read for; CREATE QUERY first")
            return
        seconds = _seconds(time_text) if time_text else None
        if seconds is None:
            say_what_has_no_end(engine, f"{WAY_OUT}, \\run 30s would end it")
        with self._display.shown() as progress:
            engine.run_sources(progress, seconds)

    def _push(self, arguments: str) -> None:
        name, _, file = arguments.partition(" ")
        file = file.strip().strip("'\"")
        if not file:
            say("\\push NAME FILE: which file?" if name else "\\push NAME FILE: which stream?")
            return
        engine, count = self._opened(), 0
        for page in pages_of(engine, name, file):
            engine.push(name, page)
            count += page.num_rows
            self._typed.feed(name, partial(_push_again, name=name, page=page))
        say(fed(engine, name, count))
        engine.run_until_idle()

    def _advance(self, arguments: str) -> None:
        name, _, time_text = arguments.partition(" ")
        when = time_text.strip().strip("'\"")
        if not when:
            say("\\advance NAME TIME: up to when? a number of ticks or a timestamp")
            return
        moment: int | str = int(when) if when.lstrip("-").isdecimal() else when
        engine = self._opened()
        engine.advance(name, moment)
        self._typed.feed(name, lambda again: again.advance(name, moment))
        engine.run_until_idle()

    def _switch_timing(self, _: str) -> None:
        self._timing = not self._timing
        say(f"timing is {'on' if self._timing else 'off'}")

    def _leave(self, _: str) -> None:
        self.wants_to_leave = True


def _seconds(text: str) -> float:
    try:
        return parse_seconds(text.strip("'\""))
    except ValueError as error:
        raise InputError(f"\\run {text}: this is not {error}") from None


def _execute_again(engine: Engine, text: str) -> None:
    engine.execute(text)


def _push_again(engine: Engine, name: str, page: pa.Table) -> None:
    engine.push(name, page)


def _is_bare_select(statement: Statement) -> bool:
    action = statement.action
    is_query = isinstance(action, Create) and isinstance(action.entry, QueryEntry)
    return is_query and not statement.text.lstrip().upper().startswith("CREATE")


def _placed(statement: Statement) -> str:
    """The statement's text at its place in what was typed, so that faults name the right line."""
    position: Position = statement.position
    return "\n" * (position.line - 1) + " " * (position.column - 1) + statement.text
