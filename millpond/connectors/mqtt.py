"""Topics of MQTT, read and written, by ``paho-mqtt``, which is installed apart."""

from __future__ import annotations

from typing import Any

from millpond.connectors.message_values import FORMATS, values_of
from millpond.connectors.mqtt_client import MqttBroker
from millpond.connectors.mqtt_messages import MqttRows
from millpond.connectors.mqtt_sink import MqttSink
from millpond.connectors.mqtt_source import MqttSource
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results, flag
from millpond.connectors.sources import Declaration, is_true
from millpond.errors import InputError

BROKER = "mqtt://localhost:1883"
MOST_IN_FLIGHT = 10_000


def source(
    declaration: Declaration,
    topic: str | Secret,
    *,
    broker: str | Secret = BROKER,
    format: str = "json",  # noqa: A002 (as CQL has it)
    schema: str = "",
    registry_id: int = 0,
    user: str | Secret = "",
    password: str | Secret = "",
    in_flight: int = 100,
    gaps: bool = False,
) -> MqttSource:
    """Reads the topics that a filter names."""
    owner, found = declaration.name, MqttBroker(declaration.name, broker, user, password)
    if format not in FORMATS:
        listed = " or ".join(map(repr, FORMATS))
        raise InputError(f"{owner}: format is {listed}, not {format!r}")
    if not isinstance(in_flight, int) or not 0 < in_flight <= MOST_IN_FLIGHT:
        raise InputError(
            f"{owner}: in_flight is a number from 1 to {MOST_IN_FLIGHT}, not {in_flight!r}"
        )
    rows = MqttRows(declaration, values_of(owner, format, schema, registry_id))
    name = _topic(owner, topic)
    levels = name.split("/")
    is_whole = all(each in ("#", "+") or not {"#", "+"} & set(each) for each in levels)
    if not is_whole or "#" in levels[:-1]:
        raise InputError(
            f"{owner}: in {name!r} # and + stand for whole levels, and # for the last ones"
        )
    if name.startswith("$share/"):
        raise InputError(f"{owner}: a shared subscription has messages go elsewhere")
    return MqttSource(declaration, rows, found, name, in_flight, is_true(owner, "gaps", gaps))


def sink(
    results: Results,
    topic: str | Secret,
    *,
    broker: str | Secret = BROKER,
    user: str | Secret = "",
    password: str | Secret = "",
    retain: bool = False,
) -> MqttSink:
    """Publishes one message a result."""
    owner = f"query {results.query}"
    name = _topic(owner, topic)
    if "+" in name or "#" in name:
        raise InputError(f"{owner}: results go to one topic, not to {name!r}")
    found = MqttBroker(owner, broker, user, password)
    return MqttSink(results, found, name, flag(results, "retain", retain))


def _topic(owner: str, given: Any) -> str:
    found = revealed(given)
    if not isinstance(found, str) or not found or "\0" in found or len(found.encode()) > 65_535:
        raise InputError(f"{owner}: a topic is a text that is not empty, not {given!r}")
    return found
