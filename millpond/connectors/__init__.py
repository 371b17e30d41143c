"""Sources and sinks: where tuples come from and where results go, as Arrow tables.

A connector is a module with a function `source` or `sink` or both; what follows the first
parameter are the arguments and options that CQL passes. Name it in `registry.BUILT_IN`, or offer
it from a package of your own as an entry point of the group `millpond.connectors`.
"""

from millpond.connectors.arrow import arrow_schema, conform, to_ticks
from millpond.connectors.registry import open_sink, open_source
from millpond.connectors.rows import to_arrow
from millpond.connectors.sinks import Sink
from millpond.connectors.sources import Progress, Source

__all__ = [
    "Progress",
    "Sink",
    "Source",
    "arrow_schema",
    "conform",
    "open_sink",
    "open_source",
    "to_arrow",
    "to_ticks",
]
