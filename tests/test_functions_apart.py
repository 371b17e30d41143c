"""Functions of the user in processes of their own: the same answers, and a crash stays theirs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.errors import InputError, MillpondError
from millpond.functions.processes import FunctionProcesses
from tests.patience import PATIENCE_SECONDS
from tests.user_functions import FUNCTIONS, QUERIES, script

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
VALUES = [3, None, 0, -4, 2, 0, 1, None, 4]


def exits(numbers):
    if 7 in numbers.to_pylist():
        os._exit(3)
    return numbers


def kills(numbers):
    os.kill(os.getpid(), signal.SIGSEGV)
    return numbers


def leaves(numbers):
    raise SystemExit(4)


def name_of_process(numbers):
    sys.stdout.write("not an answer")
    return pa.array([os.getpid()] * len(numbers), pa.int64())


@pytest.fixture(scope="module")
def engine():
    functions = [
        *FUNCTIONS,
        ("exits", exits, ["INT"], "INT"),
        ("kills", kills, ["INT"], "INT"),
        ("leaves", leaves, ["INT"], "INT"),
        ("process_of", name_of_process, ["INT"], "BIGINT"),
    ]
    with Engine({"functions": "process"}, functions=functions) as made:
        made.execute(STREAM)
        yield made


def run(engine, values):
    """Pushes at the times that come next; what failed is an error of the run."""
    start = run.now = getattr(run, "now", 0) + 100
    engine.push("S", [(start + at, value) for at, value in enumerate(values)])
    engine.advance("S", start + 99)
    engine.run_until_idle()


@pytest.mark.slow
def test_answers_are_the_same():
    found = []
    for where in ("thread", "process"):
        with Engine(functions=FUNCTIONS) as engine:
            engine.execute(f"SET functions = '{where}'")
            engine.execute(script())
            engine.push("S", list(enumerate(VALUES)))
            engine.finish()
            found.append({query: engine.results(query, "rows") for query in QUERIES})
            found[-1]["out"] = engine.left_out("listed").to_pylist()
    assert found[0] == found[1]
    assert found[0]["listed"]


def test_they_run_elsewhere_and_may_print(engine):
    engine.execute("CREATE QUERY q AS SELECT process_of(a) AS p FROM S;")
    run(engine, [1, 2])
    run(engine, [3])
    processes = {row["p"] for row in engine.results("q", "rows")}
    assert len(processes) == 1
    assert os.getpid() not in processes
    engine.drop("q")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("exits", "function exits has ended the process it ran in: exit code 3"),
        ("kills", "function kills has ended the process it ran in: SIGSEGV"),
        ("leaves", r"function leaves has called sys.exit\(4\)"),
    ],
)
def test_one_that_ends_its_process_stops_its_queries_only(engine, function, words):
    engine.execute(
        f"CREATE QUERY bad AS SELECT {function}(a) AS a FROM S;"
        "CREATE QUERY good AS SELECT reciprocal(a) AS r FROM S;"
    )
    with pytest.raises(MillpondError, match=words):
        run(engine, [7])
    run(engine, [5])
    assert [row["r"] for row in engine.results("good", "rows")] == [142, 200]
    [failure] = engine.failures()
    assert failure.query == "bad"
    engine.drop("bad")
    engine.drop("good")


def test_one_that_was_restarted_runs_in_another_process(engine):
    engine.execute("CREATE QUERY bad AS SELECT exits(a) AS a FROM S;")
    with pytest.raises(MillpondError, match="exit code 3"):
        run(engine, [7])
    engine.restart("bad")
    run(engine, [8])
    assert [row["a"] for row in engine.results("bad", "rows")] == [8]
    engine.drop("bad")


def test_sys_exit_in_the_thread_of_a_step_stops_its_queries_only():
    with Engine(functions=[("leaves", leaves, ["INT"], "INT")]) as engine:
        engine.execute(STREAM + "CREATE QUERY bad AS SELECT leaves(a) AS a FROM S;")
        engine.push("S", [(1, 1)])
        with pytest.raises(MillpondError, match=r"function leaves has called sys.exit\(4\)"):
            engine.finish()


def test_a_call_that_is_interrupted_leaves_no_answer_to_the_next(tmp_path):
    began = tmp_path / "began"

    def waits(numbers):
        if numbers[0].as_py() == 1 and not began.exists():
            began.touch()
            while True:
                time.sleep(0.01)
        return numbers

    def interrupt() -> None:
        while not began.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with Engine({"functions": "process"}) as engine:
        engine.register_function("waits", waits, ["INT"], "INT")
        engine.execute(STREAM + "CREATE QUERY q AS SELECT waits(a) AS a FROM S;")
        engine.push("S", [(1, 1), (2, 2)])
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            engine.finish()
        thread.join()
        engine.finish()
        assert [row["a"] for row in engine.results("q", "rows")] == [1, 2]


def test_close_ends_the_process_of_a_function_that_goes_on(tmp_path):
    began = tmp_path / "began"

    def waits(numbers):
        if numbers[0].as_py() == 1:
            began.touch()
            while True:
                time.sleep(0.01)
        return numbers

    with Engine({"functions": "process"}) as engine:
        engine.register_function("waits", waits, ["INT"], "INT")
        engine.execute(STREAM + "CREATE QUERY q AS SELECT waits(a) AS a FROM S;")
        engine.start()
        engine.push("S", [(1, 1)])
        engine.advance("S", 5)
        while not began.exists():
            time.sleep(0.01)
        [process] = engine.catalog.function_processes._busy
        engine.close(seconds=0)  # it is not waited for
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_processes_of_a_closed_engine_answer_no_more():
    processes = FunctionProcesses()
    processes.close()
    with pytest.raises(InputError, match="closed"):
        processes.call("f", b"")


def test_on_the_executors_one_that_ends_its_worker_stops_its_queries_only(spark):
    functions = [("exits", exits, ["INT"], "INT"), *FUNCTIONS]
    everything = {"driver_rows": 0, "place_by": "rows"}
    with Engine(everything, spark=spark, functions=functions) as engine:
        engine.execute(
            STREAM + "CREATE QUERY bad AS SELECT exits(a) AS a FROM S;"
            "CREATE QUERY good AS SELECT reciprocal(a) AS r FROM S;"
        )
        engine.push("S", [(1, 7)])
        with pytest.raises(
            MillpondError, match="function exits has ended the Python worker of Spark's"
        ):
            engine.finish()
        assert [row["r"] for row in engine.results("good", "rows")] == [142]
        [failure] = engine.failures()
        assert failure.query == "bad"
        assert engine.runtime.tally.executor_steps > 0
