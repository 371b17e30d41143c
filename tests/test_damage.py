"""A store is as it was written, or it is refused; and only its own files are ever removed."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from millpond import Aggregate, Engine
from millpond.cli.app import app
from millpond.errors import DamageError, StateError
from millpond.facade.repair import repair
from millpond.storage.log import _HEAD, framing_of
from millpond.storage.mark import NAME
from millpond.storage.soundness import check
from millpond.storage.store import END
from tests.crashing import die
from tests.damage import GOOD, SCRIPT, damage, open_engine, push

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
COUNT = "CREATE QUERY n AS SELECT a, count(*) AS n FROM S [RANGE 20] GROUP BY a;"
RUNNER = CliRunner()


@pytest.fixture
def store(tmp_path):
    """A store with results and a state, closed."""
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(STREAM + COUNT + "CREATE QUERY all_a AS SELECT a FROM S;")
        engine.push("S", [(1, 1), (2, 2), (3, 1)])
        engine.run_until_idle()
    return tmp_path / "store"


def contents(directory):
    return {f: f.read_bytes() for f in sorted(directory.rglob("*")) if f.is_file()}


def refused(directory):
    """The error that opening ends with; nothing is touched."""
    before = contents(directory)
    with pytest.raises(StateError) as error:
        Engine(store=directory)
    assert contents(directory) == before
    return str(error.value)


def change(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)


@pytest.mark.slow
def test_damaged_stores_go_on_exactly_or_are_refused(tmp_path):
    said = []
    tally = damage(60, 7, tmp_path, said.append)
    assert set(tally) <= set(GOOD), said
    assert tally.total() == 60
    assert min(tally["exact"], tally["refused"], tally["refused, repaired"]) > 5


# -- whose files ---------------------------------------------------------------------------------


def test_a_directory_of_the_user_is_refused_as_it_is(tmp_path):
    for folder in ("pages", "state", "slots"):
        (tmp_path / "mine" / folder).mkdir(parents=True)
        (tmp_path / "mine" / folder / "0-1.parquet").write_text("mine")
    assert "the directory is not empty (pages, slots, state)" in refused(tmp_path / "mine")


@pytest.mark.parametrize("there", [[], ["lost+found"]])
def test_an_empty_directory_becomes_a_store(tmp_path, there):
    for name in there:
        (tmp_path / "new" / name).mkdir(parents=True)
    Engine(store=tmp_path / "new").close()
    Engine(store=tmp_path / "new").close()


def test_files_of_the_user_in_a_store_stay(store):
    names = ["a.txt", "pages/1-2.parquet", "pages/sub/x", "state/0-1", "slots/1-1/0.parquet"]
    own = next((store / "pages").iterdir()).name
    names += [f"pages/{own}.bak", f"state/{own[:8]}", f"slots/{own[:8]}-notes"]
    for name in names:
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text("mine")
    for _ in range(2):
        with Engine(store=store) as engine:
            engine.push("S", [(30, 1)])
            engine.run_until_idle()
            engine.compact_log()
    assert [(store / name).read_text() for name in names] == ["mine"] * len(names)


def test_what_an_earlier_version_wrote_is_refused(tmp_path):
    directory = tmp_path / "old"
    directory.mkdir()
    payload = json.dumps({"records": [{"kind": "format", "version": 3}]}).encode()
    (directory / "commits.log").write_bytes(b"mlp1" + len(payload).to_bytes(4, "little") + payload)
    assert "written by an earlier version of Millpond" in refused(directory)


@pytest.mark.parametrize("name", [NAME, END])
def test_a_mark_or_end_that_is_damaged_is_made_anew_and_nothing_is_lost(store, name):
    with Engine(store=store) as engine:
        expected = engine.results("n").to_pylist()
    sound = (store / name).read_bytes()
    ways = [sound[:9], sound + b"\0", sound + sound, sound[1:], b"\xff" + sound[1:], b""]
    for content in ways:
        (store / name).write_bytes(content)
        refused(store)
        told = repair(store)
        assert any("made anew" in line or "lost: nothing" in line for line in told)
        assert check(store).is_sound
        with Engine(store=store) as engine:
            assert engine.results("n").to_pylist() == expected


@pytest.mark.parametrize("name", ["millpond.store.new", "millpond.store"])
def test_a_death_while_a_store_is_made_does_no_harm(tmp_path, name):
    engine = Engine(store=tmp_path / "new")
    die(engine)
    mark = (tmp_path / "new" / "millpond.store").read_text()
    shutil.rmtree(tmp_path / "new")
    (tmp_path / "new").mkdir()
    if name.endswith("new"):
        (tmp_path / "new" / name).write_text(mark[:20])
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("millpond.storage.journal.CommitLog", None)
            with pytest.raises(TypeError):
                Engine(store=tmp_path / "new")
    Engine(store=tmp_path / "new").close()
    assert check(tmp_path / "new").is_sound


# -- the log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the log is empty (0 bytes)"),
        (None, "its log commits.log is missing"),
        (30, "damaged at byte 0: the first record is cut off or changed"),
        (b"SQLite format 3\0", "this is no log: it begins with b'SQLite f'"),
    ],
)
def test_a_log_that_is_none_is_refused_and_nothing_is_touched(store, content, said):
    log = store / "commits.log"
    if content is None:
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[:content] if isinstance(content, int) else content)
    text = refused(store)
    assert said in text
    assert f"millpond store check {store}" in text
    assert f"millpond store repair {store}" in text


@pytest.mark.parametrize("way", ["taken out", "doubled", "moved", "last taken out"])
def test_records_that_are_not_in_their_places_are_found(store, way):
    log = store / "commits.log"
    content = log.read_bytes()
    bounds = framing_of(content).bounds
    parts = [content[each.start : each.end] for each in bounds]
    changed = {
        "taken out": [*parts[:2], *parts[3:]],
        "doubled": [*parts[:3], *parts[2:]],
        "moved": [*parts[:2], parts[3], parts[2], *parts[4:]],
        "last taken out": parts[:-1],
    }[way]
    log.write_bytes(b"".join(changed))
    assert f"{log}: damaged at byte" in refused(store)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_log_without_its_first_record_is_named_and_set_aside(store, is_swapped):
    """Its other records are whole, and nothing says which store they are of."""
    log = store / "commits.log"
    content = log.read_bytes()
    first, second = framing_of(content).bounds[:2]
    head = content[: first.end] if is_swapped else b""
    log.write_bytes(content[second.start : second.end] + head + content[second.end :])
    assert "commits.log" in refused(store)
    assert not check(store).is_sound
    told = repair(store)
    assert "lost: everything" in told[0]
    assert check(store).is_sound
    Engine(store=store).close()


def test_the_log_of_another_store_is_refused(store, tmp_path):
    Engine(store=tmp_path / "other").close()
    shutil.copy(tmp_path / "other" / "commits.log", store / "commits.log")
    shutil.copy(tmp_path / "other" / "commits.end", store / "commits.end")
    assert "this is the log of store" in refused(store)


def test_an_append_that_a_death_cut_short_is_cut_off(tmp_path):
    engine = Engine(store=tmp_path / "store")
    engine.execute(STREAM)
    log = tmp_path / "store" / "commits.log"
    whole = log.stat().st_size
    die(engine)
    with log.open("ab") as file:
        file.write(_HEAD.pack(b"mlp2", 500, 1, 99) + b'{"records"')
    with Engine(store=tmp_path / "store") as engine:
        assert list(engine.catalog.entries) == ["s"]
    assert b'{"records"' not in log.read_bytes()[whole : whole + 1]
    assert check(tmp_path / "store").is_sound


# -- files -----------------------------------------------------------------------------------------


def test_a_state_with_a_flipped_bit_is_refused_by_name(store):
    file = next((store / "state").iterdir())
    change(file, file.stat().st_size // 2)
    size = file.stat().st_size
    assert f"state/{file.name} is damaged within its {size} bytes" in refused(store)


def result_page(store):
    """A file with results of a query."""
    with Engine(store=store) as engine:
        (name,) = engine.deliveries.of("all_a").kept[0].names
    return store / name


def test_a_missing_result_page_is_refused_by_name(store):
    lost = result_page(store)
    lost.unlink()
    assert f"pages/{lost.name} is missing" in refused(store)


def test_a_result_page_with_a_flipped_bit_is_found_when_it_is_read(store):
    file = result_page(store)
    change(file, file.stat().st_size // 3)
    with Engine(store=store) as engine:
        with pytest.raises(DamageError, match=file.name):
            engine.results("all_a")
        assert engine.results("n").num_rows > 0


# -- check and repair ------------------------------------------------------------------------------


def test_check_says_that_a_store_is_sound(store):
    answer = RUNNER.invoke(app, ["store", "check", str(store)])
    assert answer.exit_code == 0, answer.output
    assert answer.output.splitlines()[-1] == "sound"


def test_check_names_what_is_damaged_and_changes_nothing(store):
    file = next((store / "state").iterdir())
    change(file, 9)
    change(store / "millpond.store", 40)
    before = contents(store)
    answer = RUNNER.invoke(app, ["store", "check", str(store)])
    assert answer.exit_code == 1
    assert f"damaged: state/{file.name}: is damaged within its" in answer.output
    assert "damaged: millpond.store: is damaged" in answer.output
    assert "state of operator" in answer.output
    assert contents(store) == before


def test_check_refuses_what_is_no_store_or_is_open(tmp_path, store):
    for directory, said in ((tmp_path, "this is no store"), (tmp_path / "x", "no such directory")):
        answer = RUNNER.invoke(app, ["store", "check", str(directory)])
        assert answer.exit_code == 2
        assert said in answer.stderr
    with Engine(store=store):
        answer = RUNNER.invoke(app, ["store", "repair", str(store)])
    assert answer.exit_code == 2
    assert "an engine has it open" in answer.stderr


@pytest.mark.parametrize("moment", ["after a step", "begun anew"])
def test_repair_makes_the_state_of_a_window_anew_and_it_goes_on_exactly(tmp_path, moment):
    answers = []
    for name in ("whole", "damaged"):
        with Engine(store=tmp_path / name) as engine:
            engine.execute(STREAM + COUNT + "CREATE QUERY d AS SELECT DISTINCT a FROM S [RANGE 7];")
            engine.execute("CREATE QUERY m AS SELECT max(t) AS m, avg(a) AS v FROM S [RANGE 9];")
            for first in (1, 11, 21):
                engine.push("S", [(t, t % 4) for t in range(first, first + 10)])
                engine.run_until_idle()
            if moment == "begun anew":
                engine.compact_log()
        if name == "damaged":
            for file in (tmp_path / name / "state").iterdir():
                change(file, file.stat().st_size // 2)
            told = repair(tmp_path / name)
            assert not [line for line in told if "lost" in line], told
            assert len([line for line in told if line.startswith("made anew")]) == 3
        with Engine(store=tmp_path / name) as engine:
            engine.push("S", [(t, t % 3) for t in range(31, 60)])
            engine.finish()
            answers.append([engine.results(query).to_pylist() for query in ("n", "d", "m")])
    assert answers[0] == answers[1]


def test_repair_has_a_query_stand_still_that_lost_its_state_and_the_others_go_on(store):
    with Engine(store=store) as engine:
        engine.execute("DROP QUERY n; CREATE QUERY n AS SELECT a, count(*) AS n FROM S GROUP BY a")
        engine.push("S", [(9, 1)])
        engine.run_until_idle()
    file = next((store / "state").iterdir())
    change(file, 9)
    answer = RUNNER.invoke(app, ["store", "repair", str(store)])
    assert answer.exit_code == 0, answer.output
    assert "lost: the state of n, to stand still" in answer.output
    aside = [f.name for f in (store / "set_aside" / "1" / "state").iterdir()]
    assert file.name in aside
    with Engine(store=store) as engine:
        assert [failure.query for failure in engine.failures()] == ["n"]
        engine.execute("ALTER QUERY n ACTIVE")
        engine.push("S", [(40, 7)])
        engine.finish()
        assert [row["a"] for row in engine.results("all_a").to_pylist()] == [1, 2, 1, 1, 7]
        assert {"ts": 40, "weight": 1, "a": 7, "n": 1} in engine.results("n").to_pylist()


def test_repair_goes_back_to_the_last_sound_record(store):
    log = store / "commits.log"
    bounds = framing_of(log.read_bytes()).bounds
    change(log, bounds[2].start + 40)
    told = repair(store)
    assert any(line.startswith(f"lost: what came after record {bounds[1].number}") for line in told)
    assert (store / "set_aside" / "1" / "commits.log").exists()
    assert check(store).is_sound
    with Engine(store=store) as engine:
        engine.execute(STREAM)


def test_repair_without_a_log_sets_everything_aside(store):
    (store / "commits.log").unlink()
    pages = {file.name for file in (store / "pages").iterdir()}
    (store / "pages" / "mine").write_text("mine")
    assert repair(store)[0].startswith("lost: everything: commits.log: No such file")
    assert {file.name for file in (store / "set_aside" / "1" / "pages").iterdir()} == pages
    assert (store / "pages" / "mine").read_text() == "mine"
    with Engine(store=store) as engine:
        assert not engine.catalog.entries


def test_repair_of_a_sound_store_does_nothing(store):
    before = contents(store)
    assert "sound, nothing to do" in repair(store)[0]
    assert contents(store) == before


def test_a_store_with_functions_of_the_user_is_repaired_without_them(tmp_path):
    functions = [("twice", lambda a: a, ["INT"], "INT")]
    with Engine(store=tmp_path / "store", functions=functions) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT twice(a) AS b FROM S;")
        engine.push("S", [(1, 1)])
    page = next((tmp_path / "store" / "pages").iterdir())
    change(page, 30)
    assert any("the input of q" in line for line in repair(tmp_path / "store"))
    with Engine(store=tmp_path / "store", functions=functions) as engine:
        assert [failure.query for failure in engine.failures()] == ["q"]


def test_sinks_are_as_far_as_they_were_after_a_repair(tmp_path):
    with open_engine(tmp_path) as engine:
        engine.execute(SCRIPT)
        for number in range(2):
            push(engine, number)
            engine.run_until_idle()
        (late,) = engine.inputs.streams["s"].late_log.kept[0].names
    before = (tmp_path / "named.csv").read_text()
    change(tmp_path / "store" / late, 100)
    repair(tmp_path / "store")
    with open_engine(tmp_path) as engine:
        push(engine, 2)
        engine.finish()
    after = (tmp_path / "named.csv").read_text()
    assert after.startswith(before)
    assert len(after) > len(before) > 0


def test_a_state_that_functions_of_the_user_made_is_lost_and_the_rest_goes_on(tmp_path):
    """They are not in the store, so it cannot be made anew."""
    own = [("largest", Aggregate(int, max, int), ["INT"], "INT")]
    with Engine(store=tmp_path / "store", functions=own) as engine:
        engine.execute(STREAM + COUNT)
        engine.execute("CREATE QUERY own AS RELATION SELECT largest(a) AS m FROM S [RANGE 5];")
        engine.push("S", [(1, 1), (2, 2), (3, 1)])
        engine.run_until_idle()
    for file in (tmp_path / "store" / "state").iterdir():
        file.unlink()
    repair(tmp_path / "store")
    with Engine(store=tmp_path / "store", functions=own) as engine:
        assert [each.query for each in engine.failures()] == ["own"]
        engine.push("S", [(4, 1)])
        engine.finish()
        assert engine.results("n").num_rows
