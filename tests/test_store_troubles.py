"""A store that is full, gone or may not be written: what is said, and what goes on."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading

import pytest

from millpond import Engine
from millpond.errors import CqlError, MillpondError, StateError, StoreError
from millpond.storage import store as store_module
from millpond.storage.log import CommitLog
from millpond.storage.store import Store
from tests.crashing import die
from tests.failing_disk import failing_disk
from tests.patience import PATIENCE_SECONDS

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE QUERY c AS SELECT a, count(*) AS n FROM S GROUP BY a;
CREATE QUERY q AS SELECT a FROM S;
"""


def rows(engine, query="c"):
    return sorted(map(str, engine.results(query, "rows")))


@pytest.fixture
def reference():
    """What an engine says whose store never fails."""
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1), (2, 1), (5, 2)])
        engine.run_until_idle()
        return rows(engine), rows(engine, "q")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EMFILE])
def test_steps_that_cannot_be_written_are_done_when_they_can(tmp_path, reference, number):
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)
    engine.push("S", [(1, 1), (2, 1), (5, 2)])
    said = []
    for first in range(1, 100):
        with failing_disk(engine.store.directory, number, first, stays=True) as disk:
            try:
                engine.run_until_idle()
            except StoreError as error:  # also of what was under way at the last one
                said.append(str(error))
                continue
        assert not engine.failures()
        if not disk.was_reached:
            break
    assert len(said) > 1
    assert all(str(tmp_path) in each for each in said)
    assert (rows(engine), rows(engine, "q")) == reference
    die(engine)
    with Engine(store=tmp_path / "store") as engine:
        assert (rows(engine), rows(engine, "q")) == reference


def test_pages_of_a_source_that_cannot_be_written_come_when_they_can(tmp_path):
    (tmp_path / "s.csv").write_text("t,a\n" + "".join(f"{t},{t}\n" for t in range(40)))
    engine = Engine({"page_rows": 10}, store=tmp_path / "store", directory=tmp_path)
    engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('s.csv')")
    engine.execute("CREATE QUERY q AS SELECT a FROM S")
    failures = 0
    for first in range(1, 100):
        with failing_disk(engine.store.directory, errno.ENOSPC, first, stays=True) as disk:
            try:
                engine.finish()
            except StoreError:
                failures += 1
                continue
        if not disk.was_reached:
            break
    assert failures > 3
    assert [row["a"] for row in engine.results("q", "rows")] == list(range(40))
    die(engine)
    with Engine(store=tmp_path / "store", directory=tmp_path) as engine:
        assert [row["a"] for row in engine.results("q", "rows")] == list(range(40))


def test_an_engine_in_the_background_waits_for_its_store(tmp_path, reference):
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1), (2, 1), (5, 2)])
        seen = threading.Event()
        engine.subscribe("q", lambda table: seen.set())
        with failing_disk(engine.store.directory, errno.ENOSPC, 1, stays=True):
            engine.start()
            with pytest.raises(StoreError, match="No space left on device; free some space"):
                engine.run_until_idle()
            assert engine.operation.is_started
            assert not seen.is_set()  # what is not in the store is told nobody
        assert seen.wait(PATIENCE_SECONDS)
        engine.stop()
        assert (rows(engine), rows(engine, "q")) == reference


def test_a_store_that_is_gone_is_said_to_be(tmp_path):
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)
    shutil.rmtree(tmp_path / "store")
    for change in (lambda: engine.push("S", [(1, 1)]), lambda: engine.execute("DROP QUERY q")):
        with pytest.raises((StoreError, CqlError), match="somebody has removed or unmounted it"):
            change()
    assert "q" in engine.catalog.entries
    engine.close()


def test_a_log_that_is_gone_takes_nothing(tmp_path):
    log = CommitLog(tmp_path / "commits.log")
    (tmp_path / "commits.log").unlink()
    with pytest.raises(StoreError, match="No such file"):
        log.append([{"kind": "a"}])
    log.close()


