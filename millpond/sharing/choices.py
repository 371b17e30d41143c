"""What was chosen for queries that begin, beyond what their texts say, as the log keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

from millpond.sharing.containments import Data
from millpond.sharing.shared_joins import Numbers
from millpond.sharing.shared_totals import Summed


@dataclass
class Choices:
    """What was chosen for queries, by their names in lower case; others are as usual."""

    contained: dict[str, Data] = field(default_factory=dict)
    """Which selections read what others let through."""
    joined: dict[str, Numbers] = field(default_factory=dict)
    """The numbers of joins that are not shared."""
    summed: dict[str, Summed] = field(default_factory=dict)
    """Which aggregates read totals."""
    begins: dict[str, int] = field(default_factory=dict)
    """When queries begin anew that stood still and whose answers hold something."""
