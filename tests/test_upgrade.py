"""A store of an earlier format: refused with the way out, upgraded with a copy kept, and exact."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from millpond import Engine, version
from millpond.cli.app import app
from millpond.errors import MillpondError, StateError
from millpond.facade import upgrade as upgrading
from millpond.facade.upgrade import upgrade
from millpond.planning import plan_data
from millpond.storage import formats
from millpond.storage import log as logs
from millpond.storage.formats import FORMAT, OLDEST
from millpond.storage.mark import LOG
from millpond.storage.soundness import check
from millpond.storage.transitions import KINDS
from tests.old_stores import FIRST, LAST, STORES, feed_all, queries_of, script_of, unpacked

OLD = ("format_5_first", "format_5_last")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["store", *map(str, arguments)])


def contents(directory: Path) -> dict[str, bytes]:
    files = (file for file in directory.rglob("*") if file.is_file())
    return {str(file.relative_to(directory)): file.read_bytes() for file in files}


def expected(name: str) -> dict[str, list[dict[str, object]]]:
    """What the queries put out if nothing is ever stored."""
    with Engine() as engine:
        engine.execute(script_of(name))
        feed_all(engine, name, FIRST)
        feed_all(engine, name, LAST)
        return {each: engine.results(each).to_pylist() for each in queries_of(name)}


def test_every_format_that_can_be_converted_is_kept_as_a_store() -> None:
    kept = {file.name.removesuffix(".tar.xz") for file in STORES.glob("*.tar.xz")}
    assert kept == set(OLD)
    assert {int(name.split("_")[1]) for name in kept} == set(range(OLDEST, FORMAT))


@pytest.mark.parametrize("name", OLD)
def test_an_upgraded_store_goes_on_as_if_it_had_always_been_new(name: str, tmp_path: Path) -> None:
    store = unpacked(name, tmp_path)
    before = contents(store)
    with pytest.raises(StateError, match=f'"millpond store upgrade {store}" converts it'):
        Engine(store=store)
    assert "format 5" in run("check", store).stdout
    answer = run("upgrade", store)
    assert answer.exit_code == 0, answer.output
    assert f"format 5 became {FORMAT}" in answer.stdout
    kept = store / "set_aside" / "1"
    assert contents(kept).items() <= before.items()
    assert {file for file in before if not file.startswith("slots/")} == set(contents(kept))
    again = run("check", store)
    assert again.exit_code == 0, again.stdout
    assert f"format {FORMAT}" in again.stdout
    with Engine({"validate": "on"}, store=store) as engine:
        engine.execute(script_of(name))
        feed_all(engine, name, LAST)
        found = {each: engine.results(each).to_pylist() for each in queries_of(name)}
        assert engine.query_entry("weighty").weight == 3
    assert all(found.values())
    assert found == expected(name)
    assert run("upgrade", store).stdout.rstrip().endswith("nothing to do")
    assert f"last opened by Millpond {version.VERSION}" in run("check", store).stdout


def test_what_cannot_be_converted_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = unpacked(OLD[0], tmp_path)
    before = contents(store)
    monkeypatch.setitem(formats._CONVERSIONS, 5, lambda record: record)
    answer = run("upgrade", store)
    assert answer.exit_code == 2
    assert "cannot be converted from format 5" in answer.stderr
    assert "nothing was changed" in answer.stderr
    assert contents(store) == before


def test_a_damaged_store_is_not_upgraded(tmp_path: Path) -> None:
    store = unpacked(OLD[1], tmp_path)
    page = next((store / "pages").iterdir())
    page.write_bytes(page.read_bytes()[:-1])
    before = contents(store)
    answer = run("upgrade", store)
    assert answer.exit_code == 2
    assert page.name in answer.stderr
    assert contents(store) == before
    refused = run("repair", store)
    assert "repair it with the version that wrote it" in refused.stderr


def test_a_store_in_use_or_none_is_not_upgraded(tmp_path: Path) -> None:
    with Engine(store=tmp_path / "store"):
        assert "an engine has it open" in run("upgrade", tmp_path / "store").stderr
    assert "there is no such directory" in run("upgrade", tmp_path / "none").stderr


def test_without_room_for_the_copy_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = unpacked(OLD[0], tmp_path)
    before = contents(store)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(MillpondError, match="No space left on device"):
        upgrade(store)
    assert contents(store) == before


def test_whenever_it_is_interrupted_there_is_the_old_store_or_a_copy_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also just after the log was replaced."""
    store = unpacked(OLD[0], tmp_path)
    before, put = (store / LOG).read_bytes(), upgrading._put

    def put_and_stop(log: Path, content: bytes) -> None:
        put(log, content)
        if log.parent == store:
            raise KeyboardInterrupt

    monkeypatch.setattr(upgrading, "_put", put_and_stop)
    with pytest.raises(KeyboardInterrupt):
        upgrade(store)
    assert (store / "set_aside" / "1" / LOG).read_bytes() == before


def test_without_room_for_the_new_log_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = unpacked(OLD[0], tmp_path)
    before, write = contents(store), Path.write_bytes

    def full(file: Path, content: bytes) -> int:
        if file.parent != store:
            return write(file, content)
        write(file, content[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(MillpondError, match="No space left on device"):
        upgrade(store)
    kept = {name: each for name, each in contents(store).items() if "set_aside" not in name}
    assert kept == before


def test_a_store_of_a_later_version_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    with monkeypatch.context() as later:
        later.setattr(logs, "FORMAT", FORMAT + 1)
        later.setattr(version, "VERSION", "9.9.9")
        with Engine(store=store) as engine:
            engine.execute("CREATE STREAM S (a INT)")
    words = f"written in format {FORMAT + 1} by Millpond 9.9.9, and Millpond 0.1.0 reads {FORMAT}"
    for attempt in (lambda: Engine(store=store), lambda: upgrade(store), lambda: check(store)):
        with pytest.raises(StateError, match=f"{words}; open it with a version as new"):
            attempt()


def test_a_record_of_a_later_version_is_named(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with Engine(store=store) as engine:
        engine.execute("CREATE STREAM S (a INT)")
        engine.journal._notes.append({"kind": "teleported", "name": "S"})
    with pytest.raises(StateError, match=r"a record \(teleported\) that Millpond .* does not know"):
        Engine(store=store)


def test_what_the_log_says_in_this_format_can_be_said_in_it_still() -> None:
    """A record or a field of this format that is renamed or gone is a new format.

    Then raise FORMAT, add a conversion, keep a store (`tests/old_stores.py`) and write the list of
    what there is now: ``python -c "import tests.test_upgrade as t; t.write()"``.
    """
    kept = json.loads((STORES / f"format_{FORMAT}.json").read_text())
    now = told()
    for kind, names in kept.items():
        assert kind in now, f"{kind} is gone"
        assert set(names) <= set(now[kind]), f"fields of {kind} are gone"


def told() -> dict[str, list[str]]:
    """What records and plans in the log may have: their kinds and fields."""
    records = {f"record {kind}": each for kind, each in KINDS.items()}
    plans = {f"plan {kind}": each for kind, each in plan_data._kinds().items()}
    return {name: [f.name for f in fields(each)] for name, each in (records | plans).items()}


def write() -> None:
    """Writes the list of the present format."""
    lines = json.dumps(told(), indent=0, sort_keys=True)
    (STORES / f"format_{FORMAT}.json").write_text(lines + "\n")
