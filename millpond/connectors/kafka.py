"""Topics of Kafka, read and written, by ``confluent-kafka``, which is installed apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.connectors.kafka_messages import Reader
from millpond.connectors.kafka_sink import Form, KafkaSink, Target
from millpond.connectors.kafka_source import KafkaSource
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results, flag
from millpond.connectors.sources import Declaration
from millpond.errors import InputError

BROKERS = "localhost:9092"
FORMATS = ("json", "raw")
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
    start: str = "earliest",
    until: str = "never",
) -> KafkaSource:
    """Reads a topic; ``until = 'now'`` ends where it ended when reading began."""
    topic_name = _text_given(declaration.name, "the topic", topic)
    addresses = _text_given(declaration.name, "brokers", brokers)
    _check_choice(declaration.name, "format", format, FORMATS)
    _check_choice(declaration.name, "start", start, ("earliest", "latest"))
    _check_choice(declaration.name, "until", until, ("never", "now"))
    reader = Reader(declaration, topic_name, format)
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
    target = Target(results, topic, brokers, str(id) or f"millpond.{results.query}.{topic}")
    if flag(results, "upsert", upsert):
        raise target.fault(
            "upsert = true is not there: rows of one key may come and go apart, and what a key "
            "holds then is not kept; write changes with key = 'column' and sum the weights of "
            "equal rows where they are read"
        )
    return KafkaSink(target, Form(target, str(key), _bytes(target, max_bytes)))


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