def test_a_log_that_cannot_be_cut_back_takes_nothing_until_it_can(tmp_path):
    log = CommitLog(tmp_path / "commits.log")
    log.append([{"kind": "a"}])
    with failing_disk(tmp_path, errno.EIO, 1, stays=True):
        for _ in range(2):
            with pytest.raises(StoreError, match="look at the disk"):
                log.append([{"kind": "b"}])
    log.append([{"kind": "c"}])
    assert [record["kind"] for record in log.read()] == ["a", "c"]
    log.close()


def test_a_directory_among_the_pages_is_left_alone(tmp_path):
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(SCRIPT)
    (tmp_path / "store" / "pages" / "mine").mkdir()
    (tmp_path / "store" / "pages" / "mine" / "file").write_text("mine")
    with Engine(store=tmp_path / "store") as engine:
        engine.push("S", [(1, 1)])
    assert (tmp_path / "store" / "pages" / "mine" / "file").read_text() == "mine"


@pytest.mark.parametrize("first", range(1, 5))
def test_a_store_that_cannot_be_made_says_why_and_is_free(tmp_path, first):
    (tmp_path / "store").mkdir()
    with (
        failing_disk(tmp_path / "store", errno.EROFS, first, stays=True),
        pytest.raises(StoreError, match="make it writable, and go on"),
    ):
        Engine(store=tmp_path / "store")
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(SCRIPT)


