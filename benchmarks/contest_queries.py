"""The queries that Millpond and Structured Streaming both run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import structured_streaming as peer
from benchmarks.streams import TUPLES_PER_SECOND, WINDOW_SECONDS, Stream

HOPS = 10
"""The peer's windows move by this part of their length."""


@dataclass(frozen=True)
class Case:
    """One query on both sides."""

    name: str
    streams: tuple[Stream, ...]
    cql: str
    build: peer.Build
    goal: float | None
    """What was reached before against the peer as installed."""
    prototype: dict[str, float]
    """Tuples a second that the prototypes of design.md, section 10, reached."""
    is_stateful: bool = True
    same_rows: bool = False
    """Whether both sides must put out equally many rows."""

    @property
    def script(self) -> str:
        """The whole CQL script."""
        declared = " ".join(stream.declaration for stream in self.streams)
        return f"{declared} CREATE QUERY q AS {self.cql};"


_ONE = (Stream("S", keys=1_000, seed=1),)
_TWO = tuple(
    Stream(name, keys=TUPLES_PER_SECOND * WINDOW_SECONDS // 2, seed=seed,
           tuples_per_second=TUPLES_PER_SECOND // 2)
    for name, seed in (("L", 2), ("R", 3))
)  # fmt: skip
_RANGE = f"RANGE {WINDOW_SECONDS} SECONDS"

CASES = (
    Case(
        "filter", _ONE, "SELECT key, value FROM S WHERE value > 0.9", peer.filtered, 2.4,
        {"millpond": 1e5 / 0.061}, is_stateful=False, same_rows=True,
    ),
    Case(
        "aggregate", _ONE,
        f"SELECT key, count(*) AS n, max(value) AS largest FROM S [{_RANGE}] GROUP BY key",
        peer.aggregated(WINDOW_SECONDS, HOPS), 1.7, {"millpond": 187e3, "peer": 144e3},
    ),
    Case(
        "join", _TWO,
        f"SELECT L.key, L.value, R.value AS other FROM L [{_RANGE}], R [{_RANGE}] "
        "WHERE L.key = R.key",
        peer.joined(WINDOW_SECONDS), 2.4, {"millpond": 227e3, "peer": 117e3}, same_rows=True,
    ),
)  # fmt: skip
HOPPING = Case(
    "aggregate-hops", _ONE,
    f"SELECT key, count(*) AS n, max(value) AS largest "
    f"FROM S [{_RANGE} SLIDE {1000 * WINDOW_SECONDS // HOPS} MILLISECONDS] GROUP BY key",
    peer.aggregated(WINDOW_SECONDS, HOPS), None, {},
)  # fmt: skip
"""Millpond in hops too, to tell what being exact at every instant costs."""
