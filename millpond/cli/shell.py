"""The interactive shell: statements in, results out.

A bare SELECT runs at once over the streams from their start and is forgotten. CREATE QUERY
registers: `\\run` reads the sources, and changes made by INSERT, DELETE and UPDATE show directly.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from millpond.catalog import Catalog, QueryEntry
from millpond.cli.completion import CqlCompleter
from millpond.cli.describing import describe_entry, list_entries
from millpond.cli.faults import Script, describe_fault, report
from millpond.cli.progress import waiting_for
from millpond.cli.results import TablePrinter
from millpond.cli.running import print_answers, print_results
from millpond.cql import check_statement, is_complete, split_statements
from millpond.cql.statements import AlterQuery, Create, Drop, Explain, Show, Statement
from millpond.engine import Engine
from millpond.errors import MillpondError, Position
from millpond.settings import Settings

HELP = """\
  statement;     run it; it may take several lines
  \\d             what is declared
  \\d NAME        the columns and the definition of one thing
  \\run           read the sources to their end, for the registered queries
  \\timing        show how long statements take, or stop showing it
  \\?             this help
  \\q             leave (also Ctrl-D)
Ctrl-C stops a running query or discards what is typed."""


class Shell:
    """What the shell knows and does; reading lines is done elsewhere."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine: Engine | None = None
        self._declared: list[str] = []
        self._printer = TablePrinter(lambda query, ts: self._opened().format_time(query, ts))
        self._timing = False
        self.wants_to_leave = False
        self._commands: dict[str, Callable[[str], None]] = {
            "\\q": self._leave,
            "\\d": self._describe,
            "\\run": self._run,
            "\\timing": self._switch_timing,
            "\\?": lambda _: _say(HELP),
        }

    @property
    def catalog(self) -> Catalog:
        """The names declared so far."""
        return self._opened().catalog

    def handle(self, text: str) -> None:
        """Runs what was typed: a command or statements; faults are printed."""
        start = time.perf_counter()
        try:
            if text.strip().startswith("\\"):
                self._command(text.strip())
            else:
                self._statements(text)
        except MillpondError as error:
            sys.stderr.write(describe_fault(error, Script("<shell>", text)) + "\n")
        except KeyboardInterrupt:
            _say("stopped")
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001, a shell survives whatever a statement does
            report(error)
        if self._timing:
            _say(f"time: {time.perf_counter() - start:.3f} s")

    def close(self) -> None:
        """Stops the engine."""
        if self._engine is not None:
            self._engine.close()

    def _opened(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._settings)
        return self._engine

    def _command(self, text: str) -> None:
        name, _, argument = text.rstrip(";").partition(" ")
        if name not in self._commands:
            _say(f"no command {name}; \\? lists them")
            return
        self._commands[name](argument.strip())

    def _statements(self, text: str) -> None:
        for part, position in split_statements(text):
            statement = check_statement(part, position, self.catalog)
            if _is_bare_select(statement):
                self._select(statement)
            else:
                self._execute(statement)

    def _execute(self, statement: Statement) -> None:
        """Runs a statement on the lasting engine; new results of registered queries show."""
        engine = self._opened()
        print_answers(engine.execute(_placed(statement)), sys.stdout)
        action = statement.action
        if isinstance(action, Show | Explain):
            return
        if isinstance(action, Create) and isinstance(action.entry, QueryEntry):
            name = action.entry.name
            engine.subscribe(name, partial(self._printer.write, name))
        elif not isinstance(action, AlterQuery) and not _drops_query(statement):
            self._declared.append(statement.text)
        engine.run_until_idle()

    def _select(self, statement: Statement) -> None:
        """Runs a query in an engine of its own, so that it sees its streams from their start."""
        with waiting_for("Spark"):
            spark = self._opened().spark
        with Engine(self._settings, spark=spark) as engine:
            engine.execute(";\n".join(self._declared))
            engine.execute(_placed(statement))
            print_results(engine, TablePrinter(engine.format_time))

    def _describe(self, name: str) -> None:
        if not name:
            _say(list_entries(self.catalog))
            return
        entry = self.catalog.get(name)
        _say(describe_entry(entry) if entry else f'nothing is called "{name}"; \\d lists what is')

    def _run(self, _: str) -> None:
        self._opened().run_sources()

    def _switch_timing(self, _: str) -> None:
        self._timing = not self._timing
        _say(f"timing is {'on' if self._timing else 'off'}")

    def _leave(self, _: str) -> None:
        self.wants_to_leave = True


def start_shell(settings: Settings) -> None:
    """Reads from the terminal, or from standard input if that is none, until the end."""
    shell = Shell(settings)
    try:
        if sys.stdin.isatty():
            _converse(shell)
        else:
            _read_all(shell)
    finally:
        shell.close()


def ready(text: str) -> bool:
    """Whether Enter runs what is typed, rather than starting another line.

    >>> ready("SELECT 1"), ready("SELECT 1;"), ready("\\\\d")
    (False, True, True)
    """
    return text.strip().startswith("\\") or is_complete(text)


def history_file() -> Path:
    """Where typed statements are kept between sessions."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "millpond" / "history"


def _converse(shell: Shell) -> None:
    _say("Millpond. Statements end with ; and \\? helps.")
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=CqlCompleter(lambda: shell.catalog),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation=lambda width, *_: "... ".rjust(width),
        key_bindings=_enter_runs_complete_statements(),
    )
    while not shell.wants_to_leave:
        try:
            shell.handle(session.prompt("cql> "))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _enter_runs_complete_statements() -> KeyBindings:
    bindings = KeyBindings()

    @Condition
    def is_ready() -> bool:
        return ready(get_app().current_buffer.text)

    @bindings.add("enter", filter=is_ready)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _read_all(shell: Shell) -> None:
    """Runs statements from a pipe as soon as each is complete."""
    pending = ""
    for line in sys.stdin:
        pending += line
        if ready(pending):
            shell.handle(pending)
            pending = ""
        if shell.wants_to_leave:
            return
    if pending.strip():
        shell.handle(pending)


def _is_bare_select(statement: Statement) -> bool:
    action = statement.action
    is_query = isinstance(action, Create) and isinstance(action.entry, QueryEntry)
    return is_query and not statement.text.lstrip().upper().startswith("CREATE")


def _drops_query(statement: Statement) -> bool:
    return isinstance(statement.action, Drop) and statement.action.kind.lower() == "query"


def _placed(statement: Statement) -> str:
    """The statement's text at its place in what was typed, so that faults name the right line."""
    position: Position = statement.position
    return "\n" * (position.line - 1) + " " * (position.column - 1) + statement.text


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
