"""What strategies have been told of the plan, and what has changed since."""

import time
from collections.abc import Iterable

from millpond.execution.units import Unit
from millpond.identities import OperatorId

STATISTICS_SECONDS, TELLING_SHARE = 1.0, 0.005
"""How often strategies are told the measured costs and selectivities: but seldom enough for them to
take no more than such a part of the time to learn it."""


class Telling:
    """The version of the plan, and the operators of which something is to be told."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with every change of the graph, and now and then with what was measured."""
        self.changed: set[OperatorId] = set()
        """The operators whose queues, or whose work, have changed."""
        self.held: set[OperatorId] = set()
        """Those that were shown while they were to begin nothing: what held them may be over."""
        self._shown: set[OperatorId] = set()
        self._shown_version = 0
        self._told = time.monotonic()
        self._since: float | None = None
        self._seconds = 0.0
        """How long it took the strategy to learn the plan, and what it was made of."""

    def begins(self) -> None:
        """The strategy asks for the plan."""
        self._since = time.monotonic()

    def shows(self, units: Iterable[Unit]) -> None:
        """The strategy is shown the plan of now."""
        self._shown = {unit.identity for unit in units}
        self._shown_version = self.version

    def is_over(self) -> None:
        """The strategy has learnt the plan, if it was told one."""
        if self._since is not None:
            self._seconds = time.monotonic() - self._since
            self._since = None

    def is_shown(self, unit: Unit) -> bool:
        """Whether a unit was in the plan that the strategy was shown."""
        return unit.identity in self._shown

    @property
    def is_outdated(self) -> bool:
        """Whether there is another plan than the strategy was shown."""
        return self._shown_version != self.version

    def measured(self) -> None:
        """Something was measured; now and then the strategy is told."""
        now = time.monotonic()
        if now - self._told > max(STATISTICS_SECONDS, self._seconds / TELLING_SHARE):
            self._told = now
            self.version += 1
