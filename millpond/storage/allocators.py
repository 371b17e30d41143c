"""What allocators hold back of memory that was freed, and how the system gets it again.

Pages and what steps make of them come from two: that of Arrow, and the C library's, which NumPy
uses. Both hold freed memory back for what comes next, the C library in pieces of up to 32 MB for
each of its arenas, Arrow's without a bound: twice the data itself. So where Millpond is loaded
before Arrow, the C library serves both; and as memory that goes back to the system at once costs
time when it is needed again, what the C library holds back follows the budget.
"""

import ctypes
import mmap
import time
from pathlib import Path

import pyarrow as pa

_LIBRARY = ctypes.CDLL(None)
"""The C library of this process."""

_PAGE_BYTES = mmap.PAGESIZE
_SIZE = Path("/proc/self/statm")
"""Where Linux says how large a process is, in pages."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""How GNU's C library calls what it can be told."""

ARENAS = 2
"""As many parts of the heap as threads that do much; each holds back memory of its own."""

PIECE_SHARES = 256
"""Pieces of memory larger than such a part of what a process may hold go back when freed."""

LEAST_PIECE_BYTES, MOST_PIECE_BYTES = 2**17, 2**25
"""What GNU's C library begins with, and comes to by itself."""

LOOK_SECONDS = 0.01
"""How often is looked at how large the process is; turns and pushes may be far more frequent."""


def hold_back(limit_bytes: int) -> None:
    """Has allocators hold back little of what is freed, for a process that may hold so much.

    Where the C library is another one they stay as they are.
    """
    tell = getattr(_LIBRARY, "mallopt", None)
    if tell is None or getattr(_LIBRARY, "malloc_trim", None) is None:
        return
    piece = min(max(LEAST_PIECE_BYTES, limit_bytes // PIECE_SHARES), MOST_PIECE_BYTES)
    tell(_ARENA_MAX, ARENAS)
    tell(_MMAP_THRESHOLD, piece)
    tell(_TRIM_THRESHOLD, piece)
    pa.set_memory_pool(pa.system_memory_pool())


class Residue:
    """Has the system get freed memory again whenever the process has grown by some bytes."""

    def __init__(self) -> None:
        self._bytes = 0
        """How large the process was afterwards."""
        self._look_again = 0.0

    @property
    def is_time_to_look(self) -> bool:
        """Whether it was not looked at the process for a while."""
        return time.monotonic() >= self._look_again

    def give_back(self, growth_bytes: int) -> None:
        """Gives memory back if the process has grown by so much since that was done last."""
        if not self.is_time_to_look:
            return
        self._look_again = time.monotonic() + LOOK_SECONDS
        now = resident_bytes()
        if now > self._bytes + growth_bytes:
            give_back()
            self._bytes = now = resident_bytes()
        self._bytes = min(self._bytes, now)


def resident_bytes() -> int:
    """How much memory this process has of the system; 0 where the system does not say."""
    try:
        with _SIZE.open("rb", buffering=0) as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def give_back() -> None:
    """Gives the system all memory of this process that was freed; takes milliseconds."""
    pa.default_memory_pool().release_unused()
    trim = getattr(_LIBRARY, "malloc_trim", None)
    if trim is not None:  # there is none but in the C library of GNU
        trim(0)
