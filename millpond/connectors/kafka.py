"""Topics of Kafka, read and written, by ``confluent-kafka``, which is installed apart.

Offsets are positions of our commits: Kafka's consumer groups are not asked where to go on. What is
written is in a transaction of Kafka's with the number of the page, so that it is there once.
"""

from __future__ import annotations

import base64
import importlib
import json
import logging
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES, RowPosition, arrow_schema, conform
from millpond.connectors.bad_rows import BadRow, salvaged
from millpond.connectors.encoding import not_utf8
from millpond.connectors.files import Block
from millpond.connectors.json_lines import JsonLines
from millpond.connectors.json_text import json_results, json_value
from millpond.connectors.python_values import python_values
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results, flag
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.connectors.times import check_times
from millpond.errors import InputError, OutputError
from millpond.identities import BAD_ROWS
from millpond.schema import Field, Schema, Type

logger = logging.getLogger("millpond")

BROKERS = "localhost:9092"
FORMATS = ("json", "raw")
POLL_SECONDS = 0.2
"""How long a message is waited for before it is looked whether anybody wants one still."""

LOOK_SECONDS = 30.0
"""So often it is looked for new partitions, and whether the topic is still the same one."""

ANSWER_SECONDS = 30.0
"""How long brokers have for an answer."""

MAX_BYTES = 1_000_000
"""How long a message may be; brokers take so much unless told."""

LEAST_BYTES = 20_000
"""So much has room for what is told of a bad row beside its bytes."""

FRAME_BYTES = 1_000
"""What a message has beside its key and its value is shorter."""

ABORT_SECONDS = 5.0
"""How long brokers have to end a transaction in which something went wrong."""

METADATA = {
    "kafka_key": Type.STRING,
    "kafka_partition": Type.INT,
    "kafka_offset": Type.BIGINT,
    "kafka_timestamp": Type.TIMESTAMP,
    "kafka_headers": Type.STRING,
}
"""Columns of these names hold what a message has beside its value."""


def source(
    declaration: Declaration,
    topic: str,
    *,
    brokers: str = BROKERS,
    format: str = "json",  # noqa: A002 (as CQL has it)
    start: str = "earliest",
    until: str = "never",
) -> KafkaSource:
    """Reads a topic; ``until = 'now'`` ends where it ended when reading began."""
    topic_name = _text_given(declaration.name, "the topic", topic)
    addresses = _text_given(declaration.name, "brokers", brokers)
    _check_choice(declaration.name, "format", format, FORMATS)
    _check_choice(declaration.name, "start", start, ("earliest", "latest"))
    _check_choice(declaration.name, "until", until, ("never", "now"))
    reader = _Reader(declaration, topic_name, format)
    return KafkaSource(declaration, reader, addresses, start, until == "now")


def sink(
    results: Results,
    topic: str,
    *,
    brokers: str = BROKERS,
    key: str = "",
    max_bytes: int = MAX_BYTES,
    upsert: bool = False,
    id: str = "",  # noqa: A002 (as CQL has it)
) -> KafkaSink:
    """Writes one message a result, all of a page in one transaction."""
    topic = _text_given(results.query, "the topic", topic)
    brokers = _text_given(results.query, "brokers", brokers)
    target = _Target(results, topic, brokers, str(id) or f"millpond.{results.query}.{topic}")
    if flag(results, "upsert", upsert):
        raise target.fault(
            "upsert = true is not there: rows of one key may come and go apart, and what a key "
            "holds then is not kept; write changes with key = 'column' and sum the weights of "
            "equal rows where they are read"
        )
    return KafkaSink(target, _Form(target, str(key), _bytes(target, max_bytes)))


def _client() -> Any:
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise InputError(
            "kafka needs the package confluent-kafka; install it with pip install 'millpond[kafka]'"
        ) from None


def _check_choice(owner: str, option: str, value: str | Secret, known: Sequence[str]) -> None:
    if value not in known:
        listed = " or ".join(map(repr, known))
        raise InputError(f"{owner}: {option} is {listed}, not {value!r}")


def _text_given(owner: str, option: str, value: str | Secret) -> str:
    found = revealed(value)
    if not isinstance(found, str) or not found.strip():
        raise InputError(f"{owner}: {option} is a text that is not empty, not {value!r}")
    return found


# -- the source ------------------------------------------------------------------------------


