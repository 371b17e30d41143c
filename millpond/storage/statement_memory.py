"""The statements that are in force and those that were executed, in this run or an earlier one.

A script that is started again passes over what an earlier run with the same store has executed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import replace
from typing import Any

from millpond.catalog import Declaration, kind_of
from millpond.cql.statements import (
    Action,
    AlterQuery,
    Create,
    Delete,
    Insert,
    SetOption,
    Statement,
    Update,
)
from millpond.cql.text.places import offset_at
from millpond.errors import Position, StateError
from millpond.storage.journal import Journal
from millpond.storage.log import Record

_CREATE = re.compile(
    r"\s*CREATE\s+(?:STREAM|RELATION|VIEW|QUERY)\s+(?:\"((?:[^\"]|\"\")+)\"|(\w+))", re.IGNORECASE
)


def changes_rows(action: Action) -> bool:
    """Whether a statement changes rows, which are in the log beside it, and nothing else."""
    return isinstance(action, Insert | Delete | Update)


def noted(statement: Statement, journal: Journal) -> Record:
    """The note of a statement about to be executed."""
    return journal.note(
        "statement",
        text=statement.text,
        at=[statement.position.line, statement.position.column],
        changes_rows=changes_rows(statement.action),
    )


class StatementMemory:
    """Counts the statements that were executed, and knows those that are in force."""

    def __init__(self) -> None:
        self.executed: Counter[str] = Counter()
        """How often each statement was executed, by its digest."""
        self._declared: dict[int, Declaration] = {}
        self._in_force: dict[str, int] = {}
        """The numbers of the declarations in force, by their names in lower case."""
        self._next = 0
        self.settings: dict[str, tuple[str, Position]] = {}
        """The SETs in force."""
        self._met: Counter[str] = Counter()
        self._before: dict[str, str] = {}

    @property
    def declarations(self) -> list[Declaration]:
        """What is there, in order, with all views there ever were: queries hold their plans."""
        return list(self._declared.values())

    # -- what happens ----------------------------------------------------------------------

    def done(self, statement: Statement) -> None:
        """A statement was executed."""
        self.count(statement.text)
        match statement.action:
            case Create(entry):
                text, position = statement.text, statement.position
                self.declare(Declaration(entry.name, kind_of(entry), text, position))
            case AlterQuery() as action if action.plan is not None:
                self._say(action)
            case SetOption(key):
                self.settings[key.lower()] = statement.text, statement.position

    def count(self, text: str) -> None:
        """A statement was executed, which changes rows."""
        self.executed[_digest(text)] += 1

    def discount(self, text: str) -> None:
        """A statement was not executed after all."""
        self.executed[_digest(text)] -= 1

    def declare(self, declaration: Declaration) -> None:
        """A name is declared."""
        self._in_force[declaration.name.lower()] = self._next
        self._append(declaration)

    def _append(self, declaration: Declaration) -> None:
        self._declared[self._next] = declaration
        self._next += 1

    def _say(self, action: AlterQuery) -> None:
        """A query says something else from now on."""
        number = self._in_force.get(action.name.lower())
        if number is not None:
            declared = self._declared[number]
            first = offset_at(declared.text, declared.position, action.position)
            before, behind = declared.text[:first], declared.text[first + len(action.old_text) :]
            self._declared[number] = replace(declared, text=before + action.text + behind)

    def forget(self, name: str) -> None:
        """A name was dropped: it may be declared anew."""
        self._before.pop(name.lower(), None)
        number = self._in_force.pop(name.lower(), None)
        if number is None:
            return
        found = self._declared[number]
        if found.kind == "view":
            self._append(Declaration(name, "view", "", found.position, is_dropped=True))
        else:
            del self._declared[number]

    def living(self) -> list[Declaration]:
        """The declarations in force, in order."""
        return [self._declared[number] for number in self._in_force.values()]

    # -- a script that is started again ----------------------------------------------------

    def recovered(self) -> None:
        """All that was executed so far was executed by earlier runs."""
        self._before = {d.name.lower(): d.text for d in self.living()}

    def meet_all(self) -> None:
        """Nothing is passed over from now on: who types a statement again means it again."""
        self._met = Counter(self.executed)
        self._before = {}

    def passes_over(self, text: str) -> bool:
        """Whether a statement of a script was executed by an earlier run already."""
        key = _digest(text)
        self._met[key] += 1
        if self._met[key] <= self.executed[key]:
            return True
        self._refuse_another(text)
        return False

    def _refuse_another(self, text: str) -> None:
        created = _CREATE.match(text)
        name = (created[1] or created[2]) if created else ""
        before = self._before.get(name.lower())
        if before is not None and before != text:
            raise StateError(
                f'the store has another "{name}": there it says\n'
                f"  {before}\nand here\n  {text}\n"
                "DROP it first, or give this script a store of its own"
            )

    # -- as a record -----------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What was executed, as plain data."""
        return dict(self.executed)

    def restore(self, executed: dict[str, int]) -> None:
        """Takes what ``to_json`` gave."""
        self.executed = Counter(executed)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
