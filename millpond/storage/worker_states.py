"""What this process holds of states, if it is one of Spark's Python workers.

It lives as long as the worker, which Spark uses again for step after step.
"""

from __future__ import annotations

from millpond.storage.state_cache import StateCache
from millpond.storage.store import WORKER_STATE_BYTES

STATES = StateCache(WORKER_STATE_BYTES)
"""It holds as much as the last step that came allows."""
