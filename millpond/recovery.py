"""Going on after a restart: the log of a store is read, and everything is as it was.

Statements are executed again, without opening files; pages, heartbeats, steps and failures are
taken from the log. Steps are deterministic and what was not committed is invisible, so that is all.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millpond.errors import StateError
from millpond.failures import Failure
from millpond.planning.physical import Graph
from millpond.storage.log import Record
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction

if TYPE_CHECKING:
    from millpond.engine import Engine

_CREATE = re.compile(r"\s*CREATE\s+(?:STREAM|RELATION|VIEW|QUERY)\s+\"?(\w+)", re.IGNORECASE)


class StatementMemory:
    """The statements that the log of a store has, and how many of them this run has met again."""

    def __init__(self) -> None:
        self._logged: Counter[str] = Counter()
        self._met: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    def add(self, text: str) -> None:
        """A statement of the log."""
        self._logged[text] += 1
        created = _CREATE.match(text)
        if created:
            self._texts[created[1].lower()] = text

    def passes_over(self, text: str) -> bool:
        """Whether a statement of a script was executed by an earlier run already."""
        if self._met[text] >= self._logged[text]:
            self.refuse_another(text)
            return False
        self._met[text] += 1
        return True

    def refuse_another(self, text: str) -> None:
        """Refuses a statement that declares a name of the log otherwise."""
        created = _CREATE.match(text)
        before = self._texts.get(created[1].lower()) if created else None
        if before is not None and before != text:
            raise StateError(
                f'the store has another "{created[1] if created else ""}": there it says\n'
                f"  {before}\nand here\n  {text}\n"
                "DROP it first, or give this script a store of its own"
            )

    def forget(self, name: str) -> None:
        """A name was dropped: it may be declared anew."""
        self._texts.pop(name.lower(), None)


def form_of(graph: Graph, identities: Iterable[str]) -> dict[str, str]:
    """The canonical plans of operators, shortened: what the log's names of them stand for."""
    return {
        identity: hashlib.sha256(
            f"{graph.operators[identity]!r}@{graph.epochs[identity]}".encode()
        ).hexdigest()[:16]
        for identity in identities
    }


class Replay:
    """Acts on the records of a log, one after the other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.runs = 0
        self.marks: dict[str, Any] = {}
        """What each query's sink contains, as it said itself."""

    def act(self, record: Record) -> None:
        """Does what a record says."""
        facts = dict(record)
        getattr(self, f"_{facts.pop('kind')}")(**facts)

    def _open(self, run: int) -> None:
        self.runs = run

    def _statement(
        self, text: str, changes_rows: bool = False, form: dict[str, str] | None = None
    ) -> None:
        self._engine.memory.add(text)
        if not changes_rows:
            self._engine.execute_again(text)
        graph = self._engine.graph
        if form and form_of(graph, form.keys() & graph.operators.keys()) != form:
            raise StateError(
                f"the store was written by a version of Millpond that plans this differently:\n"
                f"  {text}\nopen it with that version, or begin anew with another store"
            )

    def _drop(self, name: str) -> None:
        self._engine.drop(name)

    def _restart(self, name: str) -> None:
        self._engine.restart(name)

    # -- inputs ----------------------------------------------------------------------------

    def _page(self, queue: str, page: dict[str, Any]) -> None:
        self._engine.inputs.queues[queue].add(self._referred(page))

    def _stream(
        self,
        name: str,
        largest: int | None,
        arrived: int,
        late_count: int,
        late: str | None,
        heartbeat: int,
    ) -> None:
        intake = self._engine.inputs.streams[name]
        intake.largest, intake.arrived, intake.late_count = largest, arrived, late_count
        intake.queue.advance(heartbeat)
        if late is not None:
            intake.late_tables.append(self._engine.store.read((late,)))
            intake.late_names.append(late)

    def _relation(self, name: str, last_change: int, changed_rows: int) -> None:
        intake = self._engine.inputs.relations[name]
        intake.last_change, intake.changed_rows = last_change, changed_rows

    def _heartbeat(self, queue: str, time: int) -> None:
        self._engine.inputs.queues[queue].advance(time)
        for relation in self._engine.inputs.relations.values():
            relation.reader.cursor = relation.queue.heartbeat

    def _moved(self) -> None:
        self._engine.inputs.moved()

    def _source(self, name: str, rows: int) -> None:
        self._engine.inputs.read_rows[name] = rows

    # -- steps -----------------------------------------------------------------------------

    def _step(
        self, operator: str, until: int, page: dict[str, Any] | None, state: Any = None
    ) -> None:
        referred = None if page is None else self._referred(page)
        self._engine.runtime.replay(operator, until, referred, state)

    def _skip(self, operator: str, until: int) -> None:
        self._engine.runtime.replay(operator, until, None, None)

    def _compact(
        self, queue: str, page: dict[str, Any] | None, replaced: list[str], until: int | None
    ) -> None:
        target = self._engine.inputs.queues[queue]
        names = set(replaced)
        pages = tuple(each for each in target.pages if names.intersection(each.names))
        new = None if page is None else self._referred(page)
        target.compact(Compaction(new, pages, until))

    def _sink(self, query: str, position: int, mark: Any) -> None:
        self.marks[query] = mark
        self._engine.sink_has_taken(query, position)

    def _failed(self, failures: list[dict[str, Any]]) -> None:
        found = [Failure(**failure | {"rows": tuple(failure["rows"])}) for failure in failures]
        self._engine.fail(found, StateError(found[0].error))

    def _referred(self, reference: dict[str, Any]) -> Page:
        return Page.referred(self._engine.store, reference)
