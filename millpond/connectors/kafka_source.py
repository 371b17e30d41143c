"""Topics of Kafka as sources.

Offsets are positions of our commits: Kafka's consumer groups are not asked where to go on.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

from millpond.connectors.kafka_client import ANSWER_SECONDS, POLL_SECONDS, client, words_of
from millpond.connectors.kafka_messages import Position, Reader
from millpond.connectors.kafka_upserts import Ends, UpsertReader, refuse_lost_tombstones
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.errors import InputError

logger = logging.getLogger("millpond")

LOOK_SECONDS = 30.0
"""So often it is looked for new partitions, and whether the topic is still the same one."""


class KafkaSource:
    """The messages of a topic, of each partition in order."""

    is_live = True

    def __init__(
        self, declaration: Declaration, reader: Reader, brokers: str, start: str, ends: bool
    ) -> None:
        self._declaration, self._reader = declaration, reader
        self._brokers, self._start, self.ends = brokers, start, ends
        self._kafka = client()
        self._is_closed = threading.Event()
        self._done = 0

    def pages(self) -> Iterator[SourcePage]:
        """The messages from the start that was chosen; an empty page says first where that is."""
        return self._pages(None)

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """The messages behind a position."""
        return self._pages(Position.of(position))

    def progress(self) -> Progress:
        """Messages read."""
        return Progress(self._done, None, "messages")

    def close(self) -> None:
        """Nobody waits for a message any more."""
        self._is_closed.set()

    def _pages(self, noted: Position | None) -> Iterator[SourcePage]:
        reader = self._reader
        with _Reading(self._kafka, self._declaration.name, reader, self._settings()) as reading:
            reading.begin(noted, self._start, self.ends)
            if noted is None:
                noted = reader.reached([], reading.position, reading.position)
                yield reader.page([], noted, noted)
            noted_at = time.monotonic()
            while not self._is_closed.is_set():
                messages = reading.messages(self._declaration.settings.page_rows)
                is_over = self.ends and reading.is_at_end
                is_due = is_over or time.monotonic() > noted_at + LOOK_SECONDS
                page, position = self._page(reading, messages, noted)
                if messages or page.until is not None or (is_due and position != noted):
                    self._done += len(messages)
                    yield page
                    noted, noted_at = position, time.monotonic()
                if is_over:
                    return

    def _page(
        self, reading: _Reading, messages: list[Any], first: Position
    ) -> tuple[SourcePage, Position]:
        """The page of messages; if there are none, perhaps until when none follow."""
        reader, last = self._reader, self._reader.reached(messages, first, reading.position)
        if isinstance(reader, UpsertReader) and not messages:
            before = reading.read_before()
            if before is not None:
                return reader.quiet(last, before)
        return reader.page(messages, first, last), last

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._brokers,
            "group.id": f"millpond.{self._declaration.name}",  # asked for, and never used
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",  # what is gone is not passed over in silence
            "isolation.level": "read_committed",
            "log_level": 0,
        }


class _Reading:
    """A consumer of all partitions of a topic, and how far each was read."""

    def __init__(self, kafka: Any, stream: str, reader: Reader, settings: dict[str, Any]) -> None:
        self._kafka, self._stream, self._topic = kafka, stream, reader.topic
        self._brokers = settings["bootstrap.servers"]
        self._consumer = kafka.Consumer(settings)
        admin = importlib.import_module("confluent_kafka.admin")
        self._admin = admin.AdminClient({"bootstrap.servers": self._brokers, "log_level": 0})
        self._looked, self._looking = 0.0, None
        has_upserts = isinstance(reader, UpsertReader)
        self._upserted = Ends(kafka, self._admin, self._topic) if has_upserts else None
        self._topic_id = ""
        self._offsets: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        """Where each partition ended when reading began, if it is read as far as that only."""
        self._ended: set[int] = set()

    def __enter__(self) -> _Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    @property
    def position(self) -> Position:
        """How far it was read."""
        return Position(self._topic_id, dict(self._offsets))

    @property
    def is_at_end(self) -> bool:
        """Whether each partition was read to the end that it had."""
        return all(
            each in self._ended or self._offsets[each] >= end for each, end in self._ends.items()
        )

    def begin(self, position: Position | None, start: str, ends: bool) -> None:
        """Reads all partitions, from a position on, or from the start."""
        try:
            topic = self._asked().result()
            partitions = [each.id for each in topic.partitions]
            bounds = {each: self._bounds(each) for each in partitions if ends or position is None}
        except self._kafka.KafkaException as error:
            raise self._refusal(error) from None
        if position is not None and self._upserted is not None:
            whole = position.whole_seconds
            refuse_lost_tombstones(self._kafka, self._admin, self._topic, whole, self._fault)
        if position is None:
            which = 0 if start == "earliest" else 1
            position = Position(_id_of(topic), {each: bounds[each][which] for each in partitions})
        if ends:
            self._ends = {each: high for each, (_, high) in bounds.items()}
        self._go_on(position, topic)

    def _asked(self) -> Any:
        """What the topic is, asked of brokers."""
        topics = self._kafka.TopicCollection([self._topic])
        self._looked = time.monotonic()
        asked = self._admin.describe_topics(topics, request_timeout=ANSWER_SECONDS)
        return asked[self._topic]

    def _bounds(self, partition: int) -> tuple[int, int]:
        """The first offset there is, and the one behind the last message that can be read."""
        where = self._kafka.TopicPartition(self._topic, partition)
        low, high = self._consumer.get_watermark_offsets(where, timeout=ANSWER_SECONDS)
        return int(low), int(high)

    def _refusal(self, error: Any) -> InputError:
        if error.args[0].code() in self._away():
            return InputError(
                f"topic {self._topic}: no broker answers at {self._brokers} ({words_of(error)}); "
                "start it, or name others by brokers = 'host:port'"
            )
        return self._fault(words_of(error))

    def _fault(self, said: str) -> InputError:
        return InputError(f"topic {self._topic}: {said}")

    def read_before(self) -> float | None:
        """The moment before which all that was written has been read, if that is known now."""
        return None if self._upserted is None else self._upserted.read_before(self._offsets)

    def _go_on(self, position: Position, topic: Any) -> None:
        """Reads the partitions of the topic that are not read yet, from a position on; those that
        it lacks were added later, and are read from their first message on."""
        partitions = [each.id for each in topic.partitions]
        self._refuse_another(position, _id_of(topic), partitions)
        self._topic_id = position.topic_id or _id_of(topic)
        new = [each for each in partitions if each not in self._offsets]
        self._offsets |= {each: position.offsets.get(each, 0) for each in new}
        part = self._kafka.TopicPartition
        if new:
            added = [part(self._topic, each, self._offsets[each]) for each in new]
            self._consumer.incremental_assign(added)

    def _refuse_another(self, position: Position, found: str, partitions: list[int]) -> None:
        """Refuses a topic that the offsets are not of."""
        gone = sorted(position.offsets.keys() - set(partitions))
        is_other = bool(found and position.topic_id) and found != position.topic_id
        if is_other or gone:
            lacks = f", and has no partition {gone[0]}" if gone else ""
            raise InputError(
                f"topic {self._topic} was made anew since it was read{lacks}: the offsets are not "
                "its own; DROP the stream and declare it again"
            )

    def messages(self, most: int) -> list[Any]:
        """The messages that have come, after a wait for the first one."""
        self._look()
        came = []
        first = self._consumer.poll(POLL_SECONDS)
        if first is not None:  # a message without a value is false
            came = [first, *(self._consumer.consume(most - 1, timeout=0) if most > 1 else [])]
        found = [each for each in came if self._is_message(each)]
        self._pass_markers()
        return found

    def _look(self) -> None:
        """Looks from time to time whether the topic has new partitions; reading goes on while
        brokers are asked. Those who read as far as now have all there is for them."""
        if self._ends:
            return
        if self._looking is None and time.monotonic() > self._looked + LOOK_SECONDS:
            self._looking = self._asked()
        if self._looking is None or not self._looking.done():
            return
        answer, self._looking, self._looked = self._looking, None, time.monotonic()
        try:
            self._go_on(self.position, answer.result())
        except self._kafka.KafkaException as error:
            if not self._is_passing(error.args[0]):
                raise self._refusal(error) from None
            logger.warning("%s: no broker of Kafka's answers; it waits for one", self._stream)

    def _pass_markers(self) -> None:
        """Counts what transactions leave between messages as read."""
        part = self._kafka.TopicPartition
        for each in self._consumer.position([part(self._topic, each) for each in self._offsets]):
            self._reach(each.partition, each.offset)

    def _reach(self, partition: int, offset: int) -> None:
        most = self._ends.get(partition, offset)
        self._offsets[partition] = max(self._offsets[partition], min(offset, most))

    def _is_message(self, message: Any) -> bool:
        error = message.error()
        if error is None:
            self._reach(message.partition(), message.offset() + 1)
            end = self._ends.get(message.partition())
            return end is None or message.offset() < end
        if error.code() == self._kafka.KafkaError._PARTITION_EOF:
            self._ended.add(message.partition())
            self._reach(message.partition(), message.offset())
            return False
        if error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            raise InputError(
                f"topic {self._topic}, partition {message.partition()}: offset "
                f"{self._offsets[message.partition()]} is to come next, and is not there any more; "
                "messages were deleted before they were read (see retention.ms), or the topic was "
                "made anew: DROP the stream and declare it again"
            )
        if self._is_passing(error):
            return False  # the client goes on by itself, when brokers are there again
        raise InputError(f"topic {self._topic}: {error.str()}")

    def _is_passing(self, error: Any) -> bool:
        return bool(error.retriable()) or error.code() in self._away()

    def _away(self) -> tuple[int, ...]:
        """What the client says while no broker answers."""
        codes = self._kafka.KafkaError
        return codes._ALL_BROKERS_DOWN, codes._TRANSPORT, codes._TIMED_OUT, codes._RESOLVE


def _id_of(topic: Any) -> str:
    """The id of a topic; none of brokers that know of no ids."""
    found = topic.topic_id
    is_known = found.get_most_significant_bits() or found.get_least_significant_bits()
    return str(found) if is_known else ""
