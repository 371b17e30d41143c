"""The client of MQTT that sources and sinks share, which is installed apart."""

from __future__ import annotations

import importlib
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from millpond.connectors.secrets import Secret, revealed
from millpond.errors import InputError

ANSWER_SECONDS = 30.0
"""How long a broker has for an answer."""

LOOK_SECONDS = 0.2
"""So often whoever waits looks whether that is wanted still."""

KEEPALIVE_SECONDS = 60


class MqttBroker:
    """Where a broker is, and who asks it."""

    def __init__(self, owner: str, url: Any, user: Any, password: str | Secret) -> None:
        self.owner, self.url, text = owner, str(url), revealed(url)
        self.paho = _package("paho.mqtt.client")
        self._properties = _package("paho.mqtt.properties")
        self._types = _package("paho.mqtt.packettypes").PacketTypes
        try:
            parts = urlsplit(text) if isinstance(text, str) else None
            is_one = parts is not None and parts.scheme in ("mqtt", "mqtts") and parts.port != 0
        except ValueError:
            parts, is_one = None, False
        if parts is None or not is_one or not parts.hostname or parts.path not in ("", "/"):
            raise self.fault(f"a broker is 'mqtt://host:port' or 'mqtts://…', not {str(url)!r}")
        if parts.username or parts.password:
            raise self.fault("names and passwords do not stand in a URL; say user and password")
        if password and not isinstance(password, Secret):
            raise self.fault(
                "a password does not stand in a statement, where everybody reads it; write "
                "password = 'env:MILLPOND_SECRET_NAME'"
            )
        self._host, self._is_safe = parts.hostname, parts.scheme == "mqtts"
        self._port = parts.port or (8883 if self._is_safe else 1883)
        self._user, self._password = str(revealed(user)), revealed(password)

    def fault(self, said: str) -> InputError:
        """A fault that names whose it is, and the broker."""
        return InputError(f"{self.owner}: {self.url}: {said}")

    def client(self, name: str) -> Any:
        """A client that is not connected yet; messages are acknowledged by hand."""
        client = self.paho.Client(
            self.paho.CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=self.paho.MQTTv5,
            manual_ack=True,
        )
        if self._user:
            client.username_pw_set(self._user, self._password or None)
        if self._is_safe:
            client.tls_set()
        client.reconnect_delay_set(1, 10)
        return client

    def connect(self, client: Any, session_seconds: int, clean: bool, most: int = 65535) -> None:
        """Begins a session, or goes on with it; its thread runs from then on."""
        properties = self._properties.Properties(self._types.CONNECT)
        properties.SessionExpiryInterval = session_seconds
        properties.ReceiveMaximum = most
        try:
            client.connect(
                self._host, self._port, KEEPALIVE_SECONDS, clean_start=clean, properties=properties
            )
        except OSError as error:
            raise self.fault(f"no broker answers there ({error}); start it") from None
        client.loop_start()

    def ending(self) -> Any:
        """Says at the end of a connection that its session has ended too."""
        properties = self._properties.Properties(self._types.DISCONNECT)
        properties.SessionExpiryInterval = 0
        return properties

    def user_properties(self, *pairs: tuple[str, str]) -> Any:
        """What goes with a message beside its value."""
        properties = self._properties.Properties(self._types.PUBLISH)
        properties.UserProperty = list(pairs)
        return properties

    def wait(self, answered: Event, is_closed: Event) -> None:
        """Waits for an answer."""
        left = ANSWER_SECONDS
        while not answered.wait(LOOK_SECONDS) and not is_closed.is_set():
            left -= LOOK_SECONDS
            if left < 0:
                raise self.fault(f"no answer within {ANSWER_SECONDS:g} seconds")


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            "mqtt needs the package paho-mqtt; install it with pip install 'millpond[mqtt]'"
        ) from None
