"""Freed memory goes back to the system, seldom enough to cost little."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from millpond.storage import allocators
from millpond.storage.allocators import Residue, give_back, hold_back, resident_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system does not say")
MEBIBYTE = 2**20


class Sizes:
    """A process whose size a test says, and how often it gave memory back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes, self.given_back, self.seconds = 100, 0, 0.0
        monkeypatch.setattr(allocators, "resident_bytes", lambda: self.bytes)
        monkeypatch.setattr(allocators, "give_back", self._give_back)
        clock = SimpleNamespace(monotonic=lambda: self.seconds)  # of this module alone
        monkeypatch.setattr(allocators, "time", clock)

    def _give_back(self) -> None:
        self.given_back += 1
        self.bytes -= 5

    def after(self, residue: Residue, bytes_: int) -> int:
        """How often memory was given back once a process has some size, a second later."""
        self.bytes, self.seconds = bytes_, self.seconds + 1
        residue.give_back(20)
        return self.given_back


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Sizes:
    return Sizes(monkeypatch)


def test_memory_is_given_back_when_the_process_has_grown(sizes: Sizes) -> None:
    residue = Residue()
    assert sizes.after(residue, 100) == 1  # to 95
    assert sizes.after(residue, 115) == 1
    assert sizes.after(residue, 116) == 2  # to 111
    assert sizes.after(residue, 131) == 2


def test_growth_counts_from_the_smallest_since(sizes: Sizes) -> None:
    residue = Residue()
    sizes.after(residue, 100)
    assert sizes.after(residue, 50) == 1
    assert sizes.after(residue, 71) == 2


def test_the_size_is_not_looked_at_for_every_page(sizes: Sizes) -> None:
    residue = Residue()
    sizes.after(residue, 100)
    sizes.bytes = 1_000
    residue.give_back(20)
    assert sizes.given_back == 1


def test_what_was_freed_leaves_the_process() -> None:
    hold_back(64 * MEBIBYTE)
    pieces = [pa.array(np.arange(2_000)) for _ in range(4_000)]  # 16 KB each, from the heap
    kept = pieces[::50]
    full = resident_bytes()
    del pieces
    give_back()
    assert full - resident_bytes() > 40 * MEBIBYTE
    assert len(kept) == 80


def test_arrow_takes_memory_from_the_c_library() -> None:
    hold_back(64 * MEBIBYTE)
    assert pa.default_memory_pool().backend_name == "system"