READ_ONLY = """
import os, sys
from millpond import Engine
from millpond.errors import StoreError
os.setuid(65534)
try:
    Engine(store=sys.argv[1])
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.slow
def test_a_store_of_somebody_else_is_refused_by_name(tmp_path_factory):
    store = tmp_path_factory.mktemp("somebody") / "store"
    with Engine(store=store) as engine:
        engine.execute(SCRIPT)
    for directory in (store, *list(store.parents)[:3]):
        directory.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(store)], capture_output=True, text=True, check=True
    )
    assert str(store) in done.stdout
    assert "Permission denied; give this user the right to it, and go on" in done.stdout


def test_without_descriptors_the_error_says_what_to_raise(tmp_path, monkeypatch):
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)

    def none_left(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "write_rows", none_left)
        with pytest.raises(StoreError, match=r"Too many open files; raise the limit .*ulimit -n"):
            engine.push("S", [(1, 1)])
    engine.push("S", [(1, 1)])
    engine.run_until_idle()
    assert engine.results("q").num_rows == 0  # nothing came twice, and it is not complete yet
    engine.finish()
    assert engine.results("q").num_rows == 1
    engine.close()


def test_set_store_is_all_or_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with Engine(store=tmp_path / "store") as engine:
        engine.execute("SET tick = '1 second';" + SCRIPT)
        engine.push("S", [(1, 1)])
    damaged = tmp_path / "store" / "commits.log"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with Engine() as engine:
        for location in ("file", "file/below", "store"):
            with pytest.raises(CqlError):
                engine.execute(f"SET store = '{tmp_path / location}'")
            assert not engine.catalog.entries
            assert engine.settings.store == "memory"
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1)])
        engine.finish()
        assert engine.results("q").num_rows == 1


# -- a store in memory -------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Where the disk is, beside the memory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "disk"))
    (tmp_path / "disk").mkdir()
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(store_module, "_memory_directory", lambda: tmp_path / "memory")
    return tmp_path / "disk"


def test_a_page_that_memory_has_no_room_for_is_on_disk(elsewhere):
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1)])
        (page,) = engine.inputs.queues["stream:s"].pages
        with failing_disk(engine.store.directory, errno.ENOSPC, 1, stays=False) as disk:
            (name,) = page.names
        assert disk.was_reached
        assert name.startswith("spilled/")
        assert page.paths[0].startswith(str(engine.store.directory))
        assert len(list(elsewhere.glob("*/*"))) == 1
    assert not list(elsewhere.iterdir())


def test_states_that_memory_has_no_room_for_are_on_disk(elsewhere, reference):
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1), (2, 1), (5, 2)])
        with failing_disk(engine.store.directory / "state", errno.ENOSPC, 1, stays=True) as disk:
            engine.run_until_idle()
        assert disk.was_reached
        assert (rows(engine), rows(engine, "q")) == reference
        assert not list((engine.store.directory / "state").iterdir())
        assert list(elsewhere.glob("*/*"))
    assert not list(elsewhere.iterdir())


def test_with_little_room_in_memory_everything_new_is_on_disk(elsewhere, monkeypatch):
    store = Store()
    try:
        assert store.new_name("pages").startswith("pages/")
        monkeypatch.setattr(store_module, "LEAST_FREE_BYTES", 2**62)
        names = [store.new_name(folder) for folder in ("pages", "state")]
        assert all(name.startswith("spilled/") for name in names)
        assert store.new_slot().is_dir()
    finally:
        store.close()
    assert not list(elsewhere.iterdir())


def test_what_executors_could_not_write_to_memory_goes_to_disk(elsewhere):
    store = Store()
    full = StoreError("full", errno.ENOSPC)
    try:
        assert store.moves_on(full) is None
        assert store.new_name("pages").startswith("spilled/")
        assert store.moves_on(full) is full  # the disk is full as well
        assert store.moves_on(StoreError("broken", errno.EIO)) is not None
    finally:
        store.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_tiny_memory_is_no_end(tmp_path, elsewhere, monkeypatch):
    monkeypatch.setattr(store_module, "LEAST_FREE_BYTES", 0)
    memory = tmp_path / "memory"
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(memory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        with Engine() as engine:
            engine.execute(SCRIPT)
            (memory / "ballast").write_bytes(b"x" * 40_000)
            engine.push("S", [(t, t) for t in range(5_000)])
            engine.finish()
            assert engine.results("c").num_rows == 5_000
            assert list(elsewhere.glob("*/*"))
        assert not list(elsewhere.iterdir())
    finally:
        subprocess.run(["umount", str(memory)], check=True)


# -- keys --------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path):
    engine = Engine(store=tmp_path / "store")
    engine.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t; CREATE STREAM T (t BIGINT)")
    yield engine
    engine.close()


def arrived(engine):
    return {name: intake.arrived for name, intake in engine.inputs.streams.items()}


def test_a_key_is_for_one_input(two):
    for _ in range(2):
        two.push("S", [(1,)], key="k")
        two.push("T", [(1,)], key="k")
        two.push("t", [(2,)], key="k")
    assert arrived(two) == {"s": 1, "t": 1}


@pytest.mark.parametrize("shortens", [False, True])
def test_keys_are_known_after_a_restart_as_long_as_their_input_is_there(two, tmp_path, shortens):
    two.push("S", [(1,)], key="k")
    if shortens:
        two.compact_log()
    die(two)
    with Engine(store=tmp_path / "store") as engine:
        engine.push("S", [(2,)], key="k")
        engine.push("T", [(2,)], key="k")
        assert arrived(engine) == {"s": 1, "t": 1}
        engine.execute("DROP STREAM S")
        engine.execute_anew("CREATE STREAM S (t BIGINT) TIMESTAMP BY t")
        engine.push("S", [(2,)], key="k")
        assert arrived(engine) == {"s": 1, "t": 1}


def test_a_push_that_is_refused_does_not_use_its_key(two):
    with pytest.raises(StateError):
        two.push("nowhere", [(1,)], key="k")
    with failing_disk(two.store.directory, errno.ENOSPC, 1, stays=True), pytest.raises(StoreError):
        two.push("S", [(1,)], key="k")
    two.push("S", [(1,)], key="k")
    assert arrived(two)["s"] == 1


@pytest.mark.parametrize("address", ["s3:/bucket/millpond", "hdfs://host/there", "s3://"])
def test_an_address_of_another_kind_is_refused_and_nothing_is_made(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError, match="an address is s3://bucket/name"):
        Engine(store=address)
    with Engine() as engine, pytest.raises(MillpondError, match="what else is a directory"):
        engine.execute(f"SET store = '{address}'")
    assert not list(tmp_path.iterdir())


def test_a_working_directory_is_named_before_the_store(tmp_path):
    early = pytest.raises(MillpondError, match="SET working_directory comes before SET store")
    with Engine(store=tmp_path / "store") as engine, early:
        engine.execute(f"SET working_directory = '{tmp_path}'")
