"""Fragments as DataFrames: what an operator reads, fused up to the queues below it.

A fragment answers three questions about its relation, each for a step (after, until]: which
elements *started*, which *ended* (of those that had started before), and which were *alive* at the
step's beginning. Over a windowed stream all three are ranges of the stream's own pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millpond.cql.algebra import Filter, Node, Project, RangeWindow, Sample
from millpond.errors import MillpondError
from millpond.planning.nodes import Combine
from millpond.planning.physical import QueueRead
from millpond.schema import FOREVER
from millpond.spark.expressions import lower
from millpond.spark.pages import Page, PageStore, total_rows
from millpond.spark.queues import Queue, Reader
from millpond.spark.types import spark_schema
from millpond.spark.window_times import WindowTimes

ELEMENT = ("_ts", "_te", "_w")
STARTED, ENDED, ALIVE = "started", "ended", "alive"


class Frames:
    """Makes DataFrames of pages, and of tables that live for one step only."""

    def __init__(self, session: SparkSession, store: PageStore) -> None:
        self.session = session
        self.store = store

    def of_pages(self, pages: list[Page], schema: pa.Schema) -> DataFrame | None:
        """One DataFrame over all the pages, or None if there are none."""
        if not pages:
            return None
        reader = self.session.read.schema(spark_schema(schema))
        return reader.parquet(*(page.path for page in pages))

    def of_table(self, table: pa.Table) -> DataFrame | None:
        """A DataFrame over a table that lives for this step only."""
        if table.num_rows == 0:
            return None
        path = self.store.write(table)
        self.store.discard(path)
        return self.session.read.schema(spark_schema(table.schema)).parquet(str(path))

    def release(self) -> None:
        """Removes the files that this step was the last to read."""
        self.store.sweep()


class Fragment:
    """One input of a running operator."""

    def __init__(
        self,
        node: Node,
        queues: dict[str, Queue],
        frames: Frames,
        since: dict[str, int],
        seed: int,
    ) -> None:
        self.node = node
        self._queues = queues
        self._frames = frames
        self._since = since
        self._seed = seed
        self._lowered: dict[int, list[SparkColumn]] = {}

    # -- reading ---------------------------------------------------------------------------

    def frame(self, mode: str, after: int, until: int) -> DataFrame | None:
        """The elements of a mode, with columns _ts, _te, _w, c0…; None when there are none."""
        return self._relation(self.node, mode, after, until)

    def changes(self, after: int, until: int) -> DataFrame | None:
        """Started elements, and a minus for each earlier element that ended."""
        started = self.frame(STARTED, after, until)
        ended = self.frame(ENDED, after, until)
        if ended is not None:
            rest = [name for name in ended.columns if name not in ELEMENT]
            ended = ended.select(
                F.col("_te").alias("_ts"), F.lit(FOREVER).alias("_te"), (-F.col("_w")).alias("_w"),
                *rest,
            )
        return union(started, ended)

    def stream(self, after: int, until: int) -> DataFrame | None:
        """The stream elements of a step, for fragments over streams."""
        return self._stream(self.node, after, until)

    def _relation(self, node: Node, mode: str, after: int, until: int) -> DataFrame | None:
        match node:
            case QueueRead():
                return self._read(node, mode, after, until)
            case RangeWindow():
                return self._window(node, mode, after, until)
            case Combine():
                left = self._relation(node.left, mode, after, until)
                right = self._relation(node.right, mode, after, until)
                if right is not None and node.sign < 0:
                    right = right.withColumn("_w", -F.col("_w"))
                return union(left, right)
            case Filter() | Project():
                below = self._relation(node.input, mode, after, until)
                return None if below is None else self.apply(node, below)
            case _:
                raise MillpondError(f"internal: {node.label()} is not linear")

    def _read(self, node: QueueRead, mode: str, after: int, until: int) -> DataFrame | None:
        queue = self._queues[node.queue]
        if mode == STARTED:
            return self._frames.of_pages(queue.between(after, until), queue.schema)
        if mode == ALIVE:
            return self._frames.of_pages(queue.content(after), queue.schema)
        return self._frames.of_table(queue.ending(after, until))

    def _window(self, node: RangeWindow, mode: str, after: int, until: int) -> DataFrame | None:
        times = WindowTimes.of(node)
        low, high = tuple_times(times, mode, after, until)
        below = self._stream(node.input, low, high, exact=mode != ALIVE) if low < high else None
        if below is None:
            return None
        weight = F.col("_w") if "_w" in below.columns else F.lit(1).cast("long")
        columns = [name for name in below.columns if not name.startswith("_")]
        frame = below.select(
            times.enter_column().alias("_ts"),
            times.leave_column().alias("_te"),
            weight.alias("_w"),
            *columns,
        )
        return frame if times.slide is None else frame.filter(F.col("_ts") < F.col("_te"))

    def _stream(
        self, node: Node, after: int, until: int, exact: bool = True
    ) -> DataFrame | None:
        match node:
            case QueueRead():
                queue = self._queues[node.queue]
                after = max(after, self._since.get(node.queue, after))
                pages = queue.between(after, until) if exact else covering(queue, after, until)
                return self._frames.of_pages(pages, queue.schema)
            case Filter() | Project() | Sample():
                below = self._stream(node.input, after, until, exact)
                return None if below is None else self.apply(node, below)
            case _:
                raise MillpondError(f"internal: {node.label()} is not a stream fragment")

    # -- linear nodes ----------------------------------------------------------------------

    def apply(self, node: Node, below: DataFrame) -> DataFrame:
        """A linear node applied to a frame."""
        match node:
            case Filter():
                return below.filter(self._columns(node)[0])
            case Project():
                meta = [name for name in below.columns if name.startswith("_")]
                return below.select(*meta, *self._columns(node))
            case Sample():
                return self._sample(node, below)
            case _:
                raise MillpondError(f"internal: {node.label()} is not linear")

    def _columns(self, node: Filter | Project) -> list[SparkColumn]:
        """The node's expressions as Spark columns, built once."""
        known = self._lowered.get(id(node))
        if known is None:
            inputs = data_columns(len(node.input.schema))
            if isinstance(node, Filter):
                known = [lower(node.predicate, inputs)]
            else:
                known = [lower(e, inputs).alias(f"c{i}") for i, e in enumerate(node.expressions)]
            self._lowered[id(node)] = known
        return known

    def _sample(self, node: Sample, below: DataFrame) -> DataFrame:
        """Keeps an element by a hash of its identity, so that no cut or schedule matters."""
        leaf = next(n for n in node.walk() if isinstance(n, QueueRead))
        limit = round(node.percent / 100 * 2**40)

        def kept(*identity: SparkColumn) -> SparkColumn:
            marker = F.xxhash64(F.lit(self._seed), F.lit(leaf.queue), *identity)
            return F.pmod(marker, F.lit(2**40)) < limit

        if "_seq" in below.columns:
            return below.filter(kept(F.col("_seq")))
        data = [F.col(name) for name in below.columns if not name.startswith("_")]
        copies = F.filter(
            F.sequence(F.lit(1).cast("long"), F.col("_w")), lambda n: kept(F.col("_ts"), *data, n)
        )
        return below.withColumn("_w", F.size(copies).cast("long")).filter(F.col("_w") > 0)

    # -- bookkeeping -----------------------------------------------------------------------

    def leaves(self) -> Iterator[tuple[Queue, WindowTimes | None]]:
        """Each queue read, with the window over it."""
        yield from self._leaves(self.node, None)

    def _leaves(
        self, node: Node, window: WindowTimes | None
    ) -> Iterator[tuple[Queue, WindowTimes | None]]:
        if isinstance(node, QueueRead):
            yield self._queues[node.queue], window
        if isinstance(node, RangeWindow):
            window = WindowTimes.of(node)
        for below in node.inputs:
            yield from self._leaves(below, window)

    def subscribe(self, cursor: int, needs: frozenset[str]) -> list[tuple[Queue, Reader]]:
        """Registers this fragment with its queues, stating what it will need again."""
        found = []
        for queue, window in self.leaves():
            content = ALIVE in needs and not queue.is_stream
            reader = Reader(cursor, retention(queue, window, needs), content)
            queue.readers.append(reader)
            found.append((queue, reader))
        return found

    def waiting(self, cursor: int, until: int) -> int:
        """About how many rows a step up to ``until`` would start with."""
        return sum(queue.waiting(cursor, until) for queue, _ in self.leaves())

    def ending(self, after: int, until: int) -> int:
        """About how many rows end within the step."""
        count = 0
        for queue, window in self.leaves():
            if window is not None:
                low, high = tuple_times(window, ENDED, after, until)
                count += total_rows(covering(queue, low, high)) if low < high else 0
            elif not queue.is_stream:
                count += queue.ending(after, until).num_rows
        return count


