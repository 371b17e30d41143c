"""Plans as XML: mirrored, read again, written by hand; bad ones are refused with their line."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond import Engine
from millpond.errors import CqlError, MillpondError
from millpond.server import plan_xml
from millpond.server.faults import RequestError
from millpond.server.plan_tree import as_cql
from millpond.server.service import Service
from millpond.server.upkeep import Upkeep
from tests.server.serving import SCRIPT


@pytest.fixture
def service() -> Iterator[Service]:
    with Engine() as engine:
        yield Service(engine)


def test_a_written_plan_makes_the_same_engine(service: Service) -> None:
    service.execute(SCRIPT + "CREATE VIEW V AS SELECT a FROM S WHERE a > 0;")
    service.execute("CREATE QUERY w WEIGHT 2 INACTIVE ON ERROR SKIP AS SELECT a FROM V")
    service.execute("SET strategy = 'chain'")
    service.engine.push("S", [(1, 1), (2, 2)])
    service.engine.run_until_idle()
    text = plan_xml.written(service.engine)
    with Engine() as engine:
        other = Service(engine)
        plan_xml.load(other, text.encode(), replaces=False)
        assert engine.settings.strategy == "chain"
        assert set(engine.catalog.entries) == set(service.engine.catalog.entries)
        assert engine.query_entry("w") == service.engine.query_entry("w")
        assert plan_xml.load(other, text.encode(), replaces=True) == 0  # nothing is left to do


def test_what_queries_tolerate_and_streams_keep_is_in_a_plan(service: Service) -> None:
    service.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t")
    said = "TOLERATE (SAMPLE AT LEAST 5 PERCENT, CONFIDENCE 99 PERCENT)"
    service.execute(f"CREATE QUERY q {said} AS SELECT sum(a) AS s FROM S [RANGE 5]")
    service.execute("ALTER STREAM S KEEP 12.5 PERCENT")
    text = plan_xml.written(service.engine)
    with Engine() as engine:
        other = Service(engine)
        plan_xml.load(other, text.encode(), replaces=False)
        assert engine.query_entry("q") == service.engine.query_entry("q")
        assert engine.catalog.get("S") == service.engine.catalog.get("S")
        assert plan_xml.load(other, text.encode(), replaces=True) == 0
        edited = text.replace("AT LEAST 5", "AT LEAST 50").replace("12.5", "80")
        assert plan_xml.load(other, edited.encode(), replaces=True) == 2
        assert engine.entities().get("query", "q").get("tolerates").startswith("TOLERATE (SAMPLE")
        assert engine.entities().get("stream", "S").get("kept_percent") == 80


def test_partitions_and_who_is_in_them_are_in_a_plan(service: Service) -> None:
    service.execute("CREATE PARTITION fast STRATEGY 'threshold(beta = 0.8)' THREADS 2 PRIORITY 3")
    service.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t")
    service.execute("CREATE QUERY q PARTITION fast AS SELECT a FROM S")
    service.execute("ALTER PARTITION fast ADD OPERATOR op1")
    text = plan_xml.written(service.engine)
    with Engine() as engine:
        other = Service(engine)
        plan_xml.load(other, text.encode(), replaces=False)
        assert plan_xml.load(other, text.encode(), replaces=True) == 1  # op1 is there by now
        assert engine.catalog.get("fast") == service.engine.catalog.get("fast")
        assert engine.query_entry("q") == service.engine.query_entry("q")
        assert plan_xml.load(other, text.encode(), replaces=True) == 0
        edited = text.replace('threads="2"', 'threads="4"').replace(' partition="fast"', "")
        edited = edited.replace('<operator name="op1" />', "")
        assert plan_xml.load(other, edited.encode(), replaces=True) == 3
        assert str(engine.catalog.get("fast")).endswith("THREADS 4 PRIORITY 3")


def test_an_edited_plan_changes_what_was_edited(service: Service) -> None:
    service.execute(SCRIPT)
    root = ET.fromstring(plan_xml.written(service.engine).split("\n", 1)[1])
    big = next(each for each in root.iter("query") if each.get("name") == "big")
    big.set("weight", "5")
    big.set("active", "false")
    big.set("on_error", "skip")
    root.remove(next(each for each in root.iter("query") if each.get("name") == "counts"))
    plan_xml.load(service, ET.tostring(root), replaces=True)
    assert service.engine.query_entry("big").weight == 5
    assert service.engine.query_entry("big").on_error == "skip"
    assert not service.engine.query_entry("big").active
    assert service.engine.catalog.get("counts") is None


TREES = {
    "select": (
        '<select condition="a &gt; 1"><stream name="S" window="NOW"/></select>',
        'SELECT * FROM "S" [NOW] WHERE a > 1',
    ),
    "aggregate": (
        (
            '<aggregate columns="a, COUNT(*) AS n" by="a" having="COUNT(*) &gt; 1">'
            '<stream name="S" window="RANGE 10"/></aggregate>'
        ),
        'SELECT a, COUNT(*) AS n FROM "S" [RANGE 10] GROUP BY a HAVING COUNT(*) > 1',
    ),
    "join": (
        (
            '<project columns="x.a, r.name"><join on="x.a = r.a">'
            '<stream name="S" as="x" window="ROWS 3"/><relation name="R" as="r"/></join></project>'
        ),
        'SELECT x.a, r.name FROM "S" AS "x" [ROWS 3] INNER JOIN "R" AS "r" ON x.a = r.a',
    ),
    "nested": (
        (
            '<istream><project columns="b"><project columns="a + 1 AS b">'
            '<stream name="S" window="NOW"/></project></project></istream>'
        ),
        'ISTREAM(SELECT b FROM (SELECT a + 1 AS b FROM "S" [NOW]) AS "t1")',
    ),
    "union": (
        (
            '<union all="true"><project columns="a"><stream name="S" window="NOW"/></project>'
            '<project columns="a"><relation name="R"/></project></union>'
        ),
        '(SELECT a FROM "S" [NOW]) UNION ALL (SELECT a FROM "R")',
    ),
}


@pytest.mark.parametrize(("tree", "cql"), TREES.values(), ids=TREES.keys())
def test_a_tree_is_a_query(service: Service, tree: str, cql: str) -> None:
    assert as_cql(ET.fromstring(tree)) == cql
    service.execute(SCRIPT)
    plan_xml.load(service, f'<plan><query name="q">{tree}</query></plan>'.encode(), False)
    assert service.query("q").name == "q"


def test_a_plan_written_by_hand_answers(service: Service) -> None:
    document = f"""<plan>
      <stream name="S"><cql>CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t</cql></stream>
      <query name="q" weight="2">{TREES["aggregate"][0]}</query>
    </plan>"""
    plan_xml.load(service, document.encode(), replaces=False)
    service.engine.push("S", [(1, 1), (2, 1), (3, 2)])
    service.engine.finish()
    rows = service.engine.results("q").to_pylist()
    assert {"ts": 2, "weight": 1, "a": 1, "n": 2} in rows


FAULTS = {
    "not closed": ("<plan>\n<query>\n</plan>", 3),
    "unknown element": ("<plan>\n\n<qery/></plan>", 3),
    "unknown operator": ('<plan>\n<query name="q"><pick/></query></plan>', 2),
    "no name": ("<plan>\n<query><cql>SELECT a FROM S</cql></query></plan>", 2),
    "inputs": ('<plan>\n<query name="q">\n<select condition="a"/></query></plan>', 3),
    "no condition": (
        '<plan><query name="q">\n<select><stream name="S"/></select></query></plan>',
        2,
    ),
    "policy": ('<plan>\n<query name="big" on_error="go"><cql>x</cql></query></plan>', 2),
    "no column": ('<plan>\n\n<query name="q"><cql>SELECT b FROM S</cql></query></plan>', 3),
    "twice": (
        '<plan><query name="q"><cql>x</cql></query>\n<query name="q"><cql>x</cql></query></plan>',
        2,
    ),
    "setting": ('<plan>\n<set name="colour" value="red"/></plan>', 2),
    "other text": (
        '<plan>\n<stream name="S"><cql>CREATE STREAM S (b INT)</cql></stream></plan>',
        2,
    ),
    "empty": ("<plan>\n<stream name='Z'/></plan>", 2),
}


@pytest.mark.parametrize(("document", "line"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_told_with_its_line(service: Service, document: str, line: int) -> None:
    service.execute(SCRIPT)
    with pytest.raises(RequestError) as raised:
        plan_xml.load(service, document.encode(), replaces=False)
    assert raised.value.details["line"] == line
    assert raised.value.message
    assert service.engine.catalog.get("q") is None


def test_the_mirror_is_written_and_loaded_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "plan.xml"
    with Engine() as engine:
        service = Service(engine)
        upkeep = Upkeep(service, file)
        upkeep.begin()
        service.execute(SCRIPT)
        upkeep.tick()
        engine.stop()
    edited = file.read_text().replace('name="big" weight="1"', 'name="big" weight="7"')
    file.write_text(edited)
    with Engine() as engine:
        Upkeep(Service(engine), file).begin()
        assert engine.query_entry("big").weight == 7
        engine.stop()
    file.write_text("<plan>\n<nothing/></plan>")
    with Engine() as engine, pytest.raises(MillpondError, match="line 2"):
        Upkeep(Service(engine), file).begin()


def test_a_statement_that_fails_halfway_is_an_error(service: Service) -> None:
    with pytest.raises(CqlError):
        service.execute("DROP QUERY nothing")


def test_changed_constraints_are_in_the_plan() -> None:
    with Engine() as engine, Engine() as other:
        engine.execute(
            "CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t CONSTRAINT old ORDERED BY (t) "
            "WITHIN 3 ROWS; ALTER STREAM T ADD CONSTRAINT new ORDERED BY (a) WITHIN 7 "
            "ON VIOLATION COUNT; ALTER STREAM T DROP CONSTRAINT old;"
            "CREATE STREAM U (x INT, y INT);"
            "ALTER STREAM T ADD FOREIGN KEY (a) REFERENCES U (y) WITHIN 9 ROWS;"
            "ALTER STREAM U ADD UNIQUE (y, x) WITHIN 2;"
            "ALTER STREAM U ADD CLUSTERED BY (x) WITHIN 1"
        )
        text, service = plan_xml.written(engine), Service(other)
        plan_xml.load(service, text.encode(), replaces=False)
        for name in ("T", "U"):
            entries = [each.catalog.get(name) for each in (engine, other)]
            assert entries[0].constraints == entries[1].constraints  # type: ignore[union-attr]
            assert len(entries[0].constraints) == 2  # type: ignore[union-attr]
        assert plan_xml.load(service, text.encode(), replaces=True) == 0
        without = re.sub("<alter>.*?</alter>", "", text)
        with pytest.raises(RequestError, match="has other constraints"):
            plan_xml.load(service, without.encode(), replaces=False)
        two = text.replace("<alter>", "<alter>ADD UNIQUE (a); DROP STREAM T; ALTER STREAM T ")
        with Engine() as third, pytest.raises(RequestError, match="is not one statement"):
            plan_xml.load(Service(third), two.encode(), replaces=False)


def test_a_changed_delay_is_in_the_plan(service: Service) -> None:
    service.execute(SCRIPT + "CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t DELAY 5;")
    service.execute("ALTER STREAM T DELAY 2 SECONDS")
    service.execute("CREATE STREAM U (t TIMESTAMP) TIMESTAMP BY t")
    service.execute("ALTER STREAM U DELAY ADAPTIVE 1 PERCENT AT MOST 2 SECONDS")
    service.execute("ALTER STREAM U AHEAD AT MOST 3 HOURS")
    text = plan_xml.written(service.engine)
    with Engine() as engine:
        other = Service(engine)
        plan_xml.load(other, text.encode(), replaces=False)
        assert engine.catalog.get("T").delay_ticks == 2_000_000  # type: ignore[union-attr]
        assert engine.catalog.get("U") == service.engine.catalog.get("U")
        assert plan_xml.load(other, text.encode(), replaces=True) == 0
        edited = text.replace('delay="2 seconds"', 'delay="none"')
        plan_xml.load(other, edited.encode(), replaces=True)
        assert engine.catalog.get("T").delay_ticks == 0  # type: ignore[union-attr]