class KafkaSource:
    """The messages of a topic, of each partition in order."""

    is_live = True

    def __init__(
        self, declaration: Declaration, reader: _Reader, brokers: str, start: str, ends: bool
    ) -> None:
        self._declaration, self._reader = declaration, reader
        self._brokers, self._start, self.ends = brokers, start, ends
        self._kafka = _client()
        self._is_closed = threading.Event()
        self._done = 0

    def pages(self) -> Iterator[SourcePage]:
        """The messages from the start that was chosen; an empty page says first where that is."""
        return self._pages(None)

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """The messages behind a position."""
        return self._pages(_Position.of(position))

    def progress(self) -> Progress:
        """Messages read."""
        return Progress(self._done, None, "messages")

    def close(self) -> None:
        """Nobody waits for a message any more."""
        self._is_closed.set()

    def _pages(self, noted: _Position | None) -> Iterator[SourcePage]:
        stream, topic = self._declaration.name, self._reader.topic
        with _Reading(self._kafka, stream, topic, self._settings()) as reading:
            reading.begin(noted, self._start, self.ends)
            if noted is None:
                yield self._reader.page([], reading.position, reading.position)
            noted, noted_at = reading.position, time.monotonic()
            while not self._is_closed.is_set():
                messages = reading.messages(self._declaration.settings.page_rows)
                is_over = self.ends and reading.is_at_end
                is_due = is_over or time.monotonic() > noted_at + LOOK_SECONDS
                if messages or (is_due and reading.position != noted):
                    self._done += len(messages)
                    yield self._reader.page(messages, noted, reading.position)
                    noted, noted_at = reading.position, time.monotonic()
                if is_over:
                    return

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


@dataclass(frozen=True)
class _Position:
    """The id of a topic, empty if brokers do not tell it, and the next offset of each partition."""

    topic_id: str
    offsets: dict[int, int]

    @staticmethod
    def of(said: dict[str, Any]) -> _Position:
        """The position that a commit has."""
        offsets = {int(partition): offset for partition, offset in said["offsets"].items()}
        return _Position(said["topic"], offsets)

    def as_json(self) -> dict[str, Any]:
        """The position for a commit."""
        offsets = {str(partition): offset for partition, offset in self.offsets.items()}
        return {"topic": self.topic_id, "offsets": offsets}

    def behind(self, messages: list[Any]) -> _Position:
        """The position behind messages that follow it."""
        read = {each.partition(): each.offset() + 1 for each in messages}
        return replace(self, offsets=self.offsets | read)


class _Reading:
    """A consumer of all partitions of a topic, and how far each was read."""

    def __init__(self, kafka: Any, stream: str, topic: str, settings: dict[str, Any]) -> None:
        self._kafka, self._stream, self._topic = kafka, stream, topic
        self._brokers = settings["bootstrap.servers"]
        self._consumer = kafka.Consumer(settings)
        admin = importlib.import_module("confluent_kafka.admin")
        self._admin = admin.AdminClient({"bootstrap.servers": self._brokers, "log_level": 0})
        self._looked, self._looking = 0.0, None
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
    def position(self) -> _Position:
        """How far it was read."""
        return _Position(self._topic_id, dict(self._offsets))

    @property
    def is_at_end(self) -> bool:
        """Whether each partition was read to the end that it had."""
        return all(
            each in self._ended or self._offsets[each] >= end for each, end in self._ends.items()
        )

    def begin(self, position: _Position | None, start: str, ends: bool) -> None:
        """Reads all partitions, from a position on, or from the start."""
        try:
            topic = self._asked().result()
            partitions = [each.id for each in topic.partitions]
            bounds = {each: self._bounds(each) for each in partitions if ends or position is None}
        except self._kafka.KafkaException as error:
            raise self._refusal(error) from None
        if position is None:
            which = 0 if start == "earliest" else 1
            position = _Position(_id_of(topic), {each: bounds[each][which] for each in partitions})
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
                f"topic {self._topic}: no broker answers at {self._brokers} ({_said(error)}); "
                "start it, or name others by brokers = 'host:port'"
            )
        return InputError(f"topic {self._topic}: {_said(error)}")

    def _go_on(self, position: _Position, topic: Any) -> None:
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

    def _refuse_another(self, position: _Position, found: str, partitions: list[int]) -> None:
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
        first = self._consumer.poll(POLL_SECONDS)
        more = self._consumer.consume(most - 1, timeout=0) if first and most > 1 else []
        came = [first, *more] if first else []
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


