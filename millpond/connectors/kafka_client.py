"""The client of Kafka that sources and sinks share, which is installed apart."""

from __future__ import annotations

import importlib
from typing import Any

from millpond.errors import InputError

POLL_SECONDS = 0.2
"""How long a message is waited for before it is looked whether anybody wants one still."""

ANSWER_SECONDS = 30.0
"""How long brokers have for an answer."""


def client() -> Any:
    """The package; where it is not installed an error says how to install it."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise InputError(
            "kafka needs the package confluent-kafka; install it with pip install 'millpond[kafka]'"
        ) from None


def words_of(error: Any) -> str:
    """What a fault of the client says."""
    return str(error.args[0].str() if error.args else error)