def retention(
    queue: Queue, window: WindowTimes | None, needs: frozenset[str]
) -> Callable[[Page], int]:
    """Until when a reader needs a page of the queue."""
    comes_back = needs & {ENDED, ALIVE}
    if window is not None:
        if window.length is None and ALIVE not in needs:
            return lambda page: window.enter(page.last)
        if comes_back:
            return lambda page: window.leave(page.last)
        return lambda page: window.enter(page.last)
    if ENDED in needs and not queue.is_stream:
        return lambda page: max(page.last, page.last_end or page.last)
    return lambda page: page.last


def tuple_times(times: WindowTimes, mode: str, after: int, until: int) -> tuple[int, int]:
    """The range (low, high] of stream times whose tuples a mode asks for."""
    if mode == STARTED:
        return times.latest_entered(after), times.latest_entered(until)
    if mode == ENDED:
        return times.latest_left(after), min(
            times.latest_left(until), times.latest_entered(after)
        )
    return times.latest_left(after), times.latest_entered(after)


def covering(queue: Queue, after: int, until: int) -> list[Page]:
    """Pages with all rows of (after, until], and perhaps more at its old end."""
    queue.cut_at(until)
    return [page for page in queue.pages if page.last > after and page.last <= until]


def data_columns(count: int) -> list[SparkColumn]:
    """The data columns of a frame."""
    return [F.col(f"c{i}") for i in range(count)]


def union(*frames: DataFrame | None) -> DataFrame | None:
    """The union of the frames that exist."""
    present = [frame for frame in frames if frame is not None]
    return reduce(DataFrame.unionAll, present) if present else None
