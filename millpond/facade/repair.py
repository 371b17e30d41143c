"""Brings a damaged store to its last sound state; nothing is deleted, everything lost is named.

The log counts up to its last sound record. What it knows then, and is damaged or missing, is taken
out: results and late tuples go; queries whose state or input is lost stand still, as after an
error, and the others go on. Whatever no longer counts is moved to a folder of the store.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from millpond.cql.needed_functions import functions_in
from millpond.durability.checkpoint import checkpoint
from millpond.durability.recovery import file_names, replay
from millpond.errors import DamageError, StateError
from millpond.facade.engine import Engine
from millpond.facade.stand_ins import settings_of, with_stand_ins
from millpond.failures import Failure
from millpond.identities import OperatorId, QueryName, QueueId
from millpond.settings import Settings
from millpond.storage.formats import FORMAT
from millpond.storage.log import LogEnd
from millpond.storage.mark import LOG, NAME, Mark
from millpond.storage.soundness import Findings, check, held
from millpond.storage.store import END, FOLDERS, is_own

SET_ASIDE = "set_aside"
"""The folder for what no longer counts; each repair has one of its own in it."""


def repair(directory: Path) -> list[str]:
    """Repairs a store; what was done and what is lost, line by line."""
    directory = directory.expanduser().absolute()
    with held(directory):
        found = check(directory)
        if found.is_sound:
            return [f"store {found.identity} in {directory}: sound, nothing to do"]
        aside = SetAside(directory)
        told = _log_repaired(found, aside)
    if found.framing.bounds:
        told += _files_repaired(directory, aside)
    return [*told, *aside.told()]


class SetAside:
    """The folder in which one repair puts what no longer counts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        numbers = (n for n in range(1, 10**6) if not (directory / SET_ASIDE / str(n)).exists())
        self.place = directory / SET_ASIDE / str(next(numbers))
        self._moved: list[str] = []

    def move(self, name: str) -> None:
        """Moves a file of the store, if it is there."""
        if (self._directory / name).is_file():
            self._make_room(name)
            (self._directory / name).replace(self.place / name)

    def copy(self, name: str) -> None:
        """Keeps a file as it is now."""
        if (self._directory / name).is_file():
            self._make_room(name)
            shutil.copyfile(self._directory / name, self.place / name)

    def _make_room(self, name: str) -> None:
        (self.place / name).parent.mkdir(parents=True, exist_ok=True)
        self._moved.append(name)

    @property
    def count(self) -> int:
        """How many files are in it."""
        return len(self._moved)

    def told(self) -> list[str]:
        """Where it is."""
        return [f"{len(self._moved)} files set aside in {self.place}"] if self._moved else []


# -- mark and log ----------------------------------------------------------------------------------


def _log_repaired(found: Findings, aside: SetAside) -> list[str]:
    """Has mark, log and its end be sound again; what is lost by that."""
    directory, framing = found.directory, found.framing
    if found.version < FORMAT:
        raise StateError(
            f"{directory / LOG}: written in format {found.version}: repair it with the version "
            f"that wrote it, then upgrade it; this version repairs format {FORMAT}"
        )
    if "written in" in found.faults.get(LOG, ""):
        raise StateError(f"{directory / LOG}: {found.faults[LOG]}; only that version can repair it")
    if NAME in found.faults:
        aside.copy(NAME)
    if END in found.faults:
        aside.move(END)
    if not framing.bounds or "is the log of store" in found.faults.get(LOG, ""):
        framing.bounds.clear()
        return _begun_anew(found, aside)
    told = []
    if NAME in found.faults:
        told.append(f"{NAME} is made anew: {LOG} says whose store it is")
    if LOG in found.faults:
        aside.copy(LOG)
        _cut(directory / LOG, framing.end)
        told.append(
            f"lost: what came after record {framing.bounds[-1].number} of the log "
            f"({framing.length - framing.end} bytes): {LOG} {found.faults[LOG]}"
        )
        for name in check(directory).left:  # only what is lost knew of them
            aside.move(name)
    elif END in found.faults:
        told.append(f"lost: nothing, unless the log was cut at a record's end: {END} says no more")
    end = LogEnd(directory / END)
    end.write(framing.bounds[-1].number)
    end.close()
    Mark(directory, str(found.identity), has_log=True).write()
    return told


def _cut(log: Path, length: int) -> None:
    """Cuts a log behind its last sound record, at once or not at all."""
    new = log.with_suffix(".new")
    new.write_bytes(log.read_bytes()[:length])
    new.replace(log)