@dataclass(frozen=True)
class _Reader:
    """Makes rows of messages."""

    declaration: Declaration
    topic: str
    format: str

    def __post_init__(self) -> None:
        for field in self.declaration.schema.fields:
            wanted = METADATA.get(field.name.lower())
            if wanted is not None and field.type is not wanted:
                raise InputError(
                    f"{self.declaration.name}: {field.name} is {wanted}, not {field.type}"
                )
        if self.format == "raw" and [field.type for field in self._of_value] != [Type.STRING]:
            raise InputError(
                f"{self.declaration.name}: format 'raw' has one column of type STRING for the "
                f"value, beside {', '.join(METADATA)}"
            )

    @property
    def _of_value(self) -> list[Field]:
        fields = self.declaration.schema.fields
        return [field for field in fields if field.name.lower() not in METADATA]

    def page(self, messages: list[Any], first: _Position, last: _Position) -> SourcePage:
        """The rows of messages between two positions, with the offsets behind each of them."""
        rows, bad, places = self._rows(messages)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(places):
                return last.as_json()
            return first.behind(messages[: places[count - 1] + 1] if count else []).as_json()

        return SourcePage(rows, tuple(bad), position_after)

    def _rows(self, messages: list[Any]) -> tuple[pa.Table, list[BadRow], list[int]]:
        """The rows, the bad ones, and of each row the number of its message."""
        everything = range(len(messages))
        if not self.declaration.skips_bad_rows:
            return self._table(messages, everything), [], list(everything)
        tables, bad, places, number = [], list[BadRow](), list[int](), 0
        for found in salvaged(
            everything,
            lambda part: self._table(messages, part),
            lambda at, error: self._bad_row(messages[at], error),
        ):
            if isinstance(found, BadRow):
                bad.append(replace(found, after=len(places)))
                number += 1
            else:
                tables.append(found)
                places += range(number, number + found.num_rows)
                number += found.num_rows
        empty = arrow_schema(self.declaration.schema).empty_table()
        return pa.concat_tables([empty, *tables]).combine_chunks(), bad, places

    def _bad_row(self, message: Any, error: InputError) -> BadRow:
        return BadRow(self._place(message), str(error), message.value() or b"")

    def _place(self, message: Any) -> str:
        return f"topic {self.topic}, partition {message.partition()}, offset {message.offset()}"

    def _table(self, messages: list[Any], part: Sequence[int]) -> pa.Table:
        some = [messages[at] for at in part]

        def where(row: int) -> str:
            return self._place(some[row])

        values = self._values(some, where)
        columns = [
            values.column(field.name)
            if field.name.lower() not in METADATA
            else _metadata(field, some, where)
            for field in self.declaration.schema.fields
        ]
        table = pa.table(columns, schema=arrow_schema(self.declaration.schema))
        check_times(table, self.declaration, where)
        return table

    def _values(self, messages: list[Any], where: RowPosition) -> pa.Table:
        """The columns of the values; a message without one has NULLs."""
        schema = Schema(tuple(self._of_value))
        values = [each.value() for each in messages]
        if self.format == "raw":
            return pa.table([_text(values, where)], schema=arrow_schema(schema))
        if not len(schema):
            return pa.table({"": pa.nulls(len(values))})
        lines = [
            b"{}" if value is None else _line(value, row, where) for row, value in enumerate(values)
        ]
        return JsonLines(schema).table(Block(self.topic, b"\n".join(lines), 0), where)


def _line(value: bytes, row: int, where: RowPosition) -> bytes:
    """A JSON text in one line."""
    if not value.strip():
        raise InputError(f"{where(row)}: an empty value is no JSON")
    if b"\n" in value and any(b"\n" in text for text in _JSON_STRING.findall(value)):
        raise InputError(f"{where(row)}: no JSON: a string goes over the end of a line")
    return value.replace(b"\n", b" ")


_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _metadata(field: Field, messages: list[Any], where: RowPosition) -> pa.Array:
    match field.name.lower():
        case "kafka_key":
            return _text([each.key() for each in messages], where)
        case "kafka_partition":
            found: list[Any] = [each.partition() for each in messages]
        case "kafka_offset":
            found = [each.offset() for each in messages]
        case "kafka_timestamp":
            found = [_milliseconds(each) for each in messages]
            times = pa.table({field.name: pa.array(found, pa.timestamp("ms"))})
            return conform(times, Schema((field,)), where).column(0)
        case _:
            found = [_headers(each) for each in messages]
    return pa.array(found, ARROW_TYPES[field.type])


