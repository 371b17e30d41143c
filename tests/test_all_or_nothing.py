"""Whatever a disk refuses, and when: a statement has happened or it has not.

Every change of a file that a statement makes fails once, one after the other, alone and with all
that follow; the engine then answers as one that has never met a fault, and so does the store.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from dataclasses import dataclass, field
from itertools import chain, count

import pytest

from millpond import Engine
from millpond.errors import InputError, MillpondError, StoreError
from tests.crashing import die, validate_open
from tests.drawn_examples import TIMES
from tests.failing_disk import failing_disk

DECLARED = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t DELAY 2;
CREATE STREAM U (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT, b STRING) FROM push();
CREATE RELATION W (a INT) FROM push();
CREATE RELATION X (a INT) FROM push();
CREATE VIEW v AS SELECT a FROM S WHERE a > 0;
INSERT INTO R VALUES (1, 'x'), (2, 'y');
CREATE QUERY plain AS SELECT a FROM S [RANGE 3] WHERE a > 1;
CREATE QUERY counted AS SELECT a, count(*) AS n FROM S [RANGE 5] GROUP BY a;
CREATE QUERY one AS SELECT a, count(*) AS n FROM S [RANGE 9] WHERE a > 1 GROUP BY a;
CREATE QUERY two AS SELECT a, count(*) AS n FROM S [RANGE 9] WHERE a > 2 GROUP BY a;
CREATE QUERY joined AS SELECT S.a, b FROM S [RANGE 5], R WHERE S.a = R.a;
CREATE QUERY still INACTIVE AS SELECT S.a, b FROM S [RANGE 4], R WHERE S.a = R.a;
CREATE QUERY risky AS SELECT CAST(a * 100000000 AS INT) AS d FROM S;
CREATE QUERY failed AS SELECT CAST(a * 1500000000 AS INT) AS d FROM S;
"""
LATER = (
    "CREATE QUERY later AS SELECT S.a, b FROM S [RANGE 6], R WHERE S.a = R.a",
    "CREATE QUERY latest AS SELECT a, count(*) AS n FROM S [RANGE 9] WHERE a > 0 GROUP BY a",
    "INSERT INTO R VALUES (3, 'z')",
)
"""What comes behind the statement, and is about the same things."""

STATEMENTS = {
    "stream": "CREATE STREAM N (t BIGINT, a INT) TIMESTAMP BY t",
    "relation": "CREATE RELATION N (a INT) FROM push()",
    "content": "CREATE RELATION N (a INT) FROM csv('content.csv')",
    "view": "CREATE VIEW n AS SELECT a FROM S WHERE a > 3",
    "query": "CREATE QUERY n AS SELECT a FROM S WHERE a > 2",
    "join": "CREATE QUERY n AS SELECT S.a, b FROM S [RANGE 5], R WHERE S.a = R.a",
    "two relations": "CREATE QUERY n AS SELECT R.a FROM R, W WHERE R.a = W.a",
    "sibling": "CREATE QUERY n AS SELECT a, count(*) AS n FROM S [RANGE 9] WHERE a > 3 GROUP BY a",
    "skipping": "CREATE QUERY n ON ERROR SKIP AS SELECT CAST(a * 1500000000 AS INT) AS d FROM S",
    "inactive": "CREATE QUERY n INACTIVE AS SELECT a FROM S",
    "into": "CREATE QUERY n AS SELECT a FROM S INTO csv('{store}.csv')",
    "drop query": "DROP QUERY counted",
    "drop sibling": "DROP QUERY one",
    "drop failed": "DROP QUERY failed",
    "drop view": "DROP VIEW v",
    "drop stream": "DROP STREAM U",
    "drop relation": "DROP RELATION X",
    "insert": "INSERT INTO R VALUES (2, 'yy'), (4, 'w')",
    "delete": "DELETE FROM R WHERE a = 1",
    "update": "UPDATE R SET b = 'new' WHERE a = 2",
    "weight": "ALTER QUERY plain SET WEIGHT 3",
    "deactivate": "ALTER QUERY joined DEACTIVATE",
    "deactivate sibling": "ALTER QUERY one DEACTIVATE",
    "activate": "ALTER QUERY still ACTIVATE",
    "restart": "ALTER QUERY failed ACTIVATE",
    "window": "ALTER QUERY counted SET WINDOW OF S = RANGE 2",
    "window of a join": "ALTER QUERY joined SET WINDOW OF S = RANGE 2",
    "window of a sibling": "ALTER QUERY one SET WINDOW OF S = RANGE 2",
    "policy": "ALTER QUERY risky ON ERROR SKIP",
    "delay": "ALTER STREAM S DELAY 0",
    "queue": "ALTER PLAN QUEUE AFTER {operator}",
    "set": "SET step_rows = 7",
    "strategy": "SET strategy = 'fifo'",
    "results": "SET keep_results = '5 rows'",
}
CALLS = {
    "push": lambda e: e.push("S", [{"t": 12, "a": 2}, {"t": 13, "a": 1}]),
    "push late": lambda e: e.push("S", [{"t": 12, "a": 2}, {"t": 1, "a": 1}]),
    "push to a relation": lambda e: e.push("R", [{"a": 2, "b": "yy"}]),
    "push changes": lambda e: e.push_changes("W", [(20, "+", {"a": 1}), (21, "-", {"a": 1})]),
    "push with a key": lambda e: e.push("S", [{"t": 12, "a": 2}], key="k"),
    "advance": lambda e: e.advance("S", 14),
    "drop": lambda e: e.drop("counted"),
    "restart by hand": lambda e: e.restart("failed"),
}


