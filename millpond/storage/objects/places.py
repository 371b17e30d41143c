"""Which file of a store lies where among its objects, and what is to be put together anew.

Files of a commit are put together: a few small ones into the object of the log, others into bundles
beside it. A bundle is garbage when no file in it is needed; of those that are garbage for the most
part the rest is put into others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from millpond.storage.objects.framing import Placed

FOLDER = "files"
"""Bundles lie there."""

IDLE_BYTES = 64 * 2**20
"""So much garbage is borne with, however little else there is."""


class Places:
    """Where each file lies, and how much of each object is needed."""

    def __init__(self) -> None:
        self.files: Placed = {}
        self._in: dict[str, set[str]] = {}
        """The needed files of an object."""
        self._bytes: dict[str, int] = {}
        """The bytes of all files that were put into it."""
        self._needed: dict[str, int] = {}
        self._garbage = self._all_needed = 0

    def take(self, placed: Placed) -> list[str]:
        """Files were put there; the bundles that go, as they lay there before."""
        left = self.drop(placed)
        for name, place in placed.items():
            bundle, _, length = place
            self.files[name] = place
            self._in.setdefault(bundle, set()).add(name)
            for counts in (self._bytes, self._needed):
                counts[bundle] = counts.get(bundle, 0) + length
            self._all_needed += length
        return left

    def drop(self, names: Iterable[str]) -> list[str]:
        """Files are needed no more; the bundles that go with them."""
        gone = [bundle for name in names if (bundle := self._leave(name)) is not None]
        return [bundle for bundle in gone if bundle.startswith(FOLDER)]

    def _leave(self, name: str) -> str | None:
        """Forgets a file; its object, if nothing in it is needed any more."""
        if name not in self.files:
            return None
        bundle, _, length = self.files.pop(name)
        self._in[bundle].discard(name)
        self._needed[bundle] -= length
        self._all_needed -= length
        self._garbage += length
        if self._in[bundle]:
            return None
        self._garbage -= self._bytes.pop(bundle)
        del self._in[bundle], self._needed[bundle]
        return bundle

    def sparse(self) -> set[str]:
        """The files that lie among much garbage, once there is much."""
        if self._garbage <= max(IDLE_BYTES, self._all_needed):
            return set()
        return self.in_objects(b for b in self._in if 2 * self._needed[b] < self._bytes[b])

    def in_objects(self, objects: Iterable[str]) -> set[str]:
        """The needed files that lie in some objects."""
        return {name for each in objects for name in self._in.get(each, ())}

    @property
    def objects(self) -> set[str]:
        """The objects in which something is needed."""
        return set(self._in)

    def by_object(self, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """Some files, those of an object together, as they lie there."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in names:
            found[self.files[name][0]].append(name)
        for each, its in found.items():
            yield each, sorted(its, key=lambda name: self.files[name][1])
