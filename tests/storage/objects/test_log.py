"""What the log of a store at an address makes of what goes wrong, with objects in memory."""

from __future__ import annotations

import errno
import math
import random
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from millpond import Engine
from millpond.errors import DamageError, MillpondError, StateError, StoreError
from millpond.storage.objects import framing, places
from millpond.storage.objects.framing import LogObject, framed
from millpond.storage.objects.lease import ObjectLease
from millpond.storage.objects.log import ObjectLog
from millpond.storage.objects.places import Places
from tests.object_faults import ADDRESS, SimulatedObjects, small_parts, trial


@pytest.fixture
def objects(monkeypatch):
    """Objects of a store with a stream that has had some tuples; engines find them."""
    found = SimulatedObjects(MemoryStore(), lambda kind: None)
    monkeypatch.setattr("millpond.storage.objects.remote.Objects", lambda address: found)
    with small_parts(), Engine(store=ADDRESS) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT) TIMESTAMP BY t; CREATE QUERY q AS SELECT t FROM S"
        )
        for t in range(5):
            engine.push("S", [(t,)] * 200)
        engine.finish()
    return found


def refused(match):
    with pytest.raises(DamageError, match=match):
        Engine(store=ADDRESS)


def in_log(objects):
    return sorted(objects.names("log"))


def test_a_log_object_that_is_gone_is_missed(objects):
    objects.delete([in_log(objects)[3]])
    refused(r"log/0+3 is missing; nothing was changed")


def test_the_end_of_a_log_that_is_gone_is_missed(objects):
    objects.delete([in_log(objects)[-1]])
    refused("was put there and is gone")


@pytest.mark.parametrize("at", [0, 5, 40, -1])
def test_a_log_object_that_was_changed_is_found(objects, at):
    name = in_log(objects)[2]
    content = bytearray(objects.get(name))
    content[at] ^= 1
    objects.put(name, bytes(content))
    refused(r"log/0+2 is damaged \(\d+ bytes\)")


def test_a_log_object_in_the_place_of_another_is_found(objects):
    names = in_log(objects)
    objects.put(names[2], objects.get(names[3]))
    refused(r"log/0+2 is damaged")


def test_a_log_object_of_another_format_is_refused(objects):
    number = len(in_log(objects))
    later = LogObject(number, "another", format=99, millpond="9.9")
    objects.put(f"log/{number:020}", framed(later))
    with pytest.raises(StateError, match=r"by Millpond 9\.9 in format 99"):
        Engine(store=ADDRESS)


