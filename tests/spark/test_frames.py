"""Plans over slots: what a plan reads is what its slots hold in the step that runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millpond.spark import frames as module
from millpond.spark.frames import Frame, Frames, Plans, Selection, leaf, union
from millpond.storage.pages import Page, Span
from millpond.storage.store import Store

SCHEMA = pa.schema([("_ts", pa.int64()), ("c0", pa.int64())])


@pytest.fixture
def frames(spark: SparkSession) -> Iterator[Frames]:
    store = Store()
    yield Frames(lambda: spark, store)
    store.close()


def rows(*numbers: int) -> pa.Table:
    """Numbers, each at the time of its own value."""
    return pa.table([pa.array(numbers), pa.array(numbers)], schema=SCHEMA)


def of(frames: Frames, place: str, *numbers: int, after: int = -1, until: int = 1000) -> Frame:
    frame = leaf(place, SCHEMA, [Span(Page.of(frames.store, rows(*numbers)), after, until)])
    assert frame is not None
    return frame


def found(plans: Plans, frame: Frame | None) -> list[int]:
    return sorted(plans.collect(frame, SCHEMA)["c0"].to_pylist())


@pytest.fixture(params=["reused", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of running a plan again: through Spark's internals, and without them."""
    monkeypatch.setenv("MILLPOND_PLAIN_SPARK", "1" if request.param == "plain" else "0")


@pytest.mark.usefixtures("way")
def test_a_plan_is_built_once_and_sees_each_steps_pages(frames: Frames) -> None:
    plans = Plans(frames)
    even = Selection(lambda: ([F.col("_ts"), F.col("c0")], F.col("c0") % 2 == 0))
    for step in range(3):
        own, more = of(frames, "own", step, step + 1), of(frames, "more", 10 * step)
        assert found(plans, union(even.of(own), more)) == sorted([step + step % 2, 10 * step])
    assert [len(idle) for idle in plans._idle.values()] == [1]


@pytest.mark.usefixtures("way")
def test_a_part_of_files_is_read_by_its_bounds(frames: Frames) -> None:
    plans = Plans(frames)
    page = Page.referred(frames.store, Page.of(frames.store, rows(*range(10))).reference())
    other = Page.referred(frames.store, Page.of(frames.store, rows(*range(20, 30))).reference())
    for after, until in ((2, 6), (6, 8), (-1, 3)):
        spans = [Span(page, after, until), Span(other, after + 20, until + 20)]
        numbers = list(range(after + 1, until + 1))
        assert found(plans, leaf("here", SCHEMA, spans)) == numbers + [n + 20 for n in numbers]
    assert len(plans._idle) == 1


def test_steps_of_one_shape_at_once_have_a_plan_each(frames: Frames) -> None:
    plans, inner = Plans(frames), []
    outer = of(frames, "place", 1, 2)

    def meanwhile(frame: DataFrame) -> list[int]:
        inner.append(found(plans, of(frames, "place", 7)))
        return sorted(row["c0"] for row in frame.collect())

    assert plans.run(outer, meanwhile) == [1, 2]
    assert inner == [[7]]


def test_a_page_may_go_while_a_step_reads_it(frames: Frames) -> None:
    page = Page.of(frames.store, rows(1, 2))
    frame = leaf("place", SCHEMA, [Span(page, -1, 5)])
    assert frame is not None

    def gone(frame: DataFrame) -> int:
        page.free()
        return frame.count()

    assert Plans(frames).run(frame, gone) == 2


def test_several_small_pages_are_read_as_one_file(frames: Frames) -> None:
    pages = [Page.of(frames.store, rows(n)) for n in range(3)]
    frame = leaf("place", SCHEMA, [Span(page, -1, 5) for page in pages])
    assert frame is not None
    files = Plans(frames).run(frame, lambda rows: rows.inputFiles())
    assert len(files) == 1


def test_nothing_is_no_frame_and_an_empty_table(frames: Frames) -> None:
    assert leaf("place", SCHEMA, []) is None
    assert union(None, None) is None
    assert Plans(frames).collect(None, SCHEMA) == SCHEMA.empty_table()


def test_few_shapes_are_remembered(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SHAPES", 2)
    plans = Plans(frames)
    for number, place in enumerate([*"abcd", *"abcd"]):
        assert found(plans, of(frames, place, number)) == [number]
    assert len(plans._idle) == 2
    plans.close()
    assert list((frames.store.directory / "slots").iterdir()) == []
