"""What the queries of an engine stand on: names, settings, store and log, what comes and what goes.

Some of it is another one once there is another store or setting, so whoever needs it asks here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.arguments import as_text
from millpond.catalog import Catalog, QueryEntry, StreamEntry
from millpond.connectors.claims import Claims
from millpond.delivery.deliveries import Deliveries
from millpond.errors import StateError
from millpond.intake.budget import Budget
from millpond.intake.inputs import Inputs
from millpond.interruption import WholeLock
from millpond.settings import Settings
from millpond.spark.lazy import LazySpark
from millpond.spelling import suggestion
from millpond.storage.journal import Journal
from millpond.storage.kept_pages import PageLog
from millpond.storage.statement_memory import StatementMemory
from millpond.storage.store import Store
from millpond.storage.transitions import Transition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Ground:
    """The parts of an engine that its queries need; what it gets later is not there before."""

    lock: WholeLock
    settings: Settings
    catalog: Catalog
    lazy_spark: LazySpark
    directory: Path
    budget: Budget
    claims: Claims = field(default_factory=Claims)
    """The files that sources read and sinks write."""
    opened: Transition = field(init=False)
    """What the log of the store says of this run."""
    given: Settings = field(init=False)
    """The settings with which the store was opened."""
    is_closed: bool = False
    store: Store = field(init=False)
    journal: Journal = field(init=False)
    memory: StatementMemory = field(init=False)
    inputs: Inputs = field(init=False)
    deliveries: Deliveries = field(init=False)

    @property
    def settings_now(self) -> Settings:
        """The settings with the tick that SET may have changed."""
        tick = f"{self.catalog.tick_microseconds} microseconds"
        return self.settings.with_option("tick", tick)

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started now if it was not yet."""
        return self.lazy_spark.session(self.settings, self.store)

    def force(self) -> None:
        """Has all that is acknowledged be in the log, and on the disk where it has to be."""
        if self.journal.forces:
            self.deliveries.force_sinks()
        self.journal.flush()

    def query_entry(self, name: str) -> QueryEntry:
        """The catalog entry of a query."""
        entry = self.catalog.get(as_text(name, "a name"))
        if not isinstance(entry, QueryEntry):
            return self.deliveries.of(name).entry
        return entry

    def stream_entry(self, name: str) -> StreamEntry:
        """The catalog entry of a stream."""
        entry = self.catalog.get(as_text(name, "a name"))
        if not isinstance(entry, StreamEntry):
            known = (each.name for each in self.catalog.of_kind(StreamEntry))
            raise StateError(f'no stream "{name}"{suggestion(name, known)}')
        return entry

    def page_log(self, query: str | None, late: str | None) -> PageLog:
        """The log of what a query puts out, or of a stream's late or violating tuples."""
        if late is not None:
            return self.inputs.aside_log(late)
        return self.deliveries.of(query or "")

    def check_open(self) -> None:
        """Refuses to do anything once the engine is closed."""
        if self.is_closed:
            raise StateError("the engine is closed; make a new one")
