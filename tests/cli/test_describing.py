from dataclasses import replace
from types import SimpleNamespace

from millpond.catalog import Catalog, Connector, QueryEntry, RelationEntry, StreamEntry
from millpond.cli.describing import describe_entry, list_entries
from tests.connectors.declarations import schema


def test_an_empty_catalog_says_so() -> None:
    assert list_entries(Catalog()) == "nothing is declared yet"


def test_entries_are_listed_with_kind_and_columns() -> None:
    catalog = Catalog()
    catalog.add(StreamEntry("Requests", schema("a INT")))
    catalog.add(RelationEntry("R", schema("b STRING")))
    assert list_entries(catalog).splitlines() == [
        "stream    Requests  (a INT)",
        "relation  R         (b STRING)",
    ]


def test_a_stream_tells_its_time_and_source() -> None:
    entry = StreamEntry("S", schema("a INT, ts BIGINT"), 1, 5, Connector("csv", ("s.csv",)))
    assert describe_entry(entry).splitlines() == [
        "stream S",
        "  a   INT",
        "  ts  BIGINT",
        "  TIMESTAMP BY ts",
        "  DELAY 5 ticks",
        "  FROM csv('s.csv')",
    ]


def test_a_relation_tells_its_key_and_changes() -> None:
    entry = RelationEntry("R", schema("a INT, b INT"), (0,), Connector("csv", ("r.csv",)), True)
    assert describe_entry(entry).splitlines()[3:] == [
        "  PRIMARY KEY (a) NOT ENFORCED",
        "  FROM csv('r.csv')",
        "  with changes",
    ]
    for policy, told in (("refuse", ""), ("replace", " ON CONFLICT REPLACE")):
        entry = replace(entry, on_conflict=policy)
        assert describe_entry(entry).splitlines()[3] == f"  PRIMARY KEY (a){told}"


def test_a_query_tells_its_text_weight_and_sink() -> None:
    plan = SimpleNamespace(schema=schema("n BIGINT"))
    sink = Connector("json", ("out",))
    entry = QueryEntry("q", plan, 2.0, False, sink, "SELECT count(*) AS n\nFROM S")
    assert describe_entry(entry).splitlines() == [
        "query q",
        "  n  BIGINT",
        "  weight 2, inactive",
        "  SELECT count(*) AS n",
        "  FROM S",
        "  INTO json('out')",
    ]
