"""What this process holds of states, if it is one of Spark's Python workers.

It lives as long as the worker, which Spark uses again for step after step.
"""

from __future__ import annotations

from millpond.storage.state_cache import StateCache

STATE_BYTES = 512 * 2**20
"""How much state one worker holds in memory."""

STATES = StateCache(STATE_BYTES)