def _milliseconds(message: Any) -> int | None:
    kind, milliseconds = message.timestamp()
    return int(milliseconds) if kind else None


def _headers(message: Any) -> str | None:
    """The headers as a JSON array of names and values; bytes that are no text are replaced."""
    found = message.headers()
    if found is None:
        return None
    pairs = [
        (name, None if value is None else value.decode(errors="replace")) for name, value in found
    ]
    return json.dumps(pairs, ensure_ascii=False)


def _text(values: list[bytes | None], where: RowPosition) -> pa.Array:
    found: list[str | None] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            raise not_utf8(where(row), value or b"") from None
    return pa.array(found, pa.string())


def _id_of(topic: Any) -> str:
    """The id of a topic; none of brokers that know of no ids."""
    found = topic.topic_id
    is_known = found.get_most_significant_bits() or found.get_least_significant_bits()
    return str(found) if is_known else ""


def _said(error: Any) -> str:
    """What a fault of the client says."""
    return str(error.args[0].str() if error.args else error)


# -- the sink --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    """Where results go, and what is said of it."""

    results: Results
    topic: str
    brokers: str
    identity: str

    @property
    def has_bad_rows(self) -> bool:
        """Whether the results are the bad rows of a stream's source."""
        return self.results.query.endswith(BAD_ROWS)

    def fault(self, reason: str) -> OutputError:
        """A fault that names query or stream, topic and brokers."""
        owner = f"query {self.results.query}"
        if self.has_bad_rows:
            owner = f"bad rows of stream {self.results.query.removesuffix(BAD_ROWS)}"
        return OutputError(f"{owner}: topic {self.topic} at {self.brokers}: {reason}")

    @contextmanager
    def naming(self, kafka: Any) -> Iterator[None]:
        """Has faults of Kafka's say what they are about, and the way out."""
        try:
            yield
        except kafka.KafkaException as error:
            said, code = _said(error), error.args[0].code()
            if code == kafka.KafkaError._TIMED_OUT:
                said = f"no answer within {ANSWER_SECONDS:g} seconds ({said})"
            raise self.fault(f"{said}; {self._way_out(kafka.KafkaError, code)}") from None

    def _way_out(self, codes: Any, code: int) -> str:
        if code == codes.MSG_SIZE_TOO_LARGE:
            return (
                "max_bytes of the sink and max.message.bytes of the topic say how long a message "
                "may be: raise what is too small (of the sink by DROP and CREATE)"
            )
        if code in (codes._FENCED, codes.INVALID_PRODUCER_EPOCH, codes.PRODUCER_FENCED):
            return (
                f"somebody else writes as id = '{self.identity}': end one of both, or declare "
                "them with ids that differ"
            )
        retry = f"ALTER QUERY {self.results.query} ACTIVATE"
        if self.has_bad_rows:
            retry = "run again"
        return f"see that brokers answer there and have the topic, then {retry}"


def _bytes(target: _Target, given: Any) -> int:
    if not isinstance(given, int) or given < LEAST_BYTES:
        raise target.fault(f"max_bytes is a number from {LEAST_BYTES} on, not {given!r}")
    return given


@dataclass(frozen=True)
class _Form:
    """Makes messages of results."""

    target: _Target
    key: str
    max_bytes: int

    def __post_init__(self) -> None:
        names = self.target.results.names
        if self.key and self.key.lower() not in map(str.lower, names):
            raise self.target.fault(
                f"no column {self.key} for the key; columns: {', '.join(names)}"
            )

    def messages(self, table: pa.Table) -> Iterator[tuple[bytes | None, bytes]]:
        """Keys and values."""
        for key, result in zip(self._keys(table), json_results(table), strict=True):
            value = _json(result)
            is_long = len(key or b"") + len(value) > self.max_bytes - FRAME_BYTES
            if is_long and self.target.has_bad_rows:
                yield _cut(key, 250), _json(self._cut(result))
            else:
                yield key, value

    def _keys(self, table: pa.Table) -> list[bytes | None]:
        if not self.key:
            return [None] * table.num_rows
        names = [name.lower() for name in self.target.results.names]
        values = map(json_value, python_values(table.column(names.index(self.key.lower()))))
        return [None if value is None else str(value).encode() for value in values]

    def _cut(self, result: dict[str, Any]) -> dict[str, Any]:
        """What is told of a bad row, with the beginning of its bytes: a character is six bytes of
        JSON at most."""
        row, most = dict(result["row"]), self.max_bytes // 64 * 4
        whole = _bytes_of(row)
        row |= {name: row[name] and row[name][:most] for name in ("raw", "raw_base64")}
        told = f"cut: the first {_bytes_of(row)} of its {whole} bytes are here"
        return result | {"row": row | {"reason": f"{row['reason'][:500]} ({told})"}}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _cut(text: bytes | None, characters: int) -> bytes | None:
    return None if text is None else text.decode()[:characters].encode()


