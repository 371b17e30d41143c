"""How many tuples of a stream are kept while there is more than can be done: a pure decision.

The *front* is the arrival of the oldest tuple that waits. If it moves by s seconds in a second, a
part s of what is kept can be done: that much is kept next (the load equation of one stream). Only
tuples that came under the last decision count for the next one. Up it goes by steps; who raised too
early waits twice as long before the next time, so that the rate does not swing.

Where it is known how much work comes in a second (the *load*), nobody has to wait until answers are
behind: as soon as so much work waits that they will be, the part of it is kept that can be done.
And no more is kept again than can be. What waits by then is thinned, so that it is done in time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millpond.approximation.checks import require

STEEPEST, LEAST_STEP = 0.1, 0.8
"""A decision keeps at least and at most these parts of what was kept before."""
RAISE = 4.0
"""By how much more is kept when there is time for it."""
EARLY = 0.25
"""If more than this part of what answers may be behind is work that waits, and more comes than can
be done, that is soon too much."""
LEAST_LOAD, TARGET = 0.2, 0.85
"""Then so much of what can be done is kept: the less, the more waits that has to be done too."""
FULL, LARGE = 0.9, 1.25
"""Where it is known how much comes, more is kept again up to that load, if it is so many times as
much at least."""
TRUSTED = 4.0
"""Answers that are behind by so many times what they may be show that it is not known."""
LEAST_PERCENT = 0.01
"""Nobody decides to keep less: some tuples always are."""
LATE, ROOM = 0.5, 0.1
"""No more may wait than is work for this part of the time by which answers may be behind, steps
under way included; beside these, for this part at least."""
LONGEST_SECONDS = 60.0
"""Nobody waits longer than that before more is kept."""


def left_percent(
    percent: float,
    least_percent: float,
    allowed_seconds: float,
    work_seconds: float,
    free_seconds: float,
) -> float:
    """How many percent are left of tuples that wait, of which so many were kept: of all work that
    waits, the ``free`` part is of tuples that no step has taken.

    >>> left_percent(40.0, 1.0, 2.0, work_seconds=0.9, free_seconds=0.9)
    40.0
    >>> left_percent(40.0, 1.0, 2.0, work_seconds=4.2, free_seconds=4.0)
    8.0
    """
    room = max(ROOM * allowed_seconds, LATE * allowed_seconds - (work_seconds - free_seconds))
    if free_seconds <= room:
        return percent
    return min(percent, max(least_percent, LEAST_PERCENT, round(percent * room / free_seconds, 4)))


@dataclass(frozen=True)
class Shedding:
    """What is remembered of a stream between two decisions."""

    allowed_seconds: float
    changed_at: float = float("-inf")
    was_raised: bool = False
    calm_since: float | None = None
    patience_seconds: float = 0.0
    watched_since: float | None = None
    first_front: float = 0.0
    """Where the front was then."""

    def __post_init__(self) -> None:
        require(self.allowed_seconds > 0, "answers have to be allowed to be behind by some time")

    @property
    def settling_seconds(self) -> float:
        """So long it has to be calm at least before more is kept."""
        return max(self.allowed_seconds / 2, self.patience_seconds)

    def decide(
        self,
        now: float,
        percent: float,
        least_percent: float,
        behind_seconds: float,
        load: float | None = None,
        work_seconds: float = 0.0,
    ) -> tuple[Shedding, float]:
        """What is remembered next, and how many percent are kept from now on.

        ``load``: how many seconds of work come in a second, if that is known; ``work_seconds``: how
        many seconds of work wait.

        >>> seen, percent = Shedding(1.0).decide(100.0, 100.0, 10.0, behind_seconds=0.0)
        >>> seen.decide(104.0, percent, 10.0, behind_seconds=3.0)[1]
        25.0
        """
        front = now - behind_seconds
        if load is not None and load > 1 and work_seconds > EARLY * self.allowed_seconds:
            wanted = min(TARGET, max(LEAST_LOAD, 1 - work_seconds / self.allowed_seconds))
            seen = replace(self, was_raised=False)  # that was not too early: more comes now
            return seen._lowered(now, percent, least_percent, wanted / load)
        is_known = load is not None and behind_seconds <= TRUSTED * self.allowed_seconds
        drains = is_known and load is not None and load <= 1
        if behind_seconds > self.allowed_seconds and not drains:
            return self._lower(now, front, percent, least_percent)
        watched = replace(self, watched_since=now, first_front=front)
        is_calm = behind_seconds <= self.allowed_seconds / 2
        if percent >= 100 or (self.calm_since is None and not is_calm):
            return replace(watched, calm_since=None), percent
        since = now if self.calm_since is None else self.calm_since
        has_waited = now - max(since, self.changed_at) >= self.settling_seconds
        times = RAISE if load is None else FULL / max(load, FULL / 100)
        if not is_calm or not has_waited or times < LARGE:
            return replace(watched, calm_since=since), percent
        return watched._changed(now, was_raised=True), min(100.0, times * percent)

    def _lower(
        self, now: float, front: float, percent: float, least_percent: float
    ) -> tuple[Shedding, float]:
        restless = replace(self, calm_since=None)
        if front < self.changed_at:  # what waits came before the last decision
            return restless, percent
        if self.watched_since is None or now <= self.watched_since:
            return replace(restless, watched_since=now, first_front=front), percent
        speed = (front - self.first_front) / (now - self.watched_since)
        return restless._lowered(now, percent, least_percent, max(STEEPEST, speed))

    def _lowered(
        self, now: float, percent: float, least_percent: float, part: float
    ) -> tuple[Shedding, float]:
        """That part of what was kept is kept from now on, or what queries tolerate."""
        restless, part = replace(self, calm_since=None), min(LEAST_STEP, part)
        lowered = min(percent, max(least_percent, LEAST_PERCENT, round(percent * part, 4)))
        if lowered == percent:  # no query tolerates less: sources wait
            return restless, percent
        patience = self.patience_seconds
        if self.was_raised:
            patience = min(LONGEST_SECONDS, 2 * self.settling_seconds)
        lower = restless._changed(now, was_raised=False)
        return replace(lower, patience_seconds=patience), lowered

    def _changed(self, now: float, was_raised: bool) -> Shedding:
        return replace(
            self, changed_at=now, was_raised=was_raised, calm_since=None, watched_since=None
        )
