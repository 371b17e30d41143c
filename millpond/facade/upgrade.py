"""Brings a store of an earlier format to the present one; the store as it was is kept in it.

Only the log changes: pages and states stay what they are. What it becomes is tried on the copy
first, which is opened with it as the store will be. If that fails nothing was changed.
"""

import shutil
from pathlib import Path

from millpond.durability.recovery import check_files, replay
from millpond.errors import DamageError, MillpondError, StateError
from millpond.facade.engine import Engine
from millpond.facade.repair import SetAside
from millpond.facade.stand_ins import settings_of, with_stand_ins
from millpond.storage.faults import naming
from millpond.storage.formats import FORMAT
from millpond.storage.lease import GUARD
from millpond.storage.log import in_present_format
from millpond.storage.mark import LOG, NAME, way_out
from millpond.storage.soundness import Findings, check, held
from millpond.storage.store import END


def upgrade(directory: Path) -> list[str]:
    """Upgrades a store; what was done, line by line."""
    directory = directory.expanduser().absolute()
    with held(directory):
        found = check(directory)
        if found.version == FORMAT:
            return [f"store {found.identity} in {directory}: format {FORMAT}, nothing to do"]
        if not found.is_sound:
            name, fault = next(iter(found.faults.items()))
            raise DamageError(f"store {directory}: {name}: {fault}; {way_out(directory)}")
        aside = SetAside(directory)
        try:
            new = _upgraded(found, aside)
        except BaseException:
            shutil.rmtree(aside.place, ignore_errors=True)
            raise
        _put(directory / LOG, new)
    return [
        f"store {found.identity} in {directory}: format {found.version} became {FORMAT}",
        f"the store as it was is in {aside.place}, {aside.count} files; remove it when all is well",
    ]


def _upgraded(found: Findings, aside: SetAside) -> bytes:
    """The log in the present format, tried on a copy of the store, which then is as it was."""
    directory, copy = found.directory, aside.place
    for name in (NAME, LOG, END, *found.sums):
        with naming(directory / name):
            aside.copy(name)
    old = (directory / LOG).read_bytes()
    new = in_present_format(old, found.framing)
    _put(copy / LOG, new)
    _try(found, copy)
    _put(copy / LOG, old)
    return new


def _put(log: Path, content: bytes) -> None:
    """Replaces a log, at once or not at all."""
    beside = log.with_suffix(".new")
    with naming(beside):
        try:
            beside.write_bytes(content)
            beside.replace(log)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def _try(found: Findings, copy: Path) -> None:
    """Opens the copy, with the log in the present format, and leaves it as it is."""
    try:
        _Trying(settings_of(found.records), store=copy)
        (copy / GUARD).unlink(missing_ok=True)
    except MillpondError as error:
        raise StateError(
            f"store {found.directory}: its log cannot be converted from format {found.version}: "
            f"{error}; nothing was changed: open it with the version that wrote it"
        ) from error


class _Trying(Engine):
    """An engine that opens a store as it is, and does nothing with it."""

    def _recover(self) -> None:
        try:
            replay(self.queries, lambda record: with_stand_ins(self.catalog, record))
            check_files(self.queries)
        finally:
            self.journal.abandon()
            self.close()
