"""With ``durability = 'disk'`` what is acknowledged outlives a loss of power; some 12 seconds.

``python -m tests.power`` cuts the power at thousands of moments, `make fuzz` at two thousand.
"""

from __future__ import annotations

import errno
from itertools import count

import pytest

from millpond import Engine
from millpond.connectors import forcing
from millpond.errors import MillpondError, StateError, UnforcedError
from millpond.storage import journal, mark, store
from millpond.storage.log import CommitLog
from tests import power
from tests.crashing import die, validate
from tests.failing_disk import failing_disk
from tests.power import cuts_of

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _few_cuts(monkeypatch):
    monkeypatch.setattr(power, "CUTS", 12)


STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t"
QUERY = "CREATE QUERY q AS SELECT a FROM S WHERE a > 0"


def faults(seeds, **more):
    """What was wrong after cuts of the power."""
    return (fault for seed in seeds for _, fault in cuts_of(seed, **more) if fault)


def test_what_was_acknowledged_outlives_a_loss_of_power():
    assert list(faults([1])) == []


def test_what_a_store_has_that_forces_nothing_is_never_read_wrong():
    """It may be refused, and that is all."""
    assert list(faults([2], durability="process")) == []


@pytest.mark.parametrize("mutant", ["files", "log", "names", "sinks"])
def test_a_file_that_is_not_forced_is_found(mutant, monkeypatch):
    nothing = lambda *given: None  # noqa: E731
    match mutant:
        case "files":
            monkeypatch.setattr(store, "force_files", nothing)
        case "log":
            monkeypatch.setattr(CommitLog, "force", nothing)
        case "names":
            monkeypatch.setattr(journal, "force_names", nothing)
            monkeypatch.setattr(mark, "force_names", nothing)
        case "sinks":
            monkeypatch.setattr("millpond.connectors.sinks.NamedSink.force", nothing)
    assert next(faults(range(3), going_on=0.0), None)


def test_what_could_not_be_forced_stays_in_doubt(tmp_path):
    """Of what was acknowledged nothing is lost, whatever cannot be forced and when."""
    for first in count(1):
        place = tmp_path / str(first)
        engine = Engine({"durability": "disk"}, store=place)
        engine.execute(STREAM)
        engine.execute(QUERY)
        engine.push("S", [(1, 1)])
        with failing_disk(place, errno.EIO, first, stays=False) as disk:
            is_forced = _pushes(engine, [(2, 2)])
        if not disk.was_reached:
            engine.close()
            break
        went_on = _pushes(engine, [(3, 3)])
        die(engine)
        with Engine({"durability": "disk"}, store=place) as engine:
            engine.finish()
            there = {row["a"] for row in engine.results("q", "rows")}
        assert {1} | ({2} if is_forced else set()) | ({3} if went_on else set()) <= there
        assert there <= {1, 2, 3}
        validate(place)
    assert first > 4


def _pushes(engine, rows):
    """Whether rows are acknowledged."""
    try:
        engine.push("S", rows)
    except StateError as error:
        if isinstance(error, UnforcedError):
            with pytest.raises(UnforcedError, match="may not be on the disk"):
                engine.push("S", rows)
        return False
    return True


def test_durability_is_of_stores_that_last(tmp_path):
    with Engine() as engine, pytest.raises(MillpondError, match="SET store = 'DIRECTORY' first"):
        engine.execute("SET durability = 'disk'")
    with Engine(store=tmp_path / "store") as engine:
        engine.execute("SET durability = 'disk'")
        assert engine.journal.forces
    with Engine(store=tmp_path / "store") as engine:
        assert engine.journal.forces
        engine.execute("SET durability = 'process'")
        assert not engine.journal.forces


def test_what_was_written_before_is_forced_when_that_is_asked_for(tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr(forcing, "force_open", forced.append)
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(STREAM)
        engine.push("S", [(1, 1)])
        assert not forced
        engine.execute("SET durability = 'disk'")
        assert forced
        assert not engine.store._loose


def test_pipes_are_not_forced(tmp_path):
    forcing.force(tmp_path)
    with open("/dev/null", "wb") as device:  # noqa: PTH123 (a device)
        forcing.force_open(device.fileno())
