"""How a slot of PostgreSQL's goes when its input is dropped, once nobody reads or makes it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millpond.connectors.postgres_client import Server
from millpond.connectors.postgres_publication import drop_publication
from millpond.connectors.postgres_slot import drop_slot
from millpond.connectors.postgres_tables import quoted

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.2
"""So often it is looked whether a slot is in use yet."""

TRIES = 200
"""So many times: for longer than a server waits for others before it makes a slot."""


@dataclass(frozen=True)
class OwnedSlot:
    """A slot of ours."""

    server: Server
    name: str
    has_publication: bool
    """Whether its publication is its own, and not one that was named."""

    def drop(self, owner: str, has_ended: Callable[[], bool]) -> None:
        """Drops it when its reader has ended; a warning says what somebody else has to do."""
        try:
            _wait_for(has_ended)
            with self.server.connected() as connection:
                _wait_for(lambda: self._is_dropped(connection))
                drop_slot(connection, self.name)  # which says why it is there yet, if it is
                self.drop_publication(connection)
        except self.server.psycopg.Error as error:
            logger.warning(
                "%s: its slot stays, and the server keeps its log for it (%s); SELECT "
                "pg_drop_replication_slot('%s')%s",
                owner,
                self.server.words_of(error),
                self.name,
                f"; DROP PUBLICATION {quoted(self.name)}" if self.has_publication else "",
            )

    def drop_publication(self, connection: Any) -> None:
        """Drops its own publication; who has named another has to drop it."""
        if self.has_publication:
            drop_publication(connection, self.name)

    def _is_dropped(self, connection: Any) -> bool:
        try:
            drop_slot(connection, self.name)
        except self.server.psycopg.errors.ObjectInUse:  # it is read at the moment
            return False
        return True


def _wait_for(holds: Callable[[], bool]) -> None:
    """Waits for something to hold, not for ever."""
    for _ in range(TRIES):
        if holds():
            return
        time.sleep(LOOK_SECONDS)