def _begun_anew(found: Findings, aside: SetAside) -> list[str]:
    """Nothing says what is true of the store: it is empty from now on."""
    directory, identity = found.directory, found.identity
    if identity is None:
        raise DamageError(
            f"store {directory}: neither {NAME} nor {LOG} says what it holds; restore one of them "
            "from a copy, or begin anew in another directory"
        )
    for folder in FOLDERS:
        for file in sorted((directory / folder).iterdir()) if (directory / folder).is_dir() else ():
            if is_own(identity, file.name):
                aside.move(f"{folder}/{file.name}")
    for name in (LOG, END):
        aside.move(name)
    Mark.made(directory)
    fault = found.faults.get(LOG, "is damaged")
    return [
        f"lost: everything: {LOG}: {fault}; the store is empty now",
        "what is set aside are Parquet and Arrow files, which other tools can read",
    ]


# -- files -----------------------------------------------------------------------------------------


def _files_repaired(directory: Path, aside: SetAside) -> list[str]:
    """Takes what is lost out of what the log says; what that is."""
    with held(directory):
        found = check(directory)
    if found.is_sound:
        return []
    engine = _Repairing(settings_of(found.records), found, directory, aside)
    engine.close()
    return engine.lost


class _Repairing(Engine):
    """An engine that opens a store to take out what is lost, and does nothing else."""

    def __init__(
        self, settings: Settings, found: Findings, directory: Path, aside: SetAside
    ) -> None:
        self.lost: list[str] = []
        self._found, self._aside = found, aside
        super().__init__(settings, store=directory)

    def _recover(self) -> None:
        try:
            replay(self.queries, lambda record: with_stand_ins(self.catalog, record))
            damaged = set(self.store.faults(file_names(self.queries)))
            self._lose(damaged)
            self.runtime.free()
            self._begin_log_anew(damaged)
        except BaseException:
            self.journal.abandon()
            self.close()
            raise

    def _lose(self, damaged: set[str]) -> None:
        for log in self.deliveries:
            lost = damaged & _names(log.pages)
            if lost:
                rows = sum(page.rows for page in log.lose(damaged))
                whose = self.queries.groups.told([log.entry.name])
                self._tell(f"{rows} rows of the results of {whose}", lost)
        for intake in self.inputs.streams.values():
            for which, aside in (("late", intake.late_log), ("violating", intake.violating_log)):
                for page in [each for each in aside.kept if damaged & set(each.names)]:
                    self._tell(f'{which} tuples of stream "{intake.entry.name}"', page.names)
                    aside.kept.remove(page)
                    aside.let_go(page)
        for name, queue in list(self.inputs.queues.items()):
            self._lose_pages(name, damaged & _names(queue.all_pages))
            queue.lose(damaged)
        for identity, running in [*self.runtime.running.items()]:
            lost = damaged & running.state.names if running.state else set[str]()
            if lost and self._can_compute(identity) and running.rebuild():
                served = ", ".join(dict.fromkeys(self._served(identity)))
                self.lost.append(f"made anew: the state of {served} ({self._said(lost)})")
            else:
                self._fail([identity], lost, "state")

    def _can_compute(self, identity: OperatorId) -> bool:
        """Whether an operator calls no functions of the user, which are not here."""
        operator = self.graph.operators.get(identity)
        return operator is not None and not functions_in(operator)

    def _lose_pages(self, queue: QueueId, lost: set[str]) -> None:
        if lost:
            self._tell(f"rows of {queue}", lost)
            self._fail(self.graph.readers(queue), lost, "input")

    def _fail(self, operators: Iterable[OperatorId], lost: set[str], what: str) -> None:
        """Has the queries stand still that need some operators, if those have lost something."""
        served = [query for each in operators for query in self._served(each)] if lost else []
        if not served:
            return
        reason = f"its {what} was lost: {', '.join(sorted(lost))}: {self._said(lost)}"
        failures = [Failure(name, what, reason, 0, 0) for name in dict.fromkeys(served)]
        self.queries.fail(failures, StateError(reason))
        names = ", ".join(failure.query for failure in failures)
        self._tell(f"the {what} of {names}, to stand still until ALTER QUERY … ACTIVE", lost)

    def _served(self, operator: OperatorId) -> list[str]:
        if operator not in self.graph.operators:
            return []
        queries = self.queries.groups.expanded(self.graph.queries(operator))
        return [QueryName(query).asked_by for query in queries]

    def _tell(self, what: str, files: Iterable[str]) -> None:
        self.lost.append(f"lost: {what} ({self._said(files)})")

    def _said(self, files: Iterable[str]) -> str:
        known = (name for name in sorted(files) if name in self._found.faults)
        return "; ".join(f"{name} {self._found.faults[name]}" for name in known)

    def _begin_log_anew(self, damaged: set[str]) -> None:
        """Has the log say what is left, and sets aside what it does not name any more."""
        unneeded = (damaged | self._found.sums.keys()) - file_names(self.queries)
        for name in sorted(unneeded):
            self._aside.move(name)
        self.store.remove(tuple(unneeded))
        self.journal.flush()
        self.journal.begin_anew(checkpoint(self.queries))


def _names(pages: Iterable[Any]) -> set[str]:
    return {name for page in pages for name in page.names}
