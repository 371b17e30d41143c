"""What the running operators of an engine share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from millpond.identities import OperatorId, QueueId
from millpond.planning.bounded import AnyFreeing
from millpond.planning.punctuated import Closing
from millpond.storage.members import Members
from millpond.storage.queues import Queue
from millpond.storage.state_cache import StateCache
from millpond.storage.store import Store

START_SECONDS = 3.0
"""What Spark is expected to need until it can be asked."""


@dataclass
class Limits:
    """How steps are cut, where they run, and the seed of samples; SET changes them at any time."""

    step_rows: int = 500_000
    step_bytes: int = 2**27
    """How much memory the output of a step may take: more than that is made in several steps."""
    driver_rows: int = 50_000
    by_cost: bool = True
    """Whether steps of up to ``driver_rows`` go where they are quicker, or stay in the driver."""
    cores: int = 2
    buckets: int = 2
    """In how many parts rows and states are divided by keys."""
    divides_few: bool = False
    """Whether few rows are divided too, where there are no keys."""
    processors: int = 1
    at_once: bool = False
    """Whether whoever asks for a step executes it, however long it takes."""
    slice_seconds: float = 0.0
    """How long the rows of a step may take; 0: as long as was decided."""
    residents: int | None = None
    """How many residents do the steps on the executors; None: as many as there are cores."""
    seed: int = 0
    asks_spark: bool = False
    """Whether Spark evaluates the expressions of small steps too."""


@dataclass
class Missed:
    """What the steps of an engine would have taken less on executors that are not there yet.

    They are worth their start once that is as much as the start: later would be too late by as
    much, and earlier might have been for nothing.
    """

    seconds: float = 0.0

    @property
    def is_worth_a_start(self) -> bool:
        """Whether they are to be started."""
        return self.seconds > START_SECONDS


class Cluster(Protocol):
    """What operators must know of the executors."""

    @property
    def is_awaited(self) -> bool:
        """Whether asking them would mean to wait until they have started."""

    def let_go(self, operator: object) -> None:
        """Gives up what was prepared for the steps of an operator that is gone."""


@dataclass(frozen=True)
class Surroundings:
    """The queues, the store, the executors, and the settings."""

    queues: dict[QueueId, Queue]
    store: Store
    limits: Limits
    states: StateCache
    """What the driver holds of the operators' states."""
    cluster: Cluster
    groups: Mapping[str, Members] = field(default_factory=dict)
    """The queries of each shape, by the name of their group."""
    since: Mapping[QueueId, int] = field(default_factory=dict)
    """Streams are read after these times: a query sees what comes after its registration."""
    freeing: Callable[[OperatorId], Sequence[AnyFreeing]] = lambda identity: ()
    """Which rows of a join can be freed, as its inputs are bounded."""
    closing: Callable[[OperatorId], Sequence[Closing]] = lambda identity: ()
    """Which rows of a join or group can be freed, as its inputs are punctuated."""
    missed: Missed = field(default_factory=Missed)
    """What steps would have taken less on executors that are not there yet."""
