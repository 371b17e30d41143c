"""How much one may ask of a server; everything that comes from outside is bounded here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on requests, texts, plans and readers."""

    body_bytes: int = 16 * 2**20
    """The largest body of a request with tuples."""
    unpacked_bytes: int = 256 * 2**20
    """What such a body may unpack to, where it is compressed or says things once for many rows."""
    text_bytes: int = 2**20
    """The largest body of any other request."""
    text_characters: int = 100_000
    """The longest script."""
    statements: int = 1_000
    """The most statements in a script."""
    joins: int = 32
    """The most joins in one query."""
    queries: int = 50_000
    """The most registered queries; `--queries` says another number."""
    readers: int = 1_000
    """The most endless responses at once."""
    kept_rows: int = 10_000
    """How many results of a query are kept for readers, where no store keeps them all."""
    answer_rows: int = 100_000
    """The most rows of an answer that is given at once."""
    ask_rows: int = 1_000_000
    """The most rows a one-time question reads or holds, and a preview puts out."""
    ask_bytes: int = 128 * 2**20
    """The most bytes of them."""
    ask_seconds: float = 30.0
    """How long a one-time question or a preview may take."""
    asks_at_once: int = 2
    """How many one-time questions are worked on at once; others wait, as long as one may take."""
    requests_per_second: float = 500.0
    """What one address may ask, on the average."""
    request_burst: int = 2_000
    """What it may ask at once."""
    metrics_entities: int = 200
    """How many entities of a kind `/metrics` tells of, the most active ones."""
    idempotency_keys: int = 100_000
    """How many keys of earlier requests are remembered."""
