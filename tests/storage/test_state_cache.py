"""A state larger than the memory for it costs as much more as it is larger, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from millpond.storage import state_cache
from millpond.storage.forms import Keyed
from millpond.storage.frees import Free, Over
from millpond.storage.state import StateVersion
from millpond.storage.state_cache import BucketName, StateCache

SCHEMA = pa.schema([("k0", pa.int64()), ("_n", pa.int64()), ("value", pa.int64())])
FORM = Keyed(SCHEMA, ("k0",))
ROWS = 5_000


class Buckets:
    """A state of some buckets with some thousand keys each, read and written a few rows a step."""

    def __init__(self, directory: Path, buckets: int, held: float) -> None:
        self.directory = str(directory)
        self.version = StateVersion.empty(buckets)
        self.cache = StateCache(10**9)
        self.names = (f"d{number}" for number in count())
        self.write({bucket: rows_of(range(ROWS), 0) for bucket in range(buckets)})
        whole = sum(
            FORM.bytes(self.cache.state_at(self.at(b), FORM, self.version)) for b in range(buckets)
        )
        self.cache = StateCache(int(held * whole))

    def at(self, bucket: int, operator: str = "op") -> BucketName:
        return BucketName(self.directory, operator, bucket)

    def write(self, changes: dict[int, pa.Table]) -> None:
        self.version = self.version.after(
            {
                bucket: self.cache.write(
                    self.at(bucket), FORM, self.version, rows, next(self.names), 0
                )
                for bucket, rows in changes.items()
            }
        )

    def known(self, bucket: int, keys: list[int]) -> dict[int, int]:
        asked = pa.table({"k0": pa.array(keys, pa.int64())})
        found = self.cache.rows_of(self.at(bucket), FORM, self.version, asked)
        return dict(zip(found["k0"].to_pylist(), found["value"].to_pylist(), strict=True))

    def step(self, value: int) -> None:
        """Ten rows of each bucket are asked for, and changed."""
        keys = [(7 * value + n) % ROWS for n in range(10)]
        for bucket in range(len(self.version.buckets)):
            self.known(bucket, keys)
        self.write({b: rows_of(keys, value) for b in range(len(self.version.buckets))})


def rows_of(keys: range | list[int], value: int, n: int = 1) -> pa.Table:
    columns = [list(keys), [n] * len(keys), [value] * len(keys)]
    return pa.table([pa.array(c, pa.int64()) for c in columns], schema=SCHEMA)


def test_a_state_a_little_larger_than_the_memory_is_not_read_again_in_every_step(
    tmp_path: Path,
) -> None:
    state = Buckets(tmp_path, buckets=10, held=0.91)
    for value in range(3):
        state.step(value)
    read, looked = state.cache.rows_read, state.cache.rows_looked_through
    for value in range(3, 13):
        state.step(value)
    # two of ten buckets have no place at most; their rows are looked through, and not indexed
    assert state.cache.rows_looked_through - looked <= 2 * 10 * 1.5 * ROWS
    assert state.cache.rows_read - read <= 2 * 2 * ROWS


def test_what_is_looked_up_without_a_place_is_what_an_index_would_find(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    tight, roomy = (
        Buckets(_made(tmp_path / name), 3, held) for name, held in (("t", 0.1), ("r", 2))
    )
    for value in range(1, 60):
        keys = rng.choice(5_500, 500, replace=False).tolist()
        bucket, gone = int(rng.integers(3)), int(value % 5 > 0)
        for state in (tight, roomy):
            state.write({bucket: rows_of(keys, value, gone)})
        asked = rng.choice(5_500, 100, replace=False).tolist()
        assert tight.known(bucket, asked) == roomy.known(bucket, asked)
    assert tight.cache.rows_looked_through > 0
    assert roomy.cache.rows_looked_through == 0


def test_a_bucket_that_is_no_longer_needed_makes_place_for_one_that_is(tmp_path: Path) -> None:
    state = Buckets(tmp_path, buckets=3, held=0.7)
    for _ in range(3):
        for bucket in (0, 1):
            state.write({bucket: rows_of([1], 1)})
            state.known(bucket, [1])
    for _ in range(6):
        for bucket in (1, 2):
            state.write({bucket: rows_of([1], 1)})
            state.known(bucket, [1])
    looked = state.cache.rows_looked_through
    state.known(2, [1])
    assert state.cache.rows_looked_through == looked


def test_a_small_bucket_gives_no_place_to_a_large_one(tmp_path: Path) -> None:
    """It could go, but that would not be enough: the large one is not read for nothing."""
    state = Buckets(tmp_path, buckets=2, held=0.7)
    form, small = Keyed(SCHEMA, ("k0",)), StateVersion.empty(1)
    delta = state.cache.write(state.at(0, "small"), form, small, rows_of([1], 1), "small", 0)
    small = small.after({0: delta})
    for value in range(6):
        state.cache.state_at(state.at(0, "small"), form, small)
        state.step(value)
    read = state.cache.rows_read
    for value in range(6, 12):
        state.cache.state_at(state.at(0, "small"), form, small)
        state.step(value)
    assert state.cache.rows_read - read < ROWS


def test_what_goes_goes_before_another_bucket_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Buckets(tmp_path, buckets=2, held=0.6)
    held: list[int] = []
    read = state_cache.read_batches

    def watched(path: Path) -> Iterable[pa.Table]:
        held.append(state.cache._held_bytes)
        return read(path)

    monkeypatch.setattr(state_cache, "read_batches", watched)
    state.known(0, [1])
    for value in range(3):  # the first time it has no place, and is looked through
        state.write({1: rows_of([1], value)})
        assert state.known(1, [1]) == {1: value}
    assert held
    assert set(held) == {0}


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_what_is_freed_at_once_leaves_nothing_behind(tmp_path: Path) -> None:
    cache, version = StateCache(10**9), StateVersion.empty(1)
    form = replace(FORM, frees=(Free("k0", ((Over(ROWS),),)),))
    name = BucketName(str(tmp_path), "op", 0)
    delta = cache.write(name, form, version, rows_of(range(100), 1), "d", 0)
    assert (delta.rows, delta.freed) == (0, 100)
    assert cache.bytes < 1_000  # an empty state
    assert cache.state_at(name, form, version.after({0: delta})).all().num_rows == 0
