"""Residents: steps are done there as in the driver, whoever dies, hangs or is cut off meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from dataclasses import replace

import psutil
import pyarrow as pa
import pytest

from millpond.errors import MillpondError
from millpond.execution.residents import durations, pool, wire
from millpond.execution.residents.encryption import made_certificate
from millpond.execution.residents.packing import Packing, Unpacking
from millpond.execution.residents.pool import Asker, ResidentLostError, Residents
from millpond.execution.residents.wire import Invitation, Kind, RefusedError
from tests.execution.doing import Doing, Unreadable
from tests.execution.nursery import begin
from tests.execution.test_executor import QUERIES, answers
from tests.execution.with_residents import crew, executor
from tests.patience import PATIENCE_SECONDS, wait_until

EXPECTED = {}


def expected():
    if not EXPECTED:
        EXPECTED.update(answers(10**9)[0])
    return EXPECTED


@pytest.mark.parametrize(
    ("count", "tasks", "is_stored", "is_encrypted"),
    [(1, 0, True, False), (2, 3, False, True), (4, 2, True, False)],
)
def test_residents_answer_what_the_driver_does(
    monkeypatch, tmp_path, count, tasks, is_stored, is_encrypted
):
    with crew(count, certificate=made_certificate() if is_encrypted else None) as there:
        monkeypatch.setattr("millpond.spark.executor.SparkExecutor", executor(there))
        store = tmp_path / "store" if is_stored else None
        assert answers(0, store, tasks=tasks)[0] == expected()
        assert there.residents.lost == 0


def test_residents_that_are_killed_lose_nothing(monkeypatch, tmp_path):
    """Ten are killed while tasks are handed out, at random moments."""
    chance, kills = random.Random(7), []
    with crew(2) as there:

        def kill():
            if len(kills) < 10 and chance.random() < 0.2:
                kills.append(chance.random() / 100)
                threading.Timer(kills[-1], kill_one).start()

        def kill_one():
            for pid in there.pids[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        monkeypatch.setattr("millpond.spark.executor.SparkExecutor", executor(there, kill))
        assert answers(0, tmp_path / "store", tasks=3)[0] == expected()
        assert len(kills) == 10


def test_one_that_hangs_is_ended_and_its_task_done_by_another(monkeypatch):
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 10.0)  # on a busy machine all are silent for two
    with crew(2) as there:
        stopped = []

        def stop():
            if not stopped and len(there.pids) == 2:
                stopped.append(there.pids[0])
                os.kill(stopped[0], signal.SIGSTOP)

        monkeypatch.setattr("millpond.spark.executor.SparkExecutor", executor(there, stop))
        counts = {"counts": QUERIES["counts"]}
        assert answers(0, queries=counts, tasks=2)[0] == {"counts": expected()["counts"]}
        assert stopped
        assert has_ended(stopped[0])


def has_ended(pid):
    return wait_until(lambda: not psutil.pid_exists(pid))


# -- single tasks ----------------------------------------------------------------------------


def do(there, action="", tasks=1, has_state=False, operator="op1", **more):
    asker = Asker(operator, has_state)
    return there.residents.answers(Doing(action, **more), None, tasks, asker)


def test_with_nobody_left_whoever_asks_is_told_so(monkeypatch):
    monkeypatch.setattr(pool, "COME_SECONDS", 0.5)
    there = Residents("127.0.0.1")
    assert there.answers(Doing(""), None, 1) is None
    assert not there.is_awaited
    there.close()
    assert there.answers(Doing(""), None, 1) is None


def test_one_that_has_nothing_to_do_is_let_go():
    idle = threading.Event()
    there = Residents("127.0.0.1", idle_seconds=0.1, let_go=lambda resident: idle.set())
    process = begin(there.invite())
    assert idle.wait(PATIENCE_SECONDS)
    there.close()
    process.wait()


def test_a_task_that_was_lost_is_done_by_another(tmp_path):
    with crew(2) as there:
        assert len(do(there, "end once", path=str(tmp_path / "ended"))) == 1
        assert there.residents.lost == 1


def test_a_task_that_ends_every_process_is_given_up():
    with crew(1) as there, pytest.raises(ResidentLostError, match="exited unexpectedly"):
        do(there, "end")


def test_what_a_task_raises_is_told_and_the_resident_stays():
    with crew(1) as there:
        with pytest.raises(pool.RaisedError, match="ZeroDivisionError: by nought"):
            do(there, "raise")
        do(there)
        assert there.residents.lost == 0


def test_a_task_beyond_its_deadline_is_ended(monkeypatch):
    monkeypatch.setattr(durations, "UNKNOWN_SECONDS", 0.5)
    monkeypatch.setattr(pool, "MOST_LOSSES", 1)
    with crew(1) as there, pytest.raises(ResidentLostError):
        do(there, "sleep")


def cancel_once(is_so, residents):
    """Cancels the steps of an engine as soon as something is so."""
    threading.Thread(target=lambda: wait_until(is_so) and residents.cancel("engine-1")).start()


def test_a_task_that_is_cancelled_is_waited_for_no_longer_and_ended(monkeypatch):
    monkeypatch.setattr(pool, "FOR_NOBODY_SECONDS", 0.1)
    with crew(1) as there:
        [before] = do(there)
        [resident] = there.residents.there

        def is_begun():
            doing = resident.doing
            return doing is not None and doing.job.asker.tag == "engine-1-step-3"

        cancel_once(is_begun, there.residents)
        with pytest.raises(pool.CancelledStepError):
            there.residents.answers(Doing("sleep"), None, 1, Asker(tag="engine-1-step-3"))
        [after] = do(there)
        assert before["pid"] != after["pid"]


def test_a_step_that_waits_for_a_resident_can_be_cancelled(residents):
    cancel_once(lambda: residents._waiting, residents)
    with pytest.raises(pool.CancelledStepError):
        residents.answers(Doing(""), None, 1, Asker(tag="engine-1"))
    assert residents.is_awaited


def test_a_task_that_cannot_be_read_is_told_and_the_next_one_has_a_fresh_resident():
    with crew(1) as there:
        [before] = do(there)
        with pytest.raises(pool.RaisedError, match="CannotBeRead"):
            there.residents.answers(Unreadable(), None, 1)
        [after] = do(there)
        assert before["pid"] != after["pid"]


def test_a_port_that_was_given_up_can_be_taken_again():
    first = Residents("127.0.0.1")
    port = first.invite().port
    first.close()
    Residents("127.0.0.1", port).close()


def test_the_tag_of_one_engine_is_not_that_of_another():
    with crew(1) as there:
        threading.Timer(0.05, lambda: there.residents.cancel("engine-1")).start()
        for _ in range(20):
            assert there.residents.answers(Doing(""), None, 1, Asker(tag="engine-10"))
            time.sleep(0.01)


def test_a_bucket_stays_with_the_resident_that_has_its_state(monkeypatch):
    monkeypatch.setattr(pool, "MOVE_SECONDS", 600.0)
    with crew(2) as there:
        while len(there.pids) < 2:
            time.sleep(0.01)
        places = {
            tuple(each["pid"] for each in do(there, tasks=2, has_state=True)) for _ in range(9)
        }
        assert len(places) == 1
        assert len(set(*places)) == 2


def waiting_task(rows):
    return pool._Waiting(pool._Job(Doing(""), None, Asker("op1", rows=rows)), 0, ("", "op1", 0))


def test_a_task_waits_for_its_home_as_long_as_a_few_of_its_operator_take(residents):
    waiting = waiting_task(rows=10)
    home, other = (pool.Connected(name, None, "", 0) for name in "ab")
    residents._homes.move(waiting.home, "a")
    residents._durations.record(waiting.job.operator, 10, 100.0)
    assert residents._may_do(home, waiting, waiting.since)
    assert not residents._may_do(other, waiting, waiting.since + 299)
    assert residents._may_do(other, waiting, waiting.since + 301)


def test_a_task_is_overdue_by_its_own_rows(residents):
    large, small = waiting_task(rows=10**6), waiting_task(rows=10)
    residents._durations.record(large.job.operator, 10**6, 100.0)
    for waiting, is_overdue in ((large, False), (small, True)):
        began = time.monotonic() - 1_000
        busy = pool.Connected("a", None, "", 0, doing=waiting, began=began)
        assert residents._is_overdue(busy) is is_overdue


def test_a_resident_that_comes_is_given_buckets_that_are_at_home_elsewhere(monkeypatch):
    monkeypatch.setattr(pool, "MOVE_SECONDS", 600.0)  # nobody is so slow
    with crew(1) as there:
        [pid] = {each["pid"] for each in do(there, tasks=4, has_state=True)}
        second = begin(there.residents.invite())
        wait_until(lambda: len(there.pids) == 2)
        found = {each["pid"] for each in do(there, tasks=4, has_state=True)}
        assert found == {pid, second.pid}


def test_a_bucket_moves_when_its_resident_goes():
    with crew(2) as there:
        [before] = do(there, has_state=True)
        os.kill(before["pid"], signal.SIGKILL)
        [after] = do(there, has_state=True)
        assert before["pid"] != after["pid"]


# -- who may come ----------------------------------------------------------------------------


@pytest.fixture
def residents():
    there = Residents("127.0.0.1")
    yield there
    there.close()


def test_who_does_not_know_the_secret_is_refused(residents):
    wrong = replace(residents.invite(), secret=b"x" * 32)
    with pytest.raises((RefusedError, EOFError, OSError)):
        wrong.connect()
    assert residents.there == []


def test_nobody_is_let_in_who_talks_in_the_clear_or_trusts_another_driver(monkeypatch):
    there = pool.Residents("127.0.0.1", certificate=made_certificate())
    invitation = there.invite()
    for wrong in ("", made_certificate().public):
        with monkeypatch.context() as hurried:
            hurried.setattr(wire, "GREETING_SECONDS", 1.0)  # in the clear nobody greets
            with pytest.raises((EOFError, OSError)):
                replace(invitation, certificate=wrong).connect()
    connection = invitation.connect()
    assert connection._socket._socket.version() == "TLSv1.3"
    connection.close()
    there.close()


def test_closing_an_encrypted_connection_wakes_who_sends():
    there = pool.Residents("127.0.0.1", certificate=made_certificate())
    connection, ended = there.invite().connect(), threading.Event()
    connection.expect_within(None)

    def send():
        with contextlib.suppress(OSError):
            connection.send(Kind.TASK, bytes(10**9))
        ended.set()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    wait_until(sender.is_alive)
    time.sleep(0.1)  # until what the other side takes is full, or before: both must end
    connection.close()
    assert ended.wait(PATIENCE_SECONDS)
    there.close()


def test_encryption_without_the_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MillpondError, match=r"pip install 'millpond\[tls\]'"):
        made_certificate()


def test_an_invitation_is_good_for_one_connection_at_a_time(residents):
    invitation = residents.invite()
    first = invitation.connect()
    with pytest.raises((EOFError, OSError)):
        invitation.connect()
    first.close()
    wait_until(lambda: _comes(invitation))  # Spark began the task again
    assert residents.disinvite(invitation.name)
    assert not _comes(invitation)


def _comes(invitation):
    try:
        invitation.connect().close()
    except (EOFError, OSError):
        return False
    return True


def test_one_who_was_not_invited_is_refused(residents):
    with pytest.raises((EOFError, OSError)):
        replace(residents.invite(), name="resident-99").connect()


def test_a_driver_that_does_not_know_the_secret_is_refused():
    server = socket.create_server(("127.0.0.1", 0))

    def pretend():
        connection, _ = server.accept()
        connection.sendall(b"n" * 32)
        connection.recv(1000)
        connection.sendall(b"p" * 32)
        time.sleep(0.2)
        connection.close()

    threading.Thread(target=pretend, daemon=True).start()
    invitation = Invitation("127.0.0.1", server.getsockname()[1], "resident-1", b"s" * 32)
    with pytest.raises(RefusedError, match="does not know resident"):
        invitation.connect()
    server.close()


@pytest.mark.parametrize("said", [b"", b"\xff" * 600, b"GET / HTTP/1.1\r\n\r\n", b"\0\5abc"])
def test_rubbish_at_the_door_disturbs_nobody(residents, said):
    with socket.create_connection(("127.0.0.1", residents.invite().port)) as stranger:
        stranger.sendall(said)
    invitation = residents.invite()
    invitation.connect().close()


# -- what is sent ----------------------------------------------------------------------------


def test_what_stays_the_same_is_sent_once():
    packing, unpacking = Packing(), Unpacking()
    schema = pa.schema([(f"column_{i}", pa.int64()) for i in range(100)])
    first, second = packing.packed((schema, 1)), packing.packed((schema, 2))
    assert len(second) < 100 < len(first)
    assert unpacking.unpacked(first) == (schema, 1)
    assert unpacking.unpacked(second) == (schema, 2)


def test_a_schema_that_says_the_same_as_one_before_is_not_sent_again():
    packing, unpacking = Packing(), Unpacking()
    schemas = [pa.schema([(f"c{i}", pa.int64()) for i in range(count)]) for count in (9, 9, 8)]
    sent = [packing.packed((schema,)) for schema in schemas]
    assert len(sent[1]) < 100 < len(sent[2])
    assert [unpacking.unpacked(each) for each in sent] == [(schema,) for schema in schemas]


def test_what_was_forgotten_is_sent_again(monkeypatch):
    monkeypatch.setattr("millpond.execution.residents.packing.MOST_BYTES", 1)
    packing, unpacking = Packing(), Unpacking()
    schema = pa.schema([("a", pa.int64())])
    for number in range(3):
        assert unpacking.unpacked(packing.packed((schema, number))) == (schema, number)


def test_a_part_of_what_cannot_be_sent_is_sent_with_the_next():
    packing, unpacking = Packing(), Unpacking()
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(Exception, match="pickle"):
        packing.packed((schema, lambda: None))
    assert unpacking.unpacked(packing.packed(schema)) == schema
    assert unpacking.unpacked(packing.packed([schema])) == [schema]


# -- the end ---------------------------------------------------------------------------------


def test_a_resident_ends_with_its_driver():
    with crew(1) as there:
        [answer] = do(there)
        there.close()
        assert has_ended(answer["pid"])


def test_who_answers_twice_is_heard_once(residents):
    """The second answer comes while the next task is done."""
    connection = residents.invite().connect()
    connection.send(Kind.ANSWER, json.dumps({"host": "here", "pid": os.getpid()}).encode())
    found = []

    def ask(action):
        found.append(residents.answers(Doing(action), None, 1))

    for number in range(2):
        asking = threading.Thread(target=ask, args=(f"task {number}",))
        asking.start()
        kind, data = connection.receive()
        assert kind is Kind.TASK
        told = int.from_bytes(data[: pool.NUMBER_BYTES])
        answers = [(told - 1, "old")] * number + [(told, "own")] * 2
        for of_task, said in answers:
            answer = {"task": of_task, "bucket": 0, "said": said}
            connection.send(Kind.ANSWER, json.dumps(answer).encode())
        asking.join()
    assert [answer["said"] for (answer,) in found] == ["own", "own"]
    connection.close()
