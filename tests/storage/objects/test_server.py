"""Stores at an address, on a server that speaks S3."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from obstore.store import from_url

from millpond import Engine
from millpond.errors import MillpondError, StateError, StoreError
from millpond.storage.objects import lease as leases
from millpond.storage.objects import objects as requests
from millpond.storage.objects.objects import Objects
from tests.crashing import die, validate_open
from tests.object_kills import trial
from tests.s3_server import UnreachableError, objects_at, serving

pytestmark = pytest.mark.slow

STATEMENTS = """
CREATE STREAM S (t BIGINT, k INT) TIMESTAMP BY t;
CREATE QUERY q AS SELECT k, count(*) AS n FROM S [RANGE 5] GROUP BY k
"""


@pytest.fixture(scope="module")
def server():
    try:
        with serving() as found:
            yield found
    except UnreachableError as error:
        pytest.skip(f"no server that speaks S3: {error}")


def test_an_object_is_created_once(server):
    objects = Objects(server.new_address())
    assert objects.get("log/1") is None
    assert objects.create("log/1", b"one")
    assert not objects.create("log/1", b"two")
    assert objects.get("log/1") == b"one"
    assert objects.ranges("log/1", [(0, 1), (1, 2)]) == [b"o", b"ne"]
    assert list(objects.names("log")) == ["log/1"]
    objects.delete(["log/1", "log/2"])
    assert list(objects.names()) == []


def test_an_engine_goes_on_where_another_one_has_ended(server):
    address = server.new_address()
    with Engine(store=address) as engine:
        engine.execute(STATEMENTS)
        for t in range(4):
            engine.push("S", [(t, t % 2)])
            engine.run_until_idle()
        engine.compact_log()
        engine.push("S", [(9, 1)])
        engine.run_until_idle()
        found, folder = engine.results("q").to_pylist(), engine.store.directory
    assert not folder.exists()
    with Engine(store=address) as engine:
        engine.execute(STATEMENTS)
        validate_open(engine)
        assert engine.results("q").to_pylist() == found != []


def test_one_engine_at_a_time_has_a_store(server, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(leases, "LOOK_SECONDS", 0.05)
    address = server.new_address()
    with Engine(store=address) as first:
        with pytest.raises(StateError, match=r"another engine has it open, on .* \(process \d+\)"):
            Engine(store=address)
        first.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t")
        first.store.remote.lease.let_go()  # it is paused
        monkeypatch.setattr(leases, "LEASE_SECONDS", 0.0)
        with Engine(store=address) as second:
            with pytest.raises(StateError, match="another engine has taken it"):
                first.push("S", [(1,)])
            with pytest.raises(StateError, match="another engine has taken it"):
                first.store.refuse_lost()
            second.push("S", [(2,)])
            assert second.show("streams").num_rows == 1


def test_a_server_that_is_away_refuses_as_a_full_disk_does(server, monkeypatch):
    with Engine(store=server.new_address()) as engine:
        engine.execute(STATEMENTS)
        objects = engine.journal._log._objects
        there = objects._store
        objects._store = from_url(
            objects.address, endpoint="http://127.0.0.1:1", client_options={"allow_http": True},
            retry_config={"max_retries": 2},
        )  # fmt: skip
        with pytest.raises(StoreError, match="the server cannot be asked"):
            engine.push("S", [(1, 1)])
        with pytest.raises(MillpondError, match="the server cannot be asked"):
            engine.execute("DROP QUERY q")
        objects._store = there
        engine.push("S", [(2, 1)])
        engine.advance("S", 3)
        engine.run_until_idle()
        assert engine.results("q")["ts"].to_pylist() == [2]


def test_a_server_that_comes_back_is_waited_for(server):
    objects = Objects(server.new_address())
    server.pause()
    threading.Timer(0.2, server.go_on).start()
    assert objects.create("a", b"a")


def test_a_bucket_that_is_not_there_is_named(server):
    with pytest.raises(StoreError, match=r"s3://nobody-has-this/store.*no such bucket"):
        Engine(store="s3://nobody-has-this/store")


def test_credentials_that_the_server_does_not_know_are_named(server):
    address = server.new_address()
    server.asks_for_credentials()
    try:
        with pytest.raises(StoreError, match="does not know the access key"):
            Engine(store=address)
    finally:
        server.asks_for_none()


def test_a_request_is_not_repeated_for_ever(monkeypatch):
    monkeypatch.setattr(requests, "AWAY_SECONDS", 0.3)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    with pytest.raises(StoreError, match="it can be tried again"):
        Engine(store="s3://bucket/store")


def test_an_engine_that_dies_is_followed_at_once(server, tmp_path: Path):
    assert trial(server, tmp_path, seed=5, kills=1) == 1


def test_what_was_left_of_commits_that_never_were_is_deleted(server):
    address = server.new_address()
    with Engine(store=address) as engine:
        engine.execute(STATEMENTS)
    Objects(address).put("files/of-a-commit-that-never-was", b"x")
    with Engine(store=address):
        pass
    assert "files/of-a-commit-that-never-was" not in objects_at(address)


def test_a_death_in_the_same_process_is_no_close(server, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.0)
    address = server.new_address()
    engine = Engine(store=address)
    engine.execute(STATEMENTS)
    die(engine)
    with Engine(store=address) as other:
        assert other.show("queries").num_rows == 1
