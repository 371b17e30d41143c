"""Topics of Kafka as sinks: a page is a transaction with its number, so that it is there once."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millpond.connectors.avro import AvroResults
from millpond.connectors.json_text import json_results
from millpond.connectors.json_values import json_nested, json_value
from millpond.connectors.kafka_client import ANSWER_SECONDS, POLL_SECONDS, client, words_of
from millpond.connectors.python_values import python_values
from millpond.connectors.sinks import Results
from millpond.errors import OutputError
from millpond.identities import BAD_ROWS

FRAME_BYTES = 1_000
"""What a message has beside its key and its value is shorter."""

ABORT_SECONDS = 5.0
"""How long brokers have to end a transaction in which something went wrong."""


@dataclass(frozen=True)
class Target:
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
            said, code = words_of(error), error.args[0].code()
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


@dataclass(frozen=True)
class Form:
    """Makes messages of results."""

    target: Target
    key: str
    max_bytes: int
    avro: AvroResults | None = None
    """Else values are JSON."""

    def __post_init__(self) -> None:
        names = self.target.results.names
        if self.key and self.key.lower() not in map(str.lower, names):
            raise self.target.fault(
                f"no column {self.key} for the key; columns: {', '.join(names)}"
            )

    def messages(self, table: pa.Table) -> Iterator[tuple[bytes | None, bytes]]:
        """Keys and values."""
        if self.avro is not None:
            yield from zip(self._keys(table), self.avro.messages(table), strict=True)
            return
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
        values = python_values(table.column(names.index(self.key.lower())))
        return [None if value is None else _key(value) for value in values]

    def _cut(self, result: dict[str, Any]) -> dict[str, Any]:
        """What is told of a bad row, with the beginning of its bytes: a character is six bytes of
        JSON at most."""
        row, most = dict(result["row"]), self.max_bytes // 64 * 4
        whole = _bytes_of(row)
        row |= {name: row[name] and row[name][:most] for name in ("raw", "raw_base64")}
        told = f"cut: the first {_bytes_of(row)} of its {whole} bytes are here"
        return result | {"row": row | {"reason": f"{row['reason'][:500]} ({told})"}}


def _key(value: Any) -> bytes:
    """A value as a key: a text, of what has values in it its JSON."""
    told = json_nested(value) if isinstance(value, list | dict) else str(json_value(value))
    return told.encode()


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

    is_remote = True

    def __init__(self, target: Target, form: Form) -> None:
        self._kafka, self._target, self._form = client(), target, form
        run, pages = target.results.resume or (uuid4().hex, 0)
        self._run, self._next = str(run), int(pages)
        self._connection: Connection | None = None

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

    def _connected(self) -> Connection:
        """Shuts another producer of the same identity out, and asks for the number of the first
        page that is not there; what was not committed is gone."""
        if self._connection is None:
            self._connection = Connection(self._kafka, self._target, self._form, self._run)
            self._next = max(self._next, self._connection.begin())
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Lets the connection go; all that was written is there."""
        self._let_go()


class Connection:
    """A producer, until its first fault, and the group that has the number of the page."""

    def __init__(self, kafka: Any, target: Target, form: Form, run: str) -> None:
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
        self._insist(self._producer.init_transactions)
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
        self._insist(self._producer.send_offsets_to_transaction, offsets, group)
        self._insist(self._producer.commit_transaction)
        self._is_open = False

    def _insist(self, call: Callable[..., None], *given: Any) -> None:
        """Asks again while a broker says that it is not ready yet, as one that has just started."""
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return call(*given, ANSWER_SECONDS)
            except self._kafka.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise
            time.sleep(POLL_SECONDS)

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
