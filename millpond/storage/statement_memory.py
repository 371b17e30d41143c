"""The statements that are in force and those that were executed, in this run or an earlier one.

A script that is started again passes over what an earlier run with the same store has executed.
"""

import hashlib
import re
from collections import Counter
from dataclasses import replace

from millpond.catalog import Declaration, kind_of
from millpond.cql.statements import (
    AlterQuery,
    Create,
    SetOption,
    Statement,
)
from millpond.cql.text.places import offset_at
from millpond.errors import Position, StateError

_CREATE = re.compile(
    r"\s*CREATE\s+(?:STREAM|RELATION|VIEW|QUERY)\s+(?:\"((?:[^\"]|\"\")+)\"|(\w+))", re.IGNORECASE
)


class StatementMemory:
    """Counts the statements that were executed, and knows those that are in force."""

    def __init__(self) -> None:
        self.executed: Counter[str] = Counter()
        """How often each statement was executed, by its digest."""
        self._declared: dict[str, Declaration] = {}
        """The declarations in force, by their names in lower case."""
        self.settings: dict[str, tuple[str, Position]] = {}
        """The SETs in force."""
        self._met: Counter[str] = Counter()
        self._before: dict[str, str] = {}

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
        self.executed[digest_of(text)] += 1

    def declare(self, declaration: Declaration) -> None:
        """A name is declared."""
        self._declared[declaration.name.lower()] = declaration

    def _say(self, action: AlterQuery) -> None:
        """A query says something else from now on."""
        declared = self._declared.get(action.name.lower())
        if declared is not None:
            first = offset_at(declared.text, declared.position, action.position)
            before, behind = declared.text[:first], declared.text[first + len(action.old_text) :]
            self.declare(replace(declared, text=before + action.text + behind))

    def forget(self, name: str) -> None:
        """A name was dropped: it may be declared anew."""
        self._before.pop(name.lower(), None)
        self._declared.pop(name.lower(), None)

    def living(self) -> list[Declaration]:
        """The declarations in force, in order."""
        return list(self._declared.values())

    # -- a script that is started again ----------------------------------------------------

    def recovered(self) -> None:
        """All that was executed so far was executed by earlier runs."""
        self._before = {d.name.lower(): d.text for d in self.living()}

    def of_before(self) -> list[Declaration]:
        """The declarations of earlier runs that are in force."""
        return [each for each in self.living() if each.name.lower() in self._before]

    def meet_all(self) -> None:
        """Nothing is passed over from now on: who types a statement again means it again."""
        self._met = Counter(self.executed)
        self._before = {}

    def passes_over(self, text: str) -> bool:
        """Whether a statement of a script was executed by an earlier run already."""
        key = digest_of(text)
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

    def restore(self, executed: dict[str, int]) -> None:
        """Statements were executed so often, by earlier runs."""
        self.executed = Counter(executed)


def digest_of(text: str) -> str:
    """What tells a statement from others."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]
