"""Plans over slots: what a plan reads is what its slots hold in the step that runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millpond.spark import frames as module
from millpond.spark.frames import Frames, Plans, Selection, Slot, union
from millpond.spark.internals import PLAIN_VARIABLE
from millpond.storage.pages import PageStore

SCHEMA = pa.schema([("_ts", pa.int64()), ("c0", pa.int64())])


@pytest.fixture(params=["0", "1"], ids=["private", "plain"])
def frames(
    spark: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Frames]:
    monkeypatch.setenv(PLAIN_VARIABLE, request.param)
    store = PageStore()
    yield Frames(spark, store)
    store.close()


def rows(*numbers: int) -> pa.Table:
    return pa.table([pa.array([0] * len(numbers)), pa.array(numbers)], schema=SCHEMA)


def test_a_plan_is_built_once_and_sees_each_steps_pages(frames: Frames) -> None:
    slot, other, plans = frames.slot(SCHEMA), frames.slot(SCHEMA), Plans()
    even = Selection(frames.session, [F.col("_ts"), F.col("c0")], F.col("c0") % 2 == 0)
    for step in range(3):
        own = slot.pages([frames.store.page(rows(step, step + 1))])
        more = other.table(rows(10 * step))
        assert own is not None
        found = plans.collect(union(even.of(own), more), SCHEMA)["c0"].to_pylist()
        assert sorted(found) == sorted([step + step % 2, 10 * step])
        frames.release()
    assert len(plans._plans) == 1


def test_filling_a_slot_again_replaces_what_it_held(frames: Frames) -> None:
    slot, page = frames.slot(SCHEMA), frames.store.page(rows(1, 2))
    for fill in (lambda: slot.pages([page]), lambda: slot.table(rows(1, 2))):
        fill()
        assert Plans().collect(fill(), SCHEMA)["c0"].to_pylist() == [1, 2]


def test_a_page_may_go_while_a_step_reads_it(frames: Frames) -> None:
    slot, page = frames.slot(SCHEMA), frames.store.page(rows(1, 2))
    frame = slot.pages([page])
    page.free()
    assert Plans().collect(frame, SCHEMA)["c0"].to_pylist() == [1, 2]


def test_nothing_is_no_frame_and_an_empty_table(frames: Frames) -> None:
    slot = frames.slot(SCHEMA)
    assert slot.pages([]) is None
    assert slot.table(rows()) is None
    assert union(None, None) is None
    assert Plans().collect(None, SCHEMA) == SCHEMA.empty_table()


def test_few_shapes_are_remembered(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SHAPES", 2)
    slots: list[Slot] = [frames.slot(SCHEMA) for _ in range(4)]
    plans = Plans()
    for number, slot in enumerate([*slots, *slots]):
        assert plans.collect(slot.table(rows(number)), SCHEMA)["c0"].to_pylist() == [number]
    assert len(plans._plans) == 2