def _bytes_of(row: dict[str, Any]) -> int:
    """How many bytes are told of a bad row."""
    if row["raw"] is not None:
        return len(row["raw"].encode())
    return len(base64.b64decode(row["raw_base64"]))


class KafkaSink:
    """Results as messages: those of a page, and its number, in one transaction.

    It connects when there is something to write, and anew after each fault: then the brokers say
    whether the page is there. The number is kept in a consumer group of this declaration alone.
    """

    def __init__(self, target: _Target, form: _Form) -> None:
        self._kafka, self._target, self._form = _client(), target, form
        run, pages = target.results.resume or (uuid4().hex, 0)
        self._run, self._next = str(run), int(pages)
        self._connection: _Connection | None = None

    def mark(self) -> list[str | int]:
        """What tells this declaration from others, and the number of the next page."""
        return [self._run, self._next]

    def write(self, table: pa.Table) -> None:
        """Adds results as the next page."""
        self.write_numbered(table, self._next)

    def write_numbered(self, table: pa.Table, number: int) -> None:
        """Adds the results of a page, unless they are there."""
        if number < self._next:
            return
        with self._target.naming(self._kafka):
            try:
                connection = self._connected()
                if number >= self._next:
                    connection.transact(self._form.messages(table), number + 1)
            except BaseException:
                self._let_go()
                raise
        self._next = max(self._next, number + 1)

    def _connected(self) -> _Connection:
        """Shuts another producer of the same identity out, and asks for the number of the first
        page that is not there; what was not committed is gone."""
        if self._connection is None:
            self._connection = _Connection(self._kafka, self._target, self._form, self._run)
            self._next = max(self._next, self._connection.begin())
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Lets the connection go; all that was written is there."""
        self._let_go()


class _Connection:
    """A producer, until its first fault, and the group that has the number of the page."""

    def __init__(self, kafka: Any, target: _Target, form: _Form, run: str) -> None:
        self._kafka, self._target, self._is_open = kafka, target, False
        settings = {
            "bootstrap.servers": target.brokers,
            "socket.timeout.ms": int(1_000 * ANSWER_SECONDS),
            "log_level": 0,
        }
        group = {"group.id": f"{target.identity}.{run}", "enable.auto.commit": False}
        self._group = kafka.Consumer(settings | group)
        self._producer = kafka.Producer(
            settings | {"transactional.id": target.identity, "message.max.bytes": form.max_bytes}
        )

    def begin(self) -> int:
        """The number of the first page that is not there."""
        self._producer.init_transactions(ANSWER_SECONDS)
        where = self._kafka.TopicPartition(self._target.topic, 0)
        (found,) = self._group.committed([where], timeout=ANSWER_SECONDS)
        if found.error is not None:
            raise self._kafka.KafkaException(found.error)
        return max(0, int(found.offset))

    def transact(self, messages: Any, number: int) -> None:
        """Writes messages and a number; after a fault this connection is of no use."""
        self._producer.begin_transaction()
        self._is_open = True
        for key, value in messages:
            self._produce(key, value)
        offsets = [self._kafka.TopicPartition(self._target.topic, 0, number)]
        group = self._group.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(offsets, group, ANSWER_SECONDS)
        self._producer.commit_transaction(ANSWER_SECONDS)
        self._is_open = False

    def _produce(self, key: bytes | None, value: bytes) -> None:
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                self._producer.produce(self._target.topic, value, key)
                self._producer.poll(0)
            except BufferError:  # until some of what waits has gone
                if time.monotonic() > until:
                    raise self._kafka.KafkaException(
                        self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT)
                    ) from None
                self._producer.poll(POLL_SECONDS)
            else:
                return

    def close(self) -> None:
        """Ends a transaction that is open, if brokers answer soon: who reads waits for its end."""
        if self._is_open:
            with suppress(self._kafka.KafkaException):
                self._producer.abort_transaction(ABORT_SECONDS)
        self._group.close()
