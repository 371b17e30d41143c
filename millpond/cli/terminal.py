"""Reads what people type, or what a pipe brings, and hands it to the shell."""

import os
import sys
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from millpond.cli.completion import CqlCompleter
from millpond.cql.text.split import is_complete


class Handler(Protocol):
    """What is done with what is typed, here or on a server."""

    wants_to_leave: bool
    commands: tuple[str, ...]
    """What may be typed beside statements."""

    def names(self) -> list[str]:
        """What completion offers beside keywords."""

    def handle(self, text: str) -> None:
        """Runs what was typed."""

    def close(self) -> None:
        """Ends."""


def start_shell(shell: Handler) -> None:
    """Reads from the terminal, or from standard input if that is none, until the end."""
    try:
        if sys.stdin.isatty():
            converse(shell)
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


def converse(shell: Handler) -> None:
    """Asks for one input after the other until the end."""
    sys.stdout.write("Millpond. Statements end with ; and \\? helps.\n")
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=CqlCompleter(shell.names, shell.commands),
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


def _read_all(shell: Handler) -> None:
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
