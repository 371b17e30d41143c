"""What control tables show and change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.planning.graph import Graph
from millpond.scheduling.strategy import Strategy
from millpond.sharing.ground import Ground
from millpond.sharing.queries import Queries

if TYPE_CHECKING:
    from millpond.execution.runtime import EngineRuntime


@dataclass(frozen=True)
class Controlled:
    """The queries that run, who executes statements about them, and the strategy in charge."""

    queries: Queries
    execute: Callable[[str], Any]
    strategy: Callable[[], Strategy | None]
    """None before there is work."""

    @property
    def ground(self) -> Ground:
        """What the queries stand on."""
        return self.queries.ground

    @property
    def graph(self) -> Graph:
        """Their operators."""
        return self.queries.graph

    @property
    def has_runtime(self) -> bool:
        """Whether operators run."""
        return self.queries.has_runtime

    @property
    def runtime(self) -> EngineRuntime:
        """The running operators."""
        return self.queries.runtime
