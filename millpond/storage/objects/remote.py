"""A store at an address: its mark, its lease and its log, and copies of its files to work on."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from millpond.errors import DamageError, StateError
from millpond.storage.formats import Record
from millpond.storage.mark import NAME, Mark
from millpond.storage.objects.lease import Holder, ObjectLease
from millpond.storage.objects.log import Copies, ObjectLog
from millpond.storage.objects.objects import RESTORE, Objects


@dataclass
class Remote:
    """What there is of a store at an address, before its log is read."""

    objects: Objects
    identity: str
    lease: ObjectLease
    before: Holder | None
    """Who had it."""

    @staticmethod
    def opened(address: str) -> Remote:
        """The store at an address, which is made if there is nothing; nobody else is at work."""
        objects = Objects(address)
        identity = _identity(objects)
        lease = ObjectLease(objects, secrets.token_hex(8))
        return Remote(objects, identity, lease, lease.wait())

    def mark(self, directory: Path) -> Mark:
        """The mark, as of a store in a directory."""
        return Mark(directory, self.identity, has_log=True)

    def log(self, copies: Copies) -> tuple[ObjectLog, list[Record]]:
        """Takes the store: its log, and what that says."""
        log = ObjectLog(self.objects, self.lease, copies)
        try:
            return log, log.open(self.before)
        except BaseException:
            log.close()
            raise


def _identity(objects: Objects) -> str:
    """The number of a store: of one that is there, or of a new one where nothing is."""
    found = objects.get(NAME)
    if found is None:
        there = next(objects.names(), None)
        if there is not None and there != NAME:
            raise DamageError(
                f"store {objects.address}: there are objects ({there}, …) and no mark {NAME}, so "
                "it is no store of Millpond and is left as it is; name an address where nothing is"
            )
        ours = json.dumps({"identity": secrets.token_hex(4)}).encode()
        found = ours if objects.create(NAME, ours) else objects.get(NAME)
    identity = _read(objects, found)
    if found is not None and objects.create(NAME, found):
        raise StateError(
            f"store {objects.address}: the server puts an object where one is though it is asked "
            "not to (If-None-Match), so two engines could write there; name an address on a server "
            "that heeds it"
        )
    return identity


def _read(objects: Objects, content: bytes | None) -> str:
    try:
        return str(json.loads(content or b"")["identity"])
    except (ValueError, KeyError, TypeError):
        raise DamageError(
            f"store {objects.address}: its mark {NAME} is damaged; {RESTORE}"
        ) from None
