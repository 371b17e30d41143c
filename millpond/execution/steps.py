"""A step is a transaction: prepared, executed by any thread, and committed or thrown away.

*Preparing* pins the parts of pages it reads. *Executing* writes pages and states under names nobody
else uses and changes nothing that anyone sees, so it may fail, be repeated or be forgotten.
*Committing* publishes all of it at once. The steps of the members of a virtual operator are
prepared, executed and committed together (`units.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from millpond.execution.fragments import ENDED, STARTED, Reading
from millpond.identities import OperatorId, QueueId
from millpond.planning.graph import operators_in
from millpond.storage.origins import Origins
from millpond.storage.pages import Page
from millpond.storage.readers import Remains

DRIVER, EXECUTORS = "driver", "executors"
"""Where a step runs: rows and states come to the driver, or only references to them do."""


class Runner(Protocol):
    """Whose step it is: an operator that runs."""

    @property
    def identity(self) -> OperatorId:
        """What it is called."""

    @property
    def inputs(self) -> Sequence[QueueId]:
        """The queues that it reads."""


Running = TypeVar("Running", bound=Runner)


@dataclass(eq=False)
class StepOf(Generic[Running]):
    """What one operator is to do for (after, until]."""

    number: int
    running: Running
    after: int
    until: int
    readings: list[Reading]
    rows: int
    """About how many rows it reads."""
    place: str = DRIVER
    """Where it is to run."""
    is_due: bool = True
    """Whether there is something to do, without what others in the same unit put out."""
    remains: Remains = Remains.ALL
    """What of its output somebody needs once the members of its unit have read it."""
    writes: Remains = Remains.ALL
    """What of its output the executors write."""
    outcome: Outcome | None = None
    error: BaseException | None = None
    offenders: tuple[str, ...] = ()
    """Some of the rows that made it fail, where they are known."""
    published: Page | None = None
    """What others will see of its output."""
    is_idle: bool = False
    """Whether there was nothing to do."""
    is_over: bool = False
    """Whether it was committed or thrown away."""

    @property
    def reached(self) -> int:
        """The time up to which the step came."""
        if self.outcome is None or self.outcome.until is None:
            return self.until
        return self.outcome.until

    def behind(self, done: Mapping[OperatorId, StepOf[Running]], until: int) -> StepOf[Running]:
        """The step with what others have put out that nobody else has seen, and no further than
        they came."""
        before = [done[name] for name in operators_in(self.running.inputs) if name in done]
        until = min([self.until, until, *(step.reached for step in before)])
        if not before and until == self.until:
            return self
        pages: dict[QueueId, Page] = {
            step.running.identity: step.outcome.output
            for step in before
            if step.outcome is not None and step.outcome.output is not None
        }
        readings = [
            reading.limited(self.after, until).with_fresh(pages, self.after, until)
            for reading in self.readings
        ]
        rows = sum(reading.rows(STARTED, ENDED) for reading in readings)
        return replace(self, readings=readings, until=until, rows=rows)

    def shortened(self, until: int) -> StepOf[Running]:
        """The step up to an earlier time."""
        readings = [reading.limited(self.after, until) for reading in self.readings]
        rows = sum(reading.rows(STARTED, ENDED) for reading in readings)
        return replace(self, readings=readings, until=until, rows=rows)

    def pin(self) -> None:
        """Keeps what it reads until it is over."""
        for reading in self.readings:
            for page in reading.pages:
                page.pin()

    def unpin(self) -> None:
        """Lets go of what the step reads: it is over; saying so again changes nothing."""
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
    began: float = 0.0
    """When it was begun, by the clock of this process."""
    driver_bytes: int = 0
    """How many bytes of rows came to the driver."""
    taken: int = 0
    """How many rows started in it, of those it read; the others ended."""
    origins: Origins = ()
    """When the tuples came that it stems from; none where only time has passed."""
    rows: int = 0
    """How many rows it put out, written or not."""
    bytes: int = 0
    """How many bytes these have."""

    def __post_init__(self) -> None:
        if self.output is not None:
            self.rows, self.bytes = self.output.rows, self.output.bytes


Step = StepOf[Any]
"""A step as operators see their own: whose it is they know."""


def is_due(step: Step, now: Step) -> bool:
    """Whether there is work, in its queues or by what others have just put out; an attempt that was
    given up may have counted the latter already."""
    return step.is_due or now.rows > sum(each.rows(STARTED, ENDED) for each in step.readings)
