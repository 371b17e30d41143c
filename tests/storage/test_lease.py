"""One engine at a time drives a store, also where one that was paused goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from millpond import Engine
from millpond.connectors import json_lines
from millpond.connectors.sinks import NamedSink, Results
from millpond.errors import MillpondError, StateError, StoreError
from millpond.storage import lease as leases
from millpond.storage.lease import GUARD, LEASE_SECONDS, NAME, Lease, locked
from millpond.storage.log import CommitLog
from millpond.storage.soundness import held
from millpond.testing import RESULTS
from tests.crashing import die
from tests.patience import PATIENCE_SECONDS

PAUSED = """
import sys
from millpond import Engine
engine = Engine(store=sys.argv[1])
engine.execute("CREATE STREAM S (a INT); CREATE QUERY q AS SELECT a FROM S")
engine.push("S", [(1,)])
engine.run_until_idle()
print("ready", flush=True)
sys.stdin.readline()
for call in (lambda: engine.push("S", [(2,)]), engine.compact_log):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error, flush=True)
try:
    engine.close()
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""


def age(store) -> None:
    """As if nobody had said for long to be at work."""
    long_ago = time.time() - 2 * LEASE_SECONDS
    os.utime(store / NAME, (long_ago, long_ago))


def test_a_paused_process_loses_the_store_and_writes_nothing_more(tmp_path) -> None:
    store = tmp_path / "store"
    paused = subprocess.Popen(
        [sys.executable, "-c", PAUSED, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert paused.stdout.readline() == "ready\n"
    with pytest.raises(StateError, match="another engine has it open"):
        Engine(store=store)
    os.kill(paused.pid, signal.SIGSTOP)
    age(store)
    with Engine(store=store) as engine:
        assert engine.results("q")["a"].to_pylist() == [1]
        engine.push("S", [(3,)])
        os.kill(paused.pid, signal.SIGCONT)
        said, _ = paused.communicate("go on\n", timeout=PATIENCE_SECONDS)
        told = said.splitlines()
        assert len([line for line in told if "another engine has taken it, since" in line]) >= 2
        with pytest.raises(StateError, match="another engine has it open"):
            Engine(store=store)  # though the directory's lock is free
        engine.push("S", [(4,)])
        engine.run_until_idle()
    with Engine(store=store) as engine:
        assert engine.results("q")["a"].to_pylist() == [1, 3, 4]


def test_an_engine_that_took_over_dies_and_is_followed_after_a_while(tmp_path) -> None:
    store = tmp_path / "store"
    first = Engine(store=store)
    sink = NamedSink(json_lines.sink(Results("q", RESULTS), str(tmp_path / "out")), "q", "out")
    sink.refuse_lost = first.store.refuse_lost
    sink.refuse_lost()
    age(store)
    second = Engine(store=store)
    with pytest.raises(StateError, match="another engine has taken it"):
        sink.write(None)
    with pytest.raises(MillpondError, match="another engine has taken it"):
        first.execute("CREATE STREAM S (a INT)")
    first.close()  # nothing was to be written
    second.execute("CREATE STREAM S (a INT)")
    die(second)
    with pytest.raises(StateError, match="another engine has it open"):
        Engine(store=store)
    age(store)
    with Engine(store=store) as third:
        assert third.show("streams").num_rows == 1


def taken(folder) -> tuple[Lease, CommitLog]:
    lease = Lease.taken(folder, locked(folder))
    begins = not (folder / "log").exists()
    log = CommitLog(folder / "log", begins=begins, identity="s")
    log.lease = lease
    if lease.took_over:
        log.take_over(lease)
    if not begins:
        list(log.read())
    return lease, log


@pytest.mark.parametrize("moment", ["before", "behind"])
def test_what_is_appended_in_the_moment_of_the_change_is_not_acknowledged(
    tmp_path, monkeypatch, moment
) -> None:
    first, log = taken(tmp_path)
    log.append([{"n": 1}])
    write, others = os.write, []

    def paused(file: int, content: bytes) -> int:
        monkeypatch.undo()
        if moment == "behind":
            write(file, content)
        age(tmp_path)
        others.extend(taken(tmp_path))
        return len(content) if moment == "behind" else write(file, content)

    monkeypatch.setattr(os, "write", paused)
    with pytest.raises(StateError, match="another engine has taken it"):
        log.append([{"n": 2}])
    second, new = others
    new.append([{"n": 3}])
    found = [each["n"] for each in CommitLog(tmp_path / "log", identity="s").read()]
    assert found == ([1, 3] if moment == "before" else [1, 2, 3])
    with pytest.raises(StateError, match="another engine has taken it"):
        log.rewrite([{"n": 1}])
    assert [e["n"] for e in CommitLog(tmp_path / "log", identity="s").read()] == found
    first.let_go()
    second.close()
    assert not (tmp_path / NAME).exists()


def test_a_log_that_begins_anew_is_not_taken_meanwhile(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    first, _ = taken(tmp_path)
    age(tmp_path)
    with first.guarded(), pytest.raises(StateError, match="another engine has it open"):
        Lease.taken(tmp_path, locked(tmp_path))
    first.close()
    assert (tmp_path / GUARD).exists()


def test_it_is_said_again_and_again_that_an_engine_is_at_work(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.01)
    held = locked(tmp_path)
    (tmp_path / NAME).touch()
    age(tmp_path)
    second = Lease.taken(tmp_path, None)
    assert second.took_over
    os.close(held)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (tmp_path / NAME).read_bytes() != b"locked\n":  # it has the directory's lock by now
        assert time.monotonic() < deadline
        time.sleep(0.01)
    age(tmp_path)
    while time.time() - (tmp_path / NAME).stat().st_mtime > LEASE_SECONDS:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert locked(tmp_path) is None
    second.close()


def test_who_is_paused_while_its_log_begins_anew_writes_nothing_into_the_log_of_the_next(
    tmp_path, monkeypatch
) -> None:
    first, log = taken(tmp_path)
    log.append([{"n": 1}])
    append, others = CommitLog.append, []

    def paused(self, records) -> None:
        if self.path.suffix == ".new" and not others:
            age(tmp_path)
            others.extend(taken(tmp_path))
            append(others[1], [{"n": 2}])
        append(self, records)

    monkeypatch.setattr(CommitLog, "append", paused)
    with pytest.raises(MillpondError):  # it is refused, or its file is gone
        log.rewrite([{"n": 7}])
    monkeypatch.undo()
    second, new = others
    new.append([{"n": 3}])
    assert numbers_in(tmp_path) == [1, 2, 3]
    first.let_go()
    second.close()


def test_who_was_paused_is_refused_also_when_its_follower_has_closed(tmp_path) -> None:
    first, log = taken(tmp_path)
    log.append([{"n": 1}])
    age(tmp_path)
    second, new = taken(tmp_path)
    new.append([{"n": 2}])
    second.close()
    for change in (log.append, log.rewrite):
        with pytest.raises(StateError, match="another engine has taken it"):
            change([{"n": 9}])
    third, again = taken(tmp_path)  # though the paused one still has the directory
    again.append([{"n": 3}])
    assert numbers_in(tmp_path) == [1, 2, 3]
    first.let_go()
    third.close()


def test_a_log_whose_lease_cannot_be_looked_at_is_as_it_was(tmp_path, monkeypatch) -> None:
    lease, log = taken(tmp_path)
    log.append([{"n": 1}])
    looks = iter([False, True])

    def check(self) -> None:
        if next(looks):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(Lease, "check", check)
    with pytest.raises(StoreError, match="Input/output error"):
        log.append([{"n": 2}])
    monkeypatch.undo()
    log.append([{"n": 2}])
    assert numbers_in(tmp_path) == [1, 2]
    lease.close()


def test_who_looks_through_a_store_keeps_engines_out_and_is_kept_out(tmp_path) -> None:
    store = tmp_path / "store"
    first = Engine(store=store)
    first.execute("CREATE STREAM S (a INT)")
    die(first)
    age(store)
    with held(store), pytest.raises(StateError, match="another engine has it open"):
        Engine(store=store)
    second = Engine(store=store)
    with pytest.raises(StateError, match="an engine has it open"), held(store):
        pass
    second.close()


def numbers_in(folder) -> list[int]:
    return [each["n"] for each in CommitLog(folder / "log", identity="s").read()]
