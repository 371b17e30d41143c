"""What is asked of an engine that works in the background means what it means without that."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import MillpondError, StateError
from tests.patience import wait_until

DELAYED = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t DELAY 10;"
COUNTS = "CREATE QUERY counts AS SELECT count(*) AS n FROM S [RANGE 5];"


@pytest.fixture
def engine():
    with Engine() as made:
        yield made


def rows_file(path, count):
    path.write_text("t,a\n" + "".join(f"{t},{t}\n" for t in range(1, count + 1)))
    return path


def numbers(path):
    """A stream from a file, and a query that puts out all of it."""
    return (
        f"CREATE STREAM F (t BIGINT, a INT) TIMESTAMP BY t FROM csv('{path}');"
        "CREATE QUERY q AS SELECT a FROM F;"
    )


def finished(starts):
    """The answers of an engine that is finished, and what a later push is told."""
    with Engine() as engine:
        engine.execute(DELAYED + COUNTS)
        if starts:
            engine.start()
        engine.push("S", [{"t": t, "a": t} for t in (1, 2, 9)])
        engine.finish()
        answers = engine.results("counts").to_pylist()
        with pytest.raises(MillpondError) as raised:
            engine.push("S", [{"t": 50, "a": 1}])
        assert engine.operation.is_started is starts
        return answers, str(raised.value)


def test_finish_ends_the_inputs_of_an_engine_that_works_in_the_background():
    answers, told = finished(starts=True)
    assert (answers, told) == finished(starts=False)
    assert answers[-1] == {"ts": 15, "weight": 1, "n": 0}, "the window has run empty"


def test_so_many_rows_are_read_and_no_more(engine, tmp_path):
    path = rows_file(tmp_path / "rows.csv", 1_000)
    engine.start()
    with engine.held():  # so that nothing is read before
        engine.execute(numbers(path))
        engine.run_sources(rows=100)
    read = engine.inputs.read_rows["f"]
    engine.run_until_idle()
    assert engine.inputs.read_rows["f"] == read == 100, "nor are any read later"
    engine.run_sources(rows=50)
    assert engine.inputs.read_rows["f"] == 150
    engine.run_sources()
    engine.finish()
    assert engine.result_count("q") == 1_000


def test_without_limits_the_background_reads_on_by_itself(engine, tmp_path):
    engine.start()
    engine.run_sources(rows=1)
    engine.run_sources()
    engine.execute(numbers(rows_file(tmp_path / "rows.csv", 100)))
    engine.run_until_idle()
    assert engine.result_count("q") >= 99


def test_started_anew_the_background_reads_sources_again(engine, tmp_path):
    engine.start()
    engine.run_sources(rows=1)
    engine.stop()
    engine.execute(numbers(rows_file(tmp_path / "rows.csv", 100)))
    engine.start()
    engine.run_until_idle()
    assert engine.result_count("q") >= 99


def test_what_a_source_raises_is_raised_where_it_is_asked_for_and_ends_the_background(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("t,a\n1,1\n2,x\n")
    engine = Engine()
    engine.execute(DELAYED + COUNTS)
    engine.start()
    with engine.held():
        engine.execute(numbers(path))
        with pytest.raises(MillpondError, match=r"bad\.csv"):
            engine.run_sources()
    wait_until(lambda: not engine.operation.is_started)  # it is read again as long as it is there
    engine.push("S", [{"t": 1, "a": 1}])
    with pytest.raises(MillpondError, match=r"bad\.csv"):
        engine.close()


def test_who_waits_does_the_rest_when_the_background_is_stopped(engine):
    engine.execute(DELAYED + COUNTS)
    engine.subscribe("counts", lambda _: engine.stop(drain=False))
    engine.start()
    with engine.held():
        engine.push("S", [{"t": t, "a": t} for t in (1, 2, 9, 30)])
        engine.finish()
    assert not engine.operation.is_started
    assert engine.results("counts").to_pylist()[-1] == {"ts": 36, "weight": 1, "n": 0}


def test_a_callback_is_told_that_it_cannot_wait(engine):
    told = []

    def waits(_):
        for call in (engine.finish, engine.run_sources, engine.run_until_idle):
            with pytest.raises(StateError, match="waits for this callback"):
                call()
            told.append(call)

    engine.execute(DELAYED + COUNTS)
    engine.subscribe("counts", waits)
    engine.start()
    engine.push("S", [{"t": 1, "a": 1}])
    engine.finish()
    assert len(told) >= 3
