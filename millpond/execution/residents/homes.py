"""Which resident has the state of which bucket in memory: its *home*, where its tasks go.

The buckets of an operator are spread over those who are there. Who comes is given a share of them,
which it reads from the store; those of one that is gone have no home until a task of theirs is due.
"""

from collections import Counter, defaultdict
from collections.abc import Collection

Home = tuple[str, str, int]
"""The state of a bucket: its store, its operator, and its number."""

MOST_HOMES = 100_000
"""So many buckets are known by their homes; one without a home gets a new one."""


class Homes:
    """The homes of all buckets."""

    def __init__(self) -> None:
        self._known: dict[Home, str] = {}

    def of(self, state: Home, there: Collection[str]) -> str:
        """The home of a bucket; one that has none gets one among those who are there."""
        found = self._known.get(state)
        if found is None:
            found = self._fresh(state, there)
            self.move(state, found)
        return found

    def move(self, state: Home, name: str) -> None:
        """A bucket is at somebody's from now on."""
        if len(self._known) >= MOST_HOMES and state not in self._known:
            self._known.clear()  # of states that are gone for the most part
        self._known[state] = name

    def leave(self, name: str) -> None:
        """Somebody is gone: what was there has no home."""
        self._known = {state: other for state, other in self._known.items() if other != name}

    def come(self, name: str, count: int) -> None:
        """Somebody has come, and is one of so many: each operator gives its share of buckets, if it
        has as many."""
        by_operator = defaultdict[tuple[str, str], list[Home]](list)
        for state in self._known:
            by_operator[state[:2]].append(state)
        for states in by_operator.values():
            self._share(states, name, len(states) // count)

    def _share(self, states: list[Home], name: str, share: int) -> None:
        """Moves so many buckets of an operator, each from where the most of them are."""
        for _ in range(share):
            held = Counter(self._known[state] for state in states)
            fullest, most = held.most_common(1)[0]
            if most <= held[name] + 1:
                return
            self._known[next(s for s in states if self._known[s] == fullest)] = name

    def _fresh(self, state: Home, there: Collection[str]) -> str:
        """Where the fewest buckets of its operator are, and of those the fewest of all."""
        own, every = Counter[str](), Counter[str]()
        for other, name in self._known.items():
            every[name] += 1
            own[name] += other[:2] == state[:2]
        return min(there, key=lambda name: (own[name], every[name]))
