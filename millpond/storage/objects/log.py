"""The log of a store at an address: numbered objects, each put once and never changed.

A commit is one object under the next number, which is put only if nobody has put one there. So an
engine that was paused while another took the store cannot commit: the other has begun with an
object under just that number, a fence, which stays when older ones are deleted. An answer that got
lost is asked for again: the object that is there is ours, or the store is another's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from millpond.errors import DamageError, StateError, StoreError
from millpond.storage.faults import naming, writing
from millpond.storage.formats import FORMAT, Record
from millpond.storage.objects import framing
from millpond.storage.objects.framing import HEAD_BYTES, LogObject, Placed, framed
from millpond.storage.objects.lease import Holder, ObjectLease
from millpond.storage.objects.objects import RESTORE, Objects
from millpond.storage.objects.places import FOLDER, Places

LOG = "log"
"""The objects of the log lie there."""

INLINE_BYTES = 256 * 2**10
"""Files of a commit that are no larger together are in its object of the log."""

BUNDLE_BYTES = 32 * 2**20
"""Others are put together up to this size; a larger one is an object by itself."""

LEAST_BYTES = 4 * 2**10
"""An object of the log counts as so long at least: each is read by a request."""

AT_ONCE = 8
"""So many requests are under way at once, at most."""

ATTEMPTS = 10
"""So often an engine tries to take a store into whose log others put objects meanwhile."""


class Copies(Protocol):
    """The files of a store that an engine works on."""

    def loose(self) -> set[str]:
        """Those that are in no object yet, and are needed."""

    def are_put(self, names: set[str]) -> None:
        """Some are in objects now, and the log says where."""

    def path(self, name: str) -> Path:
        """Where one lies."""


@dataclass(frozen=True)
class Commit:
    """What is to be put there as one."""

    records: list[Record]
    placed: Placed
    """Where its files are; in the object of the log where no bundle is named."""
    inline: bytes
    needed: set[str] | None
    """Of what begins anew, the files that it needs."""


class ObjectLog:
    """The log of one store, as one engine reads it and goes on with it."""

    def __init__(self, objects: Objects, lease: ObjectLease, copies: Copies) -> None:
        self._objects, self.lease, self._copies = objects, lease, copies
        self.forces = False
        """What is put there is there; nothing has to be forced."""
        self.places = Places()
        self.bytes = 0
        """How much is to be read when the store is opened."""
        self._number = 0
        """Of the next object."""
        self._since: list[int] = []
        """The objects that one that begins anew makes needless."""
        self._fences: list[int] = []
        """Those with which engines have taken the store: they stay."""
        self._in_doubt: list[bytes] = []
        """What may be there under the next number, though it was refused."""
        self._voids = False
        """Whether what is there under the last number was refused."""
        self._bundles = itertools.count()
        self._stray: list[str] = []
        """The bundles that were put there since the last commit."""
        self._garbage: list[str] = []
        """The bundles that were there before this engine, and that nothing needs."""
        self._threads = ThreadPoolExecutor(AT_ONCE, "millpond-objects")
        self._sweeper = ThreadPoolExecutor(1, "millpond-sweeper")

    # -- opening ---------------------------------------------------------------------------

    def open(self, before: Holder | None) -> list[Record]:
        """Takes the store, and says what is in its log. ``before``: who had it."""
        for _ in range(ATTEMPTS):
            bundles, there = set(self._objects.names(FOLDER)), self._there()
            self._refuse_lost_end(there, before)
            said = self._read(there)
            if said is None:
                continue
            number = there[-1] + 1 if there else 0
            fence = LogObject(number, self.lease.writer, begins=not there, fences=True)
            if self._objects.create(_name(number), framed(fence)):
                self._opened(said, fence, there, bundles)
                return [record for each in said for record in each.records]
        raise StateError(
            f"store {self._objects.address}: another engine writes to it; stop that one"
        )

    def _opened(
        self, said: list[LogObject], fence: LogObject, there: list[int], bundles: set[str]
    ) -> None:
        """The store is ours: goes on behind the fence.

        Bundles that were there before it, and are not in the log up to it, nobody will ever name:
        whoever had the store before cannot commit, and whoever has it later puts other ones there.
        """
        self._number = fence.number + 1
        for each in said:
            self.places.take(each.placed)
            self.places.drop(_gone(each.records))
        fences = [each.number for each in said if each.fences]
        self._fences = [*(said[0].kept if said else ()), *fences, fence.number]
        self._since = [number for number in there if number not in set(self._fences)]
        self._garbage = sorted(bundles - self.places.objects)
        self.lease.begin(fence.number)

    def _there(self) -> list[int]:
        names = (name.rpartition("/")[2] for name in self._objects.names(LOG))
        return sorted(int(name) for name in names if name.isdigit())

    def _refuse_lost_end(self, there: list[int], before: Holder | None) -> None:
        last = there[-1] if there else -1
        if before is not None and before.number > last:
            raise self._damage(_name(before.number), "was put there and is gone")

    def _read(self, there: Sequence[int]) -> list[LogObject] | None:
        """What is true, oldest first: from the last object on that says all before it.

        None if one went meanwhile: whoever had the store before has had it deleted, as needless.
        """
        said: list[LogObject] = []
        self.bytes = 0
        for last in range(len(there), 0, -AT_ONCE):
            some = there[max(0, last - AT_ONCE) : last]
            for each in reversed(list(self._threads.map(self._read_one, some))):
                if each is None:
                    return None
                self._refuse_gap(each, said)
                is_void = bool(said) and said[-1].voids
                said.append(each)
                if each.begins and not is_void:
                    return _without_void(said[::-1])
        if there:
            raise self._damage(_name(there[0]), "does not begin a log, and nothing is before it")
        return []

    def _refuse_gap(self, each: LogObject, later: list[LogObject]) -> None:
        if later and each.number + 1 != later[-1].number:
            raise self._damage(_name(each.number + 1), "is missing")

    def _read_one(self, number: int) -> LogObject | None:
        content = self._objects.get(_name(number))
        if content is None:
            return None
        said = framing.read(content, number)
        if said is None:
            raise self._damage(_name(number), f"is damaged ({len(content)} bytes)")
        if said.format != FORMAT:
            raise StateError(
                f"store {self._objects.address}: {_name(number)} was written by Millpond "
                f"{said.millpond} in format {said.format}, and this version reads {FORMAT}; open "
                "it with the version that wrote it"
            )
        self.bytes += max(len(content), LEAST_BYTES)
        return said

    def _damage(self, name: str, what: str) -> DamageError:
        return DamageError(f"store {self._objects.address}: {name} {what}; {RESTORE}")

    # -- files -----------------------------------------------------------------------------

    def fetch(self, names: Iterable[str]) -> None:
        """Makes copies of files, as far as they are somewhere."""
        known = [name for name in names if name in self.places.files]
        each = self.places.by_object(known)
        for _ in self._threads.map(lambda found: self._fetch_of(*found), each):
            pass

    def _fetch_of(self, bundle: str, names: list[str]) -> None:
        spans = [self.places.files[name][1:] for name in names]
        try:
            contents = self._objects.ranges(bundle, spans)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return  # that its files are missing is said where they are needed
            raise
        for path, content in zip(map(self._copies.path, names), contents, strict=True):
            with writing(path):
                path.write_bytes(content)

    def remove_garbage(self) -> None:
        """Deletes what engines have left that died."""
        self._sweep(self._garbage)
        self._garbage = []

    def _sweep(self, names: Iterable[str]) -> None:
        """Deletes objects that nobody reads; one that cannot be goes when the store is opened."""
        doomed = list(names)
        if doomed:
            self._sweeper.submit(self._objects.delete, doomed)

    # -- going on --------------------------------------------------------------------------

    def append(self, records: list[Record]) -> None:
        """Puts records there, with the files that they name: all of it or nothing."""
        self._commit(records, self._copies.loose() | self._on_disk(self.places.sparse()))
        self._sweep(self.places.drop(_gone(records)))

    def rewrite(self, records: list[Record]) -> None:
        """Begins anew with records that say all that was said; those before are deleted."""
        loose, since = self._copies.loose(), self._since
        needed = loose.union(*map(_made, records))
        elsewhere = self.places.in_objects(map(_name, since)) | self.places.sparse()
        self._commit(records, loose | self._on_disk(elsewhere & needed), needed)
        self._sweep(self.places.drop(self.places.files.keys() - needed))
        self._sweep({*map(_name, since)} - self.places.objects)

    def _on_disk(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if self._copies.path(name).exists()}

    def _commit(
        self, records: list[Record], files: set[str], needed: set[str] | None = None
    ) -> None:
        """Puts it there; ``needed``: of what begins anew, all files that are."""
        self.lease.check()
        placed, inline = self._put_files(files)
        content = self._put(Commit(records, placed, inline, needed))
        number, self._voids = self._number - 1, False
        self.lease.has_put(number)
        self._copies.are_put(files)
        used = {bundle for bundle, _, _ in placed.values()}
        left = self.places.take(_at(placed, _name(number)))
        self._sweep([*left, *(bundle for bundle in self._stray if bundle not in used)])
        self._stray = []
        before = (self.bytes, self._since) if needed is None else (0, [])
        self.bytes = before[0] + max(len(content) - len(inline), LEAST_BYTES)
        self._since = [*before[1], number]

    def _put(self, commit: Commit) -> bytes:
        """Puts the next object there; what it is."""
        while True:
            content = framed(self._said(commit), commit.inline)
            is_put = self._is_put(content)
            self._number, self._in_doubt = self._number + 1, []
            if is_put:
                return content
            self._since = [*self._since, self._number - 1]
            self._voids = True

    def _said(self, commit: Commit) -> LogObject:
        placed = _at(commit.placed, _name(self._number))
        if commit.needed is not None:
            kept = self.places.files
            placed = {name: kept[name] for name in commit.needed & kept.keys()} | placed
        return LogObject(
            self._number,
            self.lease.writer,
            commit.needed is not None,
            voids=self._voids,
            records=commit.records,
            placed=placed,
            kept=[] if commit.needed is None else self._fences,
        )

    def _is_put(self, content: bytes) -> bool:
        """Whether it is there now; not, if something of ours is there that was refused."""
        name = _name(self._number)
        try:
            while not self._objects.create(name, content):
                there = self._objects.get(name)
                if there is not None and there in (content, *self._in_doubt):
                    return there == content
                if there is not None:
                    self._lose()
            if self._in_doubt and self._objects.get(_name(self._number + 1)) is not None:
                self._lose()  # what was in doubt was there, before a fence, and was deleted since
        except StoreError:
            self._in_doubt.append(content)
            raise
        return True

    def _lose(self) -> None:
        """Another engine has the store."""
        self.lease.lose()
        self.lease.check()

    # -- bundles ---------------------------------------------------------------------------

    def _put_files(self, names: Iterable[str]) -> tuple[Placed, bytes]:
        """Puts files into bundles; small ones together are for the object of the log."""
        sizes = {name: self._size(name) for name in sorted(names)}
        if sum(sizes.values()) <= INLINE_BYTES:
            return _placed("", sizes, HEAD_BYTES), self._content(sizes)
        placed: Placed = {}
        bundles = {self._new_bundle(): some for some in _divided(sizes)}
        for bundle, some in bundles.items():
            placed |= _placed(bundle, some, 0)
        for _ in self._threads.map(self._upload, bundles, bundles.values()):
            pass
        return placed, b""

    def _upload(self, bundle: str, sizes: Mapping[str, int]) -> None:
        only = self._copies.path(next(iter(sizes)))
        self._objects.put(bundle, only if len(sizes) == 1 else self._content(sizes))

    def _size(self, name: str) -> int:
        path = self._copies.path(name)
        with naming(path):
            return path.stat().st_size

    def _content(self, names: Iterable[str]) -> bytes:
        return b"".join(map(self._read_copy, names))

    def _read_copy(self, name: str) -> bytes:
        path = self._copies.path(name)
        with naming(path):
            return path.read_bytes()

    def _new_bundle(self) -> str:
        bundle = f"{FOLDER}/{self.lease.writer}-{next(self._bundles)}"
        self._stray.append(bundle)
        return bundle

    @property
    def last_number(self) -> int:
        """The number of the last object."""
        return self._number - 1

    def close(self) -> None:
        """Waits for what is being deleted."""
        self._sweeper.shutdown()
        self._threads.shutdown()


def _name(number: int) -> str:
    return f"{LOG}/{number:020}"


def _at(placed: Placed, log_object: str) -> Placed:
    """The same, with files that are in the object of the log where that is."""
    return {name: (bundle or log_object, at, n) for name, (bundle, at, n) in placed.items()}


def _placed(bundle: str, sizes: Mapping[str, int], offset: int) -> Placed:
    placed: Placed = {}
    for name, size in sizes.items():
        placed[name] = (bundle, offset, size)
        offset += size
    return placed


def _divided(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Files in parts of up to the size of a bundle; large ones by themselves."""
    part: dict[str, int] = {}
    for name, size in sizes.items():
        if part and sum(part.values()) + size > BUNDLE_BYTES:
            yield part
            part = {}
        part[name] = size
    if part:
        yield part


def _without_void(said: list[LogObject]) -> list[LogObject]:
    """What happened: an object that the next one calls void did not."""
    void = {each.number - 1 for each in said if each.voids}
    return [each for each in said if each.number not in void]


def _gone(records: Iterable[Record]) -> list[str]:
    return [name for each in records if each["kind"] == "files" for name in each["gone"]]


def _made(record: Record) -> list[str]:
    return [made[0] for made in record["made"]] if record["kind"] == "files" else []