def test_a_file_that_was_changed_is_found(objects):
    name = next(objects.names("files"))
    content = bytearray(objects.get(name))
    content[len(content) // 2] ^= 1
    objects.put(name, bytes(content))
    with pytest.raises(DamageError, match="is damaged within its"), Engine(store=ADDRESS) as engine:
        engine.results("q")


def test_a_bundle_that_is_gone_is_missed(objects):
    objects.delete(list(objects.names("files")))
    refused("is missing .* restore a copy of the objects")


@pytest.mark.parametrize("fate", ["lost", "late", "refused"])
@pytest.mark.parametrize("begins_anew", [False, True])
def test_what_was_refused_did_not_happen_though_it_is_there(monkeypatch, fate, begins_anew):
    fates = []
    says = lambda kind: fates.pop() if fates and kind == "create" else None  # noqa: E731
    objects = SimulatedObjects(MemoryStore(), says)
    monkeypatch.setattr("millpond.storage.objects.remote.Objects", lambda address: objects)
    with Engine(store=ADDRESS) as engine:
        engine.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT t FROM S")
        engine.push("S", [(0,)])
        fates.append(fate)
        with pytest.raises(StoreError):
            engine.compact_log() if begins_anew else engine.push("S", [(1,)])
        while objects.late:
            objects.late.pop()()
        engine.push("S", [(2,)])
    with Engine(store=ADDRESS) as engine:
        engine.finish()
        assert engine.results("q")["t"].to_pylist() == [0, 2]


def test_what_was_in_doubt_and_is_deleted_gives_no_number_back(monkeypatch):
    """Its number is before the fence of who has followed, and would be free again."""
    fates = []
    says = lambda kind: fates.pop() if fates and kind == "create" else None  # noqa: E731
    objects = SimulatedObjects(MemoryStore(), says)
    monkeypatch.setattr("millpond.storage.objects.remote.Objects", lambda address: objects)
    with small_parts(), Engine(store=ADDRESS) as first:
        first.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t")
        fates.append("lost")
        with pytest.raises(StoreError):
            first.push("S", [(1,)])
        number = first.journal._log.last_number + 1
        first.store.remote.lease._renewed = math.inf  # it is paused behind its last look
        with Engine(store=ADDRESS) as second:
            second.compact_log()
        assert f"log/{number:020}" not in in_log(objects)
        with pytest.raises(StateError, match="another engine has taken it"):
            first.push("S", [(2,)])


def test_a_damaged_lease_is_named_with_the_way_out(objects):
    for content in (b"", b"[]", b"{}"):
        objects.put("millpond.lease", content)
        refused("millpond.lease is damaged.* delete that object")
    objects.delete(["millpond.lease"])
    Engine(store=ADDRESS).close()


def test_an_address_at_which_something_else_is_is_left_alone(objects):
    objects.delete(["millpond.store"])
    refused("no mark millpond.store, so it is no store of Millpond")
    objects.put("millpond.store", b"{")
    refused("its mark millpond.store is damaged")


def test_a_server_that_puts_where_something_is_is_refused(objects, monkeypatch):
    monkeypatch.setattr(objects, "create", lambda *given: objects.put(*given) or True)
    with pytest.raises(StateError, match=r"If-None-Match.* so two engines could write there"):
        Engine(store=ADDRESS)


def test_copies_that_cannot_be_written_or_read_are_named(objects, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match="free some space"):
        Engine(store=ADDRESS)
    log = ObjectLog(objects, ObjectLease(objects, "w"), Copies())
    with pytest.raises(StoreError, match="somebody has removed or unmounted it"):
        log.append([])
    log.close()


class Copies:
    """One that is gone."""

    def loose(self):
        return {"gone"}

    def path(self, name):
        return Path("/nowhere") / name


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_whatever_happens_to_requests_nothing_is_lost_and_nothing_twice(seed):
    assert trial(seed)


@pytest.mark.slow
def test_a_commit_in_the_place_of_another_is_found(monkeypatch):
    """If what is there were not looked at, an engine that was paused would commit."""

    def put_anyway(log, content):
        log._objects.put(f"log/{log._number:020}", content)
        return True

    monkeypatch.setattr(ObjectLog, "_is_put", put_anyway)
    assert any(goes_wrong(seed) for seed in range(20))


def goes_wrong(seed):
    try:
        trial(seed)
    except (AssertionError, MillpondError):
        return True
    return False


def test_files_among_garbage_are_put_elsewhere(monkeypatch):
    monkeypatch.setattr(places, "IDLE_BYTES", 10)
    found = Places()
    found.take({"a": ("files/1", 0, 20), "b": ("files/1", 20, 5), "c": ("files/2", 0, 9)})
    assert found.drop(["a"]) == []
    assert found.sparse() == {"b"}
    assert found.take({"b": ("files/3", 0, 5)}) == ["files/1"]
    assert found.sparse() == set()
    assert found.drop(["c", "b"]) == ["files/2", "files/3"]
    assert found.objects == set()


def test_an_object_of_the_log_says_what_was_put_into_it():
    said = LogObject(3, "w", records=[{"kind": "x"}], placed={"f": ("", framing.HEAD_BYTES, 2)})
    content = framed(said, b"ab")
    assert framing.read(content, 3) == said
    assert content[framing.HEAD_BYTES :][:2] == b"ab"
    for end in random.Random(1).sample(range(len(content)), 10):
        assert framing.read(content[:end], 3) is None
    assert framing.read(content, 4) is None
