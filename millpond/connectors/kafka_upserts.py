"""Topics in which a message takes the place of the one before it with its key, as relations.

A message without a value (a tombstone) takes away what has its key. Times are those of messages,
and never go back nor beyond the clock: who writes as of the year 9999 stops nobody.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.connectors.changes import changes_schema
from millpond.connectors.kafka_client import ANSWER_SECONDS
from millpond.connectors.kafka_messages import Position, Reader
from millpond.connectors.message_values import JsonValues, TextKeys, ValuesOf
from millpond.connectors.sources import Declaration, SourcePage
from millpond.connectors.times import EARLIEST, Ticks
from millpond.errors import InputError

PROMISE_SECONDS = 0.5
"""So often time goes on while nothing is written."""

KEY_FORMATS = ("text", "json")


class UpsertReader(Reader):
    """Makes changes of messages: rows that come (1), and keys that go (0)."""

    def __init__(
        self, declaration: Declaration, topic: str, values: ValuesOf, key_format: str
    ) -> None:
        if not declaration.replaces:
            raise InputError(
                f"{declaration.name}: upsert = true is for relations that declare a PRIMARY KEY … "
                "ON CONFLICT REPLACE: a message takes the place of the one that has its key"
            )
        if key_format == "text" and len(declaration.key) > 1:
            raise InputError(
                f"{declaration.name}: key_format = 'text' is of one column, and the PRIMARY KEY "
                f"has {len(declaration.key)}; with key_format = 'json' keys are objects"
            )
        keys: ValuesOf = TextKeys if key_format == "text" else JsonValues
        super().__init__(declaration, topic, values, keys)
        self._tick = declaration.settings.tick_microseconds

    def reached(self, messages: list[Any], first: Position, last: Position) -> Position:
        """The position behind messages, of which offsets are known, and their times."""
        times = self._times(messages, first, self._ticks(time.time()))
        return replace(
            last,
            time=int(times[-1]) if len(times) else first.time or EARLIEST,
            whole_seconds=first.whole_seconds or time.time(),
        )

    def page(self, messages: list[Any], first: Position, last: Position) -> SourcePage:
        """The changes of messages between two positions."""
        page = super().page(messages, first, last)
        times = self._times(messages, first, EARLIEST if last.time is None else last.time)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(messages):
                return last.as_json()
            behind = first.behind(messages[:count])
            at = int(times[count - 1]) if count else first.time
            return replace(behind, time=at).as_json()

        weights = pa.array([0 if each.value() is None else 1 for each in messages], pa.int64())
        columns = [pa.array(times), weights, *page.rows.columns]
        rows = pa.table(columns, schema=changes_schema(self.declaration.schema))
        return replace(page, rows=rows, position_after=position_after)

    def quiet(self, position: Position, seconds: float) -> tuple[SourcePage, Position]:
        """A page without rows: all that was written before a moment was read."""
        until = self._ticks(seconds) - 1
        if position.time is not None and until < position.time:
            behind = replace(position, whole_seconds=seconds)
            return self.page([], position, behind), behind
        behind = replace(position, time=until + 1, whole_seconds=seconds)
        return replace(self.page([], position, behind), until=until), behind

    def _ticks(self, seconds: float) -> int:
        return int(seconds * 1_000_000) // self._tick

    def _times(self, messages: list[Any], first: Position, most: int) -> Ticks:
        """The times of messages, none before that of one before it, nor after the most there is."""
        for each in messages:
            if each.key() is None:
                raise InputError(
                    f"{self._place(each)}: a message without a key is no upsert; read the topic as "
                    "a stream"
                )
        given = [each.timestamp()[1] * 1000 // self._tick for each in messages]
        least = EARLIEST if first.time is None else first.time
        ticks = np.array([min(max(each, least), max(most, least)) for each in given], np.int64)
        found: Ticks = np.maximum.accumulate(ticks)
        return found


class Ends:
    """Asks brokers, while others read, where the partitions of a topic end."""

    def __init__(self, kafka: Any, client: Any, topic: str) -> None:
        self._kafka, self._client, self._topic = kafka, client, topic
        self._admin = importlib.import_module("confluent_kafka.admin")
        self._asked: dict[Any, Any] | None = None
        self._asked_seconds = 0.0
        self._due = 0.0

    def read_before(self, offsets: dict[int, int]) -> float | None:
        """The moment before which all that was written has been read, if that is known now."""
        if self._asked is None:
            if time.monotonic() > self._due:
                self._ask(offsets)
            return None
        if not all(each.done() for each in self._asked.values()):
            return None
        asked, self._asked, self._due = self._asked, None, time.monotonic() + PROMISE_SECONDS
        try:
            ends = {where.partition: each.result().offset for where, each in asked.items()}
        except self._kafka.KafkaException:
            return None
        is_read = all(offsets.get(each, 0) >= end for each, end in ends.items())
        return self._asked_seconds if is_read and ends.keys() == offsets.keys() else None

    def _ask(self, offsets: dict[int, int]) -> None:
        self._asked_seconds = time.time()
        ends = {
            self._kafka.TopicPartition(self._topic, each): self._admin.OffsetSpec.latest()
            for each in offsets
        }
        committed = self._kafka.IsolationLevel.READ_COMMITTED
        self._asked = self._client.list_offsets(
            ends, isolation_level=committed, request_timeout=ANSWER_SECONDS
        )


def refuse_lost_tombstones(
    kafka: Any, client: Any, topic: str, whole_seconds: float, fault: Callable[[str], InputError]
) -> None:
    """Refuses to go on where messages that took keys away may be gone since all was read."""
    admin = importlib.import_module("confluent_kafka.admin")
    resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
    (asked,) = client.describe_configs([resource], request_timeout=ANSWER_SECONDS).values()
    try:
        found = asked.result()
    except kafka.KafkaException:
        return  # who may not ask for that is not told
    policy, kept = found["cleanup.policy"].value, found["delete.retention.ms"].value
    away_seconds = time.time() - whole_seconds
    if "compact" in policy and whole_seconds and away_seconds > int(kept) / 1000:
        raise fault(
            f"the topic was last read to its end {away_seconds / 3600:.1f} hours ago, and keeps "
            f"what takes keys away for {int(kept) / 3_600_000:.1f} (delete.retention.ms): rows "
            "that are gone there may be here; DROP the relation and declare it again"
        )
