"""What allocators hold back of memory that was freed, and how the system gets it again.

Pages and what steps make of them come from two: that of Arrow, and the C library's, which NumPy
uses. Both hold freed memory back for what comes next, the C library in pieces of up to 32 MB for
each of its arenas: as much again as the data itself.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

_LIBRARY = ctypes.CDLL(None)
"""The C library of this process."""


def give_back() -> None:
    """Gives the system all memory of this process that was freed; takes milliseconds."""
    pa.default_memory_pool().release_unused()
    trim = getattr(_LIBRARY, "malloc_trim", None)
    if trim is not None:  # there is none but in the C library of GNU
        trim(0)
