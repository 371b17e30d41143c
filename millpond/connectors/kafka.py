"""Topics of Kafka, read and written, by ``confluent-kafka``, which is installed apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.connectors.avro import AvroResults, AvroSchema
from millpond.connectors.changes import open_changes
from millpond.connectors.kafka_messages import Reader
from millpond.connectors.kafka_sink import Form, KafkaSink, Target
from millpond.connectors.kafka_source import KafkaSource
from millpond.connectors.kafka_upserts import KEY_FORMATS, UpsertReader
from millpond.connectors.message_values import FORMATS, values_of
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results, flag
from millpond.connectors.sources import Declaration, Source, is_true
from millpond.errors import InputError

BROKERS = "localhost:9092"
MAX_BYTES = 1_000_000
"""How long a message may be; brokers take so much unless told."""

LEAST_BYTES = 20_000
"""So much has room for what is told of a bad row beside its bytes."""


def source(
    declaration: Declaration,
    topic: str,
    *,
    brokers: str = BROKERS,
    format: str = "json",  # noqa: A002 (as CQL has it)
    schema: str = "",
    registry_id: int = 0,
    start: str = "earliest",
    until: str = "never",
) -> KafkaSource:
    """Reads a topic; ``until = 'now'`` ends where it ended when reading began."""
    topic_name = _text_given(declaration.name, "the topic", topic)
    _check_choice(declaration.name, "format", format, FORMATS)
    values = values_of(declaration.name, format, schema, registry_id)
    reader = Reader(declaration, topic_name, values)
    return _source(declaration, reader, brokers, start, until)


def changes(
    declaration: Declaration,
    topic: str,
    *,
    brokers: str = BROKERS,
    format: str = "json",  # noqa: A002 (as CQL has it)
    schema: str = "",
    registry_id: int = 0,
    start: str = "earliest",
    until: str = "never",
    upsert: bool = False,
    key_format: str = "text",
) -> Source:
    """Reads a topic as changes of a relation: values with ``ts`` and ``op``, or with ``upsert``
    rows that take the place of those with their key."""
    if not is_true(declaration.name, "upsert", upsert):
        options = {"brokers": brokers, "format": format, "start": start, "until": until}
        given: dict[str, Any] = options | {"schema": schema, "registry_id": registry_id}
        return open_changes(declaration, lambda changed: source(changed, topic, **given))
    topic_name = _text_given(declaration.name, "the topic", topic)
    _check_choice(declaration.name, "format", format, FORMATS)
    _check_choice(declaration.name, "key_format", key_format, KEY_FORMATS)
    if start != "earliest":
        raise InputError(
            f"{declaration.name}: a relation by upsert = true is read from the first message on"
        )
    values = values_of(declaration.name, format, schema, registry_id)
    reader = UpsertReader(declaration, topic_name, values, key_format)
    return _source(declaration, reader, brokers, start, until)


def _source(
    declaration: Declaration, reader: Reader, brokers: str, start: str, until: str
) -> KafkaSource:
    addresses = _text_given(declaration.name, "brokers", brokers)
    _check_choice(declaration.name, "start", start, ("earliest", "latest"))
    _check_choice(declaration.name, "until", until, ("never", "now"))
    return KafkaSource(declaration, reader, addresses, start, until == "now")


def sink(
    results: Results,
    topic: str,
    *,
    brokers: str = BROKERS,
    format: str = "json",  # noqa: A002 (as CQL has it)
    schema: str = "",
    registry_id: int = 0,
    key: str = "",
    max_bytes: int = MAX_BYTES,
    upsert: bool = False,
    id: str = "",  # noqa: A002 (as CQL has it)
) -> KafkaSink:
    """Writes one message a result, all of a page in one transaction."""
    topic = _text_given(results.query, "the topic", topic)
    brokers = _text_given(results.query, "brokers", brokers)
    target = Target(results, topic, brokers, str(id) or f"millpond.{results.query}.{topic}")
    if flag(results, "upsert", upsert):
        raise target.fault(
            "upsert = true is not there: rows of one key may come and go apart, and what a key "
            "holds then is not kept; write changes with key = 'column' and sum the weights of "
            "equal rows where they are read"
        )
    values = _written(target, format, schema, registry_id)
    return KafkaSink(target, Form(target, str(key), _bytes(target, max_bytes), values))


def _written(target: Target, format_: str, schema: Any, registry_id: Any) -> AvroResults | None:
    """How results are written, if not as JSON."""
    _check_choice(target.results.query, "format", format_, ("json", "avro"))
    if format_ == "json":
        if schema or registry_id:
            raise target.fault("schema and registry_id are for format = 'avro'")
        return None
    if target.has_bad_rows:
        raise target.fault("bad rows are written as JSON, not as Avro")
    avro = AvroSchema(schema, registry_id, target.fault)
    return AvroResults(avro, target.results.columns, target.fault)


def _check_choice(owner: str, option: str, value: str | Secret, known: Sequence[str]) -> None:
    if value not in known:
        listed = " or ".join(map(repr, known))
        raise InputError(f"{owner}: {option} is {listed}, not {value!r}")


def _text_given(owner: str, option: str, value: str | Secret) -> str:
    found = revealed(value)
    if not isinstance(found, str) or not found.strip():
        raise InputError(f"{owner}: {option} is a text that is not empty, not {value!r}")
    return found


def _bytes(target: Target, given: Any) -> int:
    if not isinstance(given, int) or given < LEAST_BYTES:
        raise target.fault(f"max_bytes is a number from {LEAST_BYTES} on, not {given!r}")
    return given