def do(engine, kind):
    """Does what a case is about."""
    if kind in CALLS:
        CALLS[kind](engine)
        return
    text = STATEMENTS[kind].format(
        store=engine.settings.store, operator=engine.queries.outputs["counted"]
    )
    engine.execute_anew(text)


def worked(engine):
    """Works; what fails meanwhile is the query that is there to fail."""
    with contextlib.suppress(InputError):
        engine.run_until_idle()
    assert {failure.query for failure in engine.failures()} <= {"failed"}


def begun(store):
    """An engine with all that statements can be about."""
    engine = Engine(store=store, directory=store.parent)
    engine.execute(DECLARED)
    engine.push("S", [{"t": t, "a": t % 5} for t in range(1, 9)])
    worked(engine)
    engine.push("W", [{"a": 1}])
    engine.push("S", [{"t": t, "a": t % 4} for t in range(9, 12)])
    worked(engine)
    return engine


def go_on(engine):
    """More comes."""
    for statement in LATER:
        engine.execute_anew(statement)
    engine.push("S", [{"t": t, "a": t % 5} for t in range(14, 18)])
    engine.push("W", [{"a": 2}])
    worked(engine)


@dataclass
class Answers:
    """All that an engine says of itself."""

    declared: list = field(default_factory=list)
    results: dict = field(default_factory=dict)
    contents: dict = field(default_factory=dict)
    sinks: list = field(default_factory=list)


def answers(engine):
    """What an engine answers now."""
    names = [e.name for e in engine.catalog.entries.values() if hasattr(e, "weight")]
    store = str(engine.settings.store)
    entries = [(k, repr(e).replace(store, "")) for k, e in sorted(engine.catalog.entries.items())]
    settings = engine.settings_now.with_option("store", "memory")
    relations = engine.inputs.relations.items()
    file = engine.ground.directory / f"{engine.settings.store}.csv"
    return Answers(
        [*entries, settings, sorted(failure.query for failure in engine.failures())],
        {name: (engine.results(name, "rows"), engine.left_out(name).to_pylist()) for name in names},
        {
            **{name: sorted(intake.content().to_pylist(), key=repr) for name, intake in relations},
            **{name: engine.late(name).to_pylist() for name in engine.inputs.streams},
        },
        [file.read_text()] if "n" in names and file.exists() else [],
    )


def course(engine, does):
    """What an engine says that has met no fault, with the statement or without it: at once, and
    when more has come."""
    if does is not None:
        do(engine, does)
    told = [answers(engine)]
    go_on(engine)
    return [*told, answers(engine)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes copies of a store with all that statements can be about."""
    directory = tmp_path_factory.mktemp("all_or_nothing")
    (directory / "content.csv").write_text("a\n1\n2\n3\n")
    engine = begun(directory / "begun")
    engine.compact_log()  # which is read sooner
    die(engine)
    numbers = count()

    def copy():
        store = directory / f"s{next(numbers)}"
        shutil.copytree(directory / "begun", store)
        return Engine(store=store, directory=directory)

    return copy


@pytest.fixture(scope="module")
def without(made):
    """What an engine says to which nothing has happened."""
    with made() as engine:
        return course(engine, None)


def reopened(engine):
    """The same after a death."""
    store, directory = engine.settings.store, engine.ground.directory
    die(engine)
    engine = Engine(store=store, directory=directory)
    validate_open(engine)
    return engine


KINDS = [*STATEMENTS, *CALLS]
FAULTS = [(True, errno.ENOSPC), (False, errno.EIO)]
"""Whether all that follows fails as well, and how: one of the two, and both in `make fuzz`."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_has_happened_or_it_has_not(made, without, kind):
    with made() as engine:
        having = course(engine, kind)
    for number, first in enumerate(changes(kind)):
        ways = FAULTS if TIMES else [FAULTS[(number + KINDS.index(kind)) % 2]]
        if not all(fails_well(made(), kind, first, *way, having, without) for way in ways):
            assert first > 1, "nothing was written"
            break


def changes(kind):
    """Which changes of files fail: the first, and of those behind it every second one, of kinds
    that follow one another by turns; in `make fuzz` all."""
    return count(1) if TIMES else chain([1], count(2 + KINDS.index(kind) // 2 % 2, 2))


def fails_well(engine, kind, first, stays, number, having, without):
    """Whether the disk has failed in a statement; all is well then."""
    place = f"{kind}: change {first} fails, {'and all that follow' if stays else 'alone'}"
    error = None
    with failing_disk(engine.store.directory, number, first, stays) as disk:
        try:
            do(engine, kind)
        except MillpondError as raised:
            error = raised
    if error is not None:
        assert isinstance(error if isinstance(error, StoreError) else error.__cause__, StoreError)
        assert engine.settings.store in str(error)
    has_happened = error is None
    if not disk.was_reached:
        engine.close()
        return False
    expected = having if has_happened else without
    assert answers(engine) == expected[0], place
    if stays:  # it goes on, and dies then
        go_on(engine)
        assert answers(engine) == expected[1], place
        engine = reopened(engine)
    else:  # it is closed, and goes on then
        engine.close()
        engine = Engine(store=engine.settings.store, directory=engine.ground.directory)
        assert answers(engine) == expected[0], place
        go_on(engine)
    assert answers(engine) == expected[1], place
    validate_open(engine)
    engine.close()
    return True
