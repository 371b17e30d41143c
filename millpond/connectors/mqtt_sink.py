"""Topics of MQTT as sinks: each result is published until the broker has it, with a key by which
whoever gets it twice knows it again."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any

import pyarrow as pa

from millpond.connectors.json_text import json_results
from millpond.connectors.mqtt_client import ANSWER_SECONDS, MqttBroker
from millpond.connectors.sinks import Results
from millpond.errors import InputError, OutputError

KEY = "idempotency-key"
"""The user property with the key of a result."""


class MqttSink:
    """Publishes results in their order; those of a page are with the broker when it is written."""

    is_remote = True

    def __init__(self, results: Results, broker: MqttBroker, topic: str, retains: bool) -> None:
        self._results, self._broker, self._topic, self._retains = results, broker, topic, retains
        self._run: str = results.resume[0] if results.resume else uuid.uuid4().hex
        self._next: int = results.resume[1] if results.resume else 0
        self._client: Any = None
        self._refused = list[Any]()
        """What the broker said of results that it did not take."""
        self._is_given_up = threading.Event()

    def mark(self) -> list[str | int]:
        """What tells this declaration from others, and the number of the next page."""
        return [self._run, self._next]

    def write(self, table: pa.Table) -> None:
        """Publishes results as the next page."""
        self.write_numbered(table, self._next)

    def write_numbered(self, table: pa.Table, number: int) -> None:
        """Publishes the results of a page; what was published of it before has the same keys."""
        if number < self._next:
            return
        try:
            self._publish(table, number)
        except (InputError, OSError, ValueError, RuntimeError) as error:
            self._let_go()
            raise self._fault(str(error)) from None
        except BaseException:
            self._let_go()
            raise
        self._next = number + 1

    def _publish(self, table: pa.Table, number: int) -> None:
        client, sent = self._connected(), list[Any]()
        for place, result in enumerate(json_results(table)):
            value = json.dumps(result, ensure_ascii=False).encode()
            key = self._broker.user_properties((KEY, self._key(number, place)))
            sent.append(client.publish(self._topic, value, 1, self._retains, key))
        for each in sent:
            each.wait_for_publish(ANSWER_SECONDS)
            if self._refused:
                raise InputError(f"it refuses a result: {self._refused[0]}")
            if not each.is_published():
                raise InputError(f"no answer within {ANSWER_SECONDS:g} seconds")

    def _connected(self) -> Any:
        """The client, which connects anew by itself when the connection breaks off."""
        if self._client is None:
            self._client = self._broker.client(f"millpond-{uuid.uuid4().hex}")
            answered, said = threading.Event(), list[Any]()
            self._refused.clear()

            def connected(_: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
                said.append(reason)
                answered.set()

            def published(_: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
                if reason.is_failure:
                    self._refused.append(reason)

            self._client.on_connect, self._client.on_publish = connected, published
            self._broker.connect(self._client, 0, True)
            self._broker.wait(answered, self._is_given_up)
            if said and said[0].is_failure:
                raise InputError(f"it refuses us: {said[0]}")
        return self._client

    def _let_go(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            client.loop_stop()

    def give_up(self) -> None:
        """Waits for a broker no more."""
        self._is_given_up.set()

    def close(self) -> None:
        """Lets the broker go."""
        self._let_go()

    def _key(self, number: int, place: int) -> str:
        return f"{self._run}.{self._results.query}.{number}.{place}"

    def _fault(self, said: str) -> OutputError:
        retry = f"ALTER QUERY {self._results.query} ACTIVATE"
        return OutputError(
            f"query {self._results.query}: topic {self._topic} at {self._broker.url}: {said}; see "
            f"that a broker answers there, then {retry}"
        )
