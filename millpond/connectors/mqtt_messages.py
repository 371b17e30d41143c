"""Messages of MQTT as rows, and which of them were taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.message_values import ValuesOf
from millpond.connectors.sources import Declaration
from millpond.connectors.times import check_times
from millpond.errors import InputError
from millpond.schema import Schema, Type

BESIDE = {"mqtt_topic": Type.STRING, "mqtt_retained": Type.BOOLEAN}
"""Columns of these names hold what a message has beside its value."""

Known = tuple[int, str]
"""The number of a packet, and a hash of what it holds."""


@dataclass(frozen=True)
class Message:
    """A message as it came."""

    topic: str
    payload: bytes
    packet: int
    is_retained: bool
    is_again: bool
    """Whether the broker may have sent it before."""

    @staticmethod
    def of(given: Any) -> Message:
        """The message that the client has."""
        packet = given.mid if given.qos else 0
        return Message(given.topic, given.payload, packet, given.retain, given.dup)

    @property
    def known(self) -> Known:
        """By which it is known again."""
        content = blake2b(self.topic.encode() + b"\0" + self.payload, digest_size=8)
        return self.packet, content.hexdigest()


@dataclass(frozen=True)
class Position:
    """A session of a broker, and the messages that were taken of it and may come again."""

    session: str
    taken: tuple[Known, ...] = ()

    @staticmethod
    def of(said: dict[str, Any]) -> Position:
        """The position that a commit has."""
        return Position(said["session"], tuple((packet, what) for packet, what in said["taken"]))

    def as_json(self) -> dict[str, Any]:
        """The position for a commit."""
        return {"session": self.session, "taken": [list(each) for each in self.taken]}

    def behind(self, messages: Sequence[Message]) -> Position:
        """The position behind messages that follow it; a number that comes again is another
        packet's."""
        found = dict(self.taken) | dict(each.known for each in messages if each.packet)
        return Position(self.session, tuple(found.items()))


class MqttRows:
    """Makes rows of messages."""

    def __init__(self, declaration: Declaration, values: ValuesOf) -> None:
        self._declaration, fields = declaration, declaration.schema.fields
        for field in fields:
            wanted = BESIDE.get(field.name.lower())
            if wanted is not None and field.type is not wanted:
                raise InputError(f"{declaration.name}: {field.name} is {wanted}, not {field.type}")
        self._of_value = Schema(tuple(each for each in fields if each.name.lower() not in BESIDE))
        self._values = values(self._of_value)

    def read(self, messages: Sequence[Message]) -> tuple[pa.Table, list[BadRow], list[int]]:
        """The rows, the bad ones, and of each row the number of its message."""
        if not self._declaration.skips_bad_rows:
            return self._table(messages), [], list(range(len(messages)))
        found = salvaged(
            messages,
            self._table,
            lambda each, error: BadRow(_place(each), str(error), each.payload),
        )
        return told_apart(found, arrow_schema(self._declaration.schema).empty_table())

    def _table(self, messages: Sequence[Message]) -> pa.Table:
        def where(row: int) -> str:
            return _place(messages[row])

        values = self._values.table([each.payload for each in messages], where)
        columns: dict[str, Any] = {
            name: values.column(at) for at, name in enumerate(self._of_value.names)
        }
        beside = {
            "mqtt_topic": [each.topic for each in messages],
            "mqtt_retained": [each.is_retained for each in messages],
        }
        schema = arrow_schema(self._declaration.schema)
        table = pa.table(
            [
                columns[each.name]
                if each.name in columns
                else pa.array(beside[each.name.lower()], each.type)
                for each in schema
            ],
            schema=schema,
        )
        check_times(table, self._declaration, where)
        return table


def _place(message: Message) -> str:
    return f"topic {message.topic}, packet {message.packet}"
