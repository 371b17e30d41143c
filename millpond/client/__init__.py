"""A server as if it were an engine: `millpond.connect(url)`."""

from millpond.client.remote import RemoteEngine, connect

__all__ = ["RemoteEngine", "connect"]
