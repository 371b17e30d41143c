"""The shell against a server: statements are executed there, a bare SELECT is asked once.

What it registers goes on when the shell is left; `\\tail` shows the results of a query.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from millpond.cli.results import text_table
from millpond.cli.speaking import say, surviving
from millpond.client import RemoteEngine
from millpond.cql.text.split import split_statements
from millpond.errors import InputError

HELP = """\
  statement;          execute it on the server; it may take several lines
  SELECT …;           ask it once, of what the server has at present
  \\d                  what is declared
  \\d NAME             the columns and the definition of one thing
  \\tail NAME [N]      the results of a query as they come, N of them or until Ctrl-C
  \\push NAME FILE     feed a stream or relation from a file of JSON lines
  \\advance NAME TIME  promise that nothing of a stream at or before a time will follow
  \\timing             show how long statements take, or stop showing it
  \\?                  this help
  \\q                  leave (also Ctrl-D); what was registered stays
Ctrl-C stops what runs, or discards what is typed."""


class RemoteShell:
    """What the shell does with what is typed, on a server."""

    commands: tuple[str, ...] = ("\\advance", "\\d", "\\push", "\\q", "\\tail", "\\timing", "\\?")

    def __init__(self, engine: RemoteEngine) -> None:
        self._engine = engine
        self._timing = False
        self.wants_to_leave = False
        self._commands: dict[str, Callable[[str], None]] = {
            "\\q": self._leave,
            "\\d": self._describe,
            "\\tail": self._tail,
            "\\push": self._push,
            "\\advance": self._advance,
            "\\timing": self._switch_timing,
            "\\?": lambda _: say(HELP),
        }

    def names(self) -> list[str]:
        """What is declared there, and the columns of it."""
        known = self._engine.vocabulary()["names"]
        return [*known, *sorted({column for columns in known.values() for column in columns})]

    def handle(self, text: str) -> None:
        """Runs what was typed: a command or statements; faults are printed."""
        with surviving(text, lambda: self._timing):
            self._command_or_statements(text)

    def close(self) -> None:
        """Ends the connection."""
        self._engine.close()

    def _command_or_statements(self, text: str) -> None:
        name, _, argument = text.strip().rstrip(";").partition(" ")
        if not name.startswith("\\"):
            self._statements(text)
        elif name in self._commands:
            self._commands[name](argument.strip())
        else:
            say(f"no command {name}; \\? lists them")

    def _statements(self, text: str) -> None:
        for part, position in split_statements(text):
            placed = "\n" * (position.line - 1) + " " * (position.column - 1) + part
            words = part.split(maxsplit=1)
            if words and words[0].upper() in ("SELECT", "ISTREAM", "DSTREAM", "RSTREAM"):
                say(text_table(self._engine.ask(placed)))
                say("(asked once: CREATE QUERY name AS … registers it)")
            else:
                self._execute(placed)

    def _execute(self, text: str) -> None:
        answers = self._engine.execute(text)
        for answer in answers:
            say(text_table(answer) if isinstance(answer, pa.Table) else str(answer))
        if not answers:
            say("done")

    def _describe(self, name: str) -> None:
        found = self._engine.show(name or "all")
        if name and not found.num_rows:
            raise InputError(f'nothing is called "{name}"; \\d lists what is')
        say(text_table(found) if found.num_rows else "nothing is declared yet")

    def _tail(self, arguments: str) -> None:
        name, _, most = arguments.partition(" ")
        if not name or (most and not most.isdecimal()):
            say("\\tail NAME [N]: of which query, and how many?")
            return
        for number, result in enumerate(self._engine.tail(name, "oldest"), start=1):
            say(json.dumps(result, ensure_ascii=False))
            if most and number >= int(most):
                return

    def _push(self, arguments: str) -> None:
        name, _, file = arguments.partition(" ")
        if not file.strip():
            say("\\push NAME FILE: which stream, and which file?")
            return
        try:
            with Path(file.strip().strip("'\"")).open(encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            raise InputError(f"{file.strip()}: {error}") from None
        self._engine.push(name, rows)
        say(f"{len(rows)} rows into {name}")

    def _advance(self, arguments: str) -> None:
        name, _, when = arguments.partition(" ")
        moment = when.strip().strip("'\"")
        if not moment:
            say("\\advance NAME TIME: up to when? a number of ticks or a timestamp")
            return
        self._engine.advance(name, int(moment) if moment.lstrip("-").isdecimal() else moment)
        say(f"{name} is complete up to {moment}")

    def _switch_timing(self, _: str) -> None:
        self._timing = not self._timing
        say(f"timing is {'on' if self._timing else 'off'}")

    def _leave(self, _: str) -> None:
        self.wants_to_leave = True
