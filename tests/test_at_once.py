"""Steps that are over in milliseconds are done by the loop itself: nobody can tell."""

from __future__ import annotations

import threading

import pytest

from millpond import Engine
from millpond.errors import MillpondError, StateError
from millpond.execution import runtime
from millpond.execution.executor import Executors
from millpond.execution.runtime import EngineRuntime
from millpond.execution.unit_steps import UnitStep
from tests.patience import PATIENCE_SECONDS

SCRIPT = """CREATE STREAM S (t BIGINT, a BIGINT) TIMESTAMP BY t;
            CREATE QUERY counts AS SELECT count(*) AS n FROM S [RANGE 3];
            CREATE QUERY twice AS SELECT a * 2 AS b FROM S;"""


@pytest.fixture(autouse=True)
def patience_with_slow_machines(monkeypatch):
    """On a busy machine too, what was measured at all was measured to be short."""
    monkeypatch.setattr(runtime, "AT_ONCE_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def engine():
    with Engine() as made:
        made.execute(SCRIPT)
        yield made


def fed(engine, pages, page=lambda n: [(2 * n, n), (2 * n + 1, n)]):
    for number in pages:
        engine.push("S", page(number))
        engine.run_until_idle()


def threads_of(monkeypatch):
    """The names of the threads in which steps are executed, as they come."""
    seen, execute = [], Executors.execute

    def noted(executors, step):
        seen.append(threading.current_thread().name)
        return execute(executors, step)

    monkeypatch.setattr(Executors, "execute", noted)
    return seen


def test_what_was_measured_to_be_short_needs_no_thread(engine, monkeypatch):
    seen = threads_of(monkeypatch)
    fed(engine, range(10))
    own = threading.current_thread().name
    assert seen[0] != own, "nothing was measured yet"
    assert seen[-1] == own


def test_a_step_that_is_repeated_in_a_thread_has_all_its_rows(monkeypatch):
    """What members read of each other in the first attempt is read again in the second."""
    at_once, repeated = UnitStep.execute_at_once, []

    def in_vain(step, executors):
        at_once(step, executors)
        repeated.append(step)
        raise StateError("once more")

    monkeypatch.setattr(UnitStep, "execute_at_once", in_vain)
    with Engine({"linear": "apart"}) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a BIGINT) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT count(*) AS n FROM S [RANGE 1] WHERE a > -1")
        fed(engine, range(20))
        engine.finish()
        counts = [row["n"] for row in engine.results("q").to_pylist() if row["weight"] > 0]
    assert repeated
    assert counts == [0, 1, 2, 1, 0]


@pytest.mark.spark
def test_a_step_that_fails_does_so_in_a_thread_with_its_rows(engine, monkeypatch):
    fed(engine, range(10))
    seen, own = threads_of(monkeypatch), threading.current_thread().name
    engine.push("S", [(30, 2**62), (31, 1)])
    with pytest.raises(MillpondError):
        engine.run_until_idle()
    assert own in seen
    assert seen[-1] != own or set(seen) != {own}
    (failure,) = engine.failures()
    assert failure.query == "twice"
    fed(engine, range(20, 22))
    assert engine.results("counts").num_rows > 10, "the other query goes on"


def test_an_interruption_is_no_failure_and_the_step_is_done_later(engine, monkeypatch):
    fed(engine, range(10))
    execute, interruptions = Executors.execute, [KeyboardInterrupt()]

    def interrupted(executors, step):
        if interruptions:
            raise interruptions.pop()
        return execute(executors, step)

    monkeypatch.setattr(Executors, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fed(engine, [10])
    engine.finish()
    assert not engine.failures()
    with Engine() as other:
        other.execute(SCRIPT)
        fed(other, range(11))
        other.finish()
        for query in ("counts", "twice"):
            assert engine.results(query).equals(other.results(query))


def test_an_interruption_before_a_step_begins_keeps_nobody_waiting(engine, monkeypatch):
    fed(engine, range(10))
    at_once, interruptions = EngineRuntime._execute_at_once, [KeyboardInterrupt()]

    def interrupted(runtime, step):
        if interruptions:
            raise interruptions.pop()
        at_once(runtime, step)

    monkeypatch.setattr(EngineRuntime, "_execute_at_once", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fed(engine, [10])
    engine.finish()
    assert not engine.failures()
    assert engine.results("twice").num_rows == 22
