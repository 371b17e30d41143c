"""What this process holds of states, if it is one of Spark's Python workers.

It lives as long as the worker, which Spark uses again for step after step.
"""

from millpond.storage.allocators import Residue, hold_back
from millpond.storage.state_cache import StateCache
from millpond.storage.store import WORKER_STATE_BYTES

STATES = StateCache(WORKER_STATE_BYTES)
"""It holds as much as the last step that came allows."""

GIVE_BACK_SHARES = 4
"""Freed memory is given back whenever the process has grown by such a part of that."""

_RESIDUE = Residue()


def keep_to(limit_bytes: int) -> None:
    """This process remembers so much of states from now on."""
    STATES.limit_bytes = limit_bytes
    hold_back(limit_bytes)
    _RESIDUE.give_back(limit_bytes // GIVE_BACK_SHARES)
