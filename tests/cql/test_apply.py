"""Checked statements change the catalog, and only in ways that keep it whole."""

from __future__ import annotations

import pytest

from millpond.catalog import Catalog
from millpond.cql.apply import apply, scanned, users_of
from millpond.cql.check.statements import check_statement
from millpond.cql.statements import AlterQuery, Create, Drop, Insert, SetOption, Show
from millpond.errors import CqlError, MillpondError, Position, StateError
from tests.cql.fixtures_format import declared


def run(text: str, catalog: Catalog) -> None:
    apply(check_statement(text, Position(1, 1), catalog).action, catalog)


def test_create_and_drop() -> None:
    catalog = Catalog()
    run("CREATE STREAM T (a INT)", catalog)
    assert catalog.get("t") is not None
    run("DROP STREAM t", catalog)
    assert catalog.get("T") is None


def test_a_name_in_use_cannot_be_created_again() -> None:
    catalog = declared()
    with pytest.raises(StateError, match="exists already"):
        apply(Create(catalog.get("S")), catalog)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM R",
        "SELECT a FROM S WHERE a IN (SELECT k FROM R)",
        "SELECT a, (SELECT count(*) FROM R) FROM S",
        "SELECT count(*) FROM S HAVING count(*) > (SELECT count(*) FROM R)",
        "SELECT a FROM S WHERE f OR NOT EXISTS (SELECT 1 FROM R2 WHERE k > ALL (SELECT k FROM R))",
    ],
)
def test_what_is_used_cannot_be_dropped(query: str) -> None:
    catalog = declared()
    assert users_of("r", catalog) == []
    run(f"CREATE QUERY user_ AS {query}", catalog)
    assert users_of("r", catalog) == ["user_"]
    with pytest.raises(CqlError, match='"R" is still used by user_; DROP these first'):
        run("DROP RELATION R", catalog)
    with pytest.raises(StateError, match="still used by user_"):
        apply(Drop("relation", "r"), catalog)
    run("DROP QUERY user_", catalog)
    run("DROP RELATION R", catalog)


def test_a_stream_read_through_a_view_is_used() -> None:
    catalog = declared()
    plan = check_statement("SELECT * FROM V, R", Position(1, 1), catalog).action.entry.plan
    assert set(scanned(plan)) == {"S", "R"}


def test_a_view_may_be_dropped_for_it_was_inlined() -> None:
    catalog = declared()
    run("CREATE QUERY user_ AS SELECT * FROM V", catalog)
    before = catalog.get("user_")
    run("DROP VIEW V", catalog)
    assert catalog.get("user_") == before


@pytest.mark.parametrize(("kind", "name"), [("stream", "R"), ("query", "nope")])
def test_dropping_the_wrong_thing_is_refused(kind: str, name: str) -> None:
    with pytest.raises(StateError, match=name):
        apply(Drop(kind, name), declared())


def test_alter_query() -> None:
    catalog = declared()
    apply(AlterQuery("known", weight=2.0), catalog)
    apply(AlterQuery("known", active=False), catalog)
    entry = catalog.get("known")
    assert (entry.weight, entry.active) == (2.0, False)
    with pytest.raises(StateError, match="no query"):
        apply(AlterQuery("S", weight=2.0), catalog)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1 second", 1_000_000),
        ("second", 1_000_000),
        ("100 milliseconds", 100_000),
        ("1 week", 604_800_000_000),
        ("1 MICROSECOND", 1),
    ],
)
def test_set_tick(text: str, microseconds: int) -> None:
    catalog = Catalog()
    run(f"SET tick = '{text}'", catalog)
    assert catalog.tick_microseconds == microseconds


@pytest.mark.parametrize(
    "text", ["", "0 seconds", "5", "1 fortnight", "0.5 microseconds", "-1 day"]
)
def test_a_tick_must_make_sense(text: str) -> None:
    with pytest.raises(CqlError):
        run(f"SET tick = '{text}'", Catalog())
    with pytest.raises(MillpondError):
        apply(SetOption("tick", text), Catalog())


def test_the_tick_comes_before_the_first_stream() -> None:
    catalog = declared()
    with pytest.raises(CqlError, match="SET tick comes before the first CREATE STREAM"):
        run("SET tick = '1 second'", catalog)
    with pytest.raises(StateError, match="SET tick comes before the first CREATE STREAM"):
        apply(SetOption("tick", "1 second"), catalog)


def test_other_statements_leave_the_catalog_alone() -> None:
    catalog = declared()
    before = dict(catalog.entries)
    for action in (Show("all"), SetOption("x", 1), Insert("R", ((1, "a"),))):
        apply(action, catalog)
    assert catalog.entries == before
    assert catalog.tick_microseconds == 1
