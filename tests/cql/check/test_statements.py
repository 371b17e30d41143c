"""Declarations, changes and the other statements become checked actions."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from millpond.catalog import Catalog, Connector, QueryEntry, RelationEntry, StreamEntry, ViewEntry
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script, check_statement
from millpond.cql.statements import (
    Action,
    AlterPlan,
    AlterQuery,
    AlterStream,
    Create,
    Delete,
    Drop,
    Explain,
    Insert,
    SetOption,
    Show,
    Update,
)
from millpond.errors import Position
from millpond.schema import Field, Schema, Type
from tests.cql.fixtures_format import declared

CATALOG = declared()


def action(text: str, catalog: Catalog = CATALOG) -> Action:
    return check_statement(text, Position(1, 1), catalog).action


def schema(**types: Type) -> Schema:
    return Schema(tuple(Field(name, given) for name, given in types.items()))


def test_create_stream_with_everything() -> None:
    text = """CREATE STREAM Bids (id INT, Price FLOAT, at TIMESTAMP)
              TIMESTAMP BY AT DELAY 5 SECONDS
              FROM csv('bids.csv', header = true, "null value" = '-', rate = -2.5)
              WITH (limit_ = 7)"""
    columns = schema(id=Type.INT, Price=Type.DOUBLE, at=Type.TIMESTAMP)
    options = (("header", True), ("null value", "-"), ("rate", -2.5), ("limit_", 7))
    source = Connector("csv", ("bids.csv",), options)
    assert action(text) == Create(StreamEntry("Bids", columns, 2, 5_000_000, source))


def test_a_stream_without_a_source_is_pushed_and_timed_by_arrival() -> None:
    made = action("create stream T (a int)")
    assert made == Create(StreamEntry("T", schema(a=Type.INT), None, 0, Connector("push")))


def test_clauses_of_create_stream_may_stand_in_any_order() -> None:
    one = action("CREATE STREAM T (a INT) FROM push() DELAY 5 TIMESTAMP BY a")
    assert one == action("CREATE STREAM T (a INT) TIMESTAMP BY a DELAY 5 FROM push()")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BOOLEAN", Type.BOOLEAN),
        ("bool", Type.BOOLEAN),
        ("INT", Type.INT),
        ("Integer", Type.INT),
        ("BIGINT", Type.BIGINT),
        ("LONG", Type.BIGINT),
        ("DOUBLE", Type.DOUBLE),
        ("DOUBLE PRECISION", Type.DOUBLE),
        ("FLOAT", Type.DOUBLE),
        ("REAL", Type.DOUBLE),
        ("STRING", Type.STRING),
        ("TEXT", Type.STRING),
        ("VARCHAR(20)", Type.STRING),
        ("CHAR", Type.STRING),
        ("DECIMAL(10, 2)", Type.decimal(10, 2)),
        ("numeric(5)", Type.decimal(5, 0)),
        ("DATE", Type.DATE),
        ("TIMESTAMP", Type.TIMESTAMP),
    ],
)
def test_type_names(name: str, expected: Type) -> None:
    entry = action(f"CREATE STREAM T (a {name})").entry
    assert entry.schema == schema(a=expected)


def test_create_relation() -> None:
    text = (
        "CREATE RELATION T (a INT PRIMARY KEY, b STRING) FROM json('t.json') WITH (changes = true)"
    )
    columns = schema(a=Type.INT, b=Type.STRING)
    source = Connector("json", ("t.json",))
    entry = RelationEntry("T", columns, (0,), source, has_changes=True, on_conflict="refuse")
    assert action(text) == Create(entry)


def test_create_relation_with_a_key_of_several_columns() -> None:
    text = "CREATE RELATION T (a INT, b STRING, c DATE, PRIMARY KEY (c, a)) WITH (static = TRUE)"
    entry = action(text).entry
    assert (entry.key, entry.is_static, entry.has_changes) == ((2, 0), True, False)


def test_ts_and_op_of_a_relation_with_changes_may_be_listed() -> None:
    rest = "FROM push() WITH (changes = true)"
    short = action(f"CREATE RELATION T (k INT, n STRING, PRIMARY KEY (n)) {rest}")
    long = f"CREATE RELATION T (ts BIGINT, k INT, op STRING, n STRING, PRIMARY KEY (n)) {rest}"
    assert action(long) == short
    assert short.entry.schema.names == ("k", "n")


def test_names_may_be_quoted_and_nearly_all_words_are_names() -> None:
    text = 'CREATE STREAM "Two words" ("from" INT, date DATE, timestamp INT, rows INT, "a""b" INT)'
    entry = action(text).entry
    assert entry.name == "Two words"
    assert entry.schema.names == ("from", "date", "timestamp", "rows", 'a"b')
    catalog = Catalog()
    catalog.add(entry)
    query = 'SELECT "FROM", date, timestamp, rows, "a""b" FROM "two WORDS" [ROWS 1]'
    assert action(query, catalog).entry.plan.schema.names == entry.schema.names


def test_create_view_keeps_the_plan_with_the_default_istream() -> None:
    entry = action("CREATE VIEW W AS SELECT a FROM S").entry
    assert isinstance(entry, ViewEntry)
    assert entry.plan.is_stream
    assert not action("CREATE VIEW W AS SELECT count(*) FROM S").entry.plan.is_stream


def test_create_query_with_everything() -> None:
    text = "CREATE QUERY Shop WEIGHT 2.5 INACTIVE AS\n SELECT a FROM S\n INTO parquet('out', n = 1)"
    entry = action(text).entry
    assert isinstance(entry, QueryEntry)
    assert (entry.name, entry.weight, entry.active) == ("Shop", 2.5, False)
    assert entry.sink == Connector("parquet", ("out",), (("n", 1),))
    assert entry.text == "SELECT a FROM S"


@pytest.mark.parametrize(
    ("words", "policy"), [("", "stop"), (" ON ERROR STOP", "stop"), (" ON ERROR SKIP", "skip")]
)
def test_a_query_stops_on_errors_unless_it_says_skip(words: str, policy: str) -> None:
    for text in (
        f"CREATE QUERY q{words} AS SELECT a FROM S",
        f"CREATE QUERY q WEIGHT 2{words} AS SELECT a FROM S",
    ):
        assert action(text).entry.on_error == policy
    assert action("SELECT a FROM S").entry.on_error == "stop"


def test_bare_queries_take_the_first_free_name() -> None:
    script = """CREATE STREAM S (a INT); CREATE QUERY Q2 AS SELECT a FROM S;
                SELECT a FROM S; SELECT a FROM S"""
    names = [s.action.entry.name for s in check_script(script, Catalog())]
    assert names == ["S", "Q2", "q1", "q3"]


def test_a_bare_query_may_have_a_sink() -> None:
    assert action("SELECT a FROM S INTO csv('x.csv')").entry.sink == Connector("csv", ("x.csv",))


def test_a_script_sees_its_own_declarations_and_leaves_the_catalog_alone() -> None:
    catalog = Catalog()
    script = """SET tick = '1 second'; CREATE STREAM T (t INT) TIMESTAMP BY t DELAY 1 MINUTE;
                CREATE VIEW W AS SELECT t FROM T [RANGE 2 MINUTES]; SELECT * FROM W;
                DROP QUERY q1; DROP VIEW W; DROP STREAM T; CREATE RELATION T (a INT)"""
    statements = list(check_script(script, catalog))
    assert statements[1].action.entry.delay_ticks == 60
    assert "RANGE 120" in str(statements[2].action.entry.plan)
    assert not catalog.entries
    assert catalog.tick_microseconds == 1


def test_statements_keep_their_text_and_position() -> None:
    first, second = check_script("SHOW ALL;\n\n  SHOW  STREAMS ;", Catalog())
    assert (first.text, first.position) == ("SHOW ALL", Position(1, 1))
    assert (second.text, second.position) == ("SHOW  STREAMS", Position(3, 3))


CONSTANTS = [
    ("INT", "1 + 2 * 3", 7),
    ("INT", "CAST('7' AS INT)", 7),
    ("INT", "5.0", 5),
    ("BIGINT", "-9223372036854775808", -(2**63)),
    ("BIGINT", "7 % -4", 3),
    ("BIGINT", "-7 % 4", -3),
    ("BIGINT", "- (3)", -3),
    ("DOUBLE", "1", 1.0),
    ("DOUBLE", "1 / 4", 0.25),
    ("DOUBLE", "1 / 0", None),
    ("DOUBLE", "-7.5 % 2", -1.5),
    ("DOUBLE", "2.5e3", 2500.0),
    ("STRING", "'it''s'", "it's"),
    ("STRING", "'a' || 'b'", "ab"),
    ("STRING", "CAST(5 AS STRING)", "5"),
    ("STRING", "CAST(TRUE AS STRING)", "true"),
    ("STRING", "NULL || 'x'", None),
    ("BOOLEAN", "true", True),
    ("BOOLEAN", "CAST('false' AS BOOLEAN)", False),
    ("DATE", "'2024-02-29'", date(2024, 2, 29)),
    ("DATE", "CAST(TIMESTAMP '2024-02-29 12:00:00' AS DATE)", date(2024, 2, 29)),
    ("DATE", "CAST(NULL AS DATE)", None),
    ("TIMESTAMP", "'2024-02-29 12:30:00.5'", datetime(2024, 2, 29, 12, 30, 0, 500_000)),
    ("TIMESTAMP", "'2024-01-01T01:00:00+01:00'", datetime(2024, 1, 1)),
    ("TIMESTAMP", "DATE '2024-01-01'::TIMESTAMP", datetime(2024, 1, 1)),
]


@pytest.mark.parametrize(("type_name", "constant", "value"), CONSTANTS)
def test_insert_evaluates_constants(type_name: str, constant: str, value: object) -> None:
    script = f"CREATE RELATION T (a {type_name}); INSERT INTO T VALUES ({constant}), (NULL)"
    *_, statement = check_script(script, Catalog())
    assert statement.action == Insert("T", ((value,), (None,)))
    assert type(statement.action.rows[0][0]) is type(value)


def test_insert_into_named_columns_leaves_the_others_null() -> None:
    assert action("INSERT INTO r (N) VALUES ('x')") == Insert("R", ((None, "x"),))


def test_delete() -> None:
    assert action("DELETE FROM R") == Delete("R", None)
    made = action("DELETE FROM R WHERE R.k > 1 AND n IS NULL")
    assert isinstance(made, Delete)
    assert str(made.predicate) == "((k > 1) AND is_null(n))"


def test_update_has_one_expression_a_column() -> None:
    made = action("UPDATE R SET k = k + 1 WHERE n LIKE 'a%'")
    assert isinstance(made, Update)
    assert list(map(str, made.expressions)) == ["cast((cast(k AS BIGINT) + 1) AS INT)", "n"]
    assert [e.type for e in made.expressions] == [Type.INT, Type.STRING]
    assert str(made.predicate) == "(n LIKE 'a%')"


def test_update_of_several_columns() -> None:
    made = action("UPDATE R SET n = NULL, k = 5")
    assert list(map(str, made.expressions)) == ["5", "NULL"]
    assert (made.expressions[1].type, made.predicate) == (Type.STRING, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER QUERY KNOWN SET WEIGHT 3", AlterQuery("known", weight=3.0)),
        ("ALTER QUERY known ACTIVATE", AlterQuery("known", active=True)),
        ("ALTER QUERY known DEACTIVATE", AlterQuery("known", active=False)),
        ("ALTER QUERY known SET INACTIVE", AlterQuery("known", active=False)),
        ("ALTER QUERY known ON ERROR SKIP", AlterQuery("known", on_error="skip")),
        ("ALTER QUERY known SET ON ERROR STOP", AlterQuery("known", on_error="stop")),
        ("ALTER STREAM s DELAY 5", AlterStream("S", 5)),
        ("ALTER STREAM S SET DELAY 2 SECONDS", AlterStream("S", 2_000_000)),
        ("ALTER PLAN QUEUE AFTER OP7", AlterPlan("op7", has_queue=True)),
        ("ALTER PLAN NO QUEUE AFTER op7", AlterPlan("op7", has_queue=False)),
        ("DROP QUERY Known", Drop("query", "known")),
        ("DROP VIEW v", Drop("view", "V")),
        ("SHOW streams", Show("streams")),
        ("SHOW ALL", Show("all")),
        ("SHOW Settings", Show("settings")),
        ("SHOW r2", Show("R2")),
        ("SET strategy = 'fifo'", SetOption("strategy", "fifo")),
        ("SET Page_Rows = 1000", SetOption("page_rows", 1000)),
        ("SET clock = WALL", SetOption("clock", "WALL")),
    ],
)
def test_other_statements(text: str, expected: Action) -> None:
    assert action(text) == expected


def test_explain_of_a_query_a_name_a_view_and_a_declaration() -> None:
    query = action("EXPLAIN SELECT a FROM S")
    assert isinstance(query, Explain)
    assert (query.stage, query.query.name, query.query.text) == ("logical", "q1", "SELECT a FROM S")
    named = action("EXPLAIN PHYSICAL Known")
    assert (named.stage, named.query) == ("physical", CATALOG.get("known"))
    assert action("EXPLAIN V").query.plan == CATALOG.get("V").plan
    declared_ = action("EXPLAIN SYNTAX CREATE QUERY new WEIGHT 2 AS SELECT a FROM S")
    assert (declared_.stage, declared_.query.name, declared_.query.weight) == ("syntax", "new", 2.0)


def test_explain_changes_nothing() -> None:
    catalog = declared()
    before = dict(catalog.entries)
    apply(action("EXPLAIN SELECT a FROM S", catalog), catalog)
    assert catalog.entries == before


def test_a_semicolon_at_the_end_is_no_further_statement() -> None:
    assert action("SHOW ALL ; ;") == Show("all")
