"""A step is a transaction: prepared, executed by any thread, and committed or thrown away.

*Preparing* pins the parts of pages it reads. *Executing* writes pages and states under names nobody
else uses and changes nothing that anyone sees, so it may fail, be repeated or be forgotten.
*Committing* publishes all of it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from millpond.spark.fragments import STARTED, Reading
from millpond.storage.origins import Origins, mixed
from millpond.storage.pages import Page

if TYPE_CHECKING:
    from millpond.spark.operators.running import RunningOperator

DRIVER, EXECUTORS = "driver", "executors"
"""Where a step runs: rows and states come to the driver, or only references to them do."""


@dataclass(eq=False)
class Step:
    """What one operator is to do for (after, until]."""

    number: int
    running: RunningOperator
    after: int
    until: int
    readings: list[Reading]
    rows: int
    """About how many rows it reads."""
    place: str = DRIVER
    """Where it is to run."""
    outcome: Outcome | None = None
    error: BaseException | None = None
    lost: SparkSession | None = None
    """The session that died while the step was executed, if one did."""
    offenders: tuple[str, ...] = ()
    """Some of the rows that made it fail, where they are known."""
    repetitions: int = 0
    tag: str | None = None
    """What Spark knows its jobs by."""
    is_over: bool = False
    """Whether it was committed or thrown away."""

    @property
    def reached(self) -> int:
        """Up to where it came."""
        if self.outcome is None or self.outcome.until is None:
            return self.until
        return self.outcome.until

    @property
    def origins(self) -> Origins:
        """When the tuples came that start in this step; there are none where only time passes."""
        return mixed(
            (span.page.origins, span.rows)
            for reading in self.readings
            for spans in reading.spans.get(STARTED, ())
            for span in spans
            if span.page.origins
        )

    @property
    def is_finished(self) -> bool:
        """Whether it was executed, with or without success."""
        return self.outcome is not None or self.error is not None

    def pin(self) -> None:
        """Keeps what it reads until it is over."""
        for reading in self.readings:
            for page in reading.pages:
                page.pin()

    def unpin(self) -> None:
        """It is over; saying so again changes nothing."""
        if self.is_over:
            return
        self.is_over = True
        for reading in self.readings:
            for page in reading.pages:
                page.unpin()


@dataclass
class Outcome:
    """What a step has written, seen by nobody before it is committed."""

    output: Page | None
    place: str = DRIVER
    state: Any = None
    until: int | None = None
    """Up to where it came, if that is less far than it was prepared for."""
    seconds: float = 0.0
    driver_bytes: int = 0
    """How many bytes of rows came to the driver."""

    @property
    def rows(self) -> int:
        """How many rows it put out."""
        return self.output.rows if self.output else 0

    @property
    def bytes(self) -> int:
        """How many bytes these have."""
        return self.output.bytes if self.output else 0
