"""Plans are folded: what does the same is one box, whether or not it runs as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from millpond.server import plan_graph
from tests.server.serving import Running, running

SCRIPT = """
SET sharing = 'off';
CREATE STREAM S (t BIGINT, a INT, b INT) TIMESTAMP BY t;
CREATE VIEW per_a AS SELECT a, COUNT(*) AS n FROM S [RANGE 100] GROUP BY a;
CREATE QUERY many AS SELECT a, n FROM per_a WHERE n > 2;
CREATE QUERY total AS SELECT SUM(n) AS n FROM per_a;
CREATE QUERY first AS SELECT b, MAX(a) AS m FROM S [RANGE 10] WHERE a > 1 GROUP BY b;
CREATE QUERY second AS SELECT b, MAX(a) AS m FROM S [RANGE 20] WHERE a > 2 GROUP BY b;
CREATE QUERY third AS SELECT b, MIN(a) AS m FROM S [RANGE 20] WHERE a > 2 GROUP BY b;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(SCRIPT) as made:
        made.service.engine.push("S", [(t, t % 3, t % 5) for t in range(1, 50)])
        made.wait(lambda: made.service.engine.result_count("first"))
        yield made


def plan(server: Running, **wanted: Any) -> dict[str, Any]:
    found: dict[str, Any] = server.http.get("/api/plan", params=wanted).json()
    return found


def by_label(graph: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["label"]: node for node in graph["nodes"]}


def test_queries_that_differ_in_constants_only_are_one_row_of_boxes(server: Running) -> None:
    graph = plan(server, fold=True)
    nodes = by_label(graph)
    put_out = nodes["2 queries of one shape"]
    assert (put_out["kind"], put_out["members"], put_out["queries"]) == (
        "shape",
        2,
        "first, second",
    )
    above = [edge["from"] for edge in graph["edges"] if edge["to"] == put_out["id"]]
    boxes = {node["id"]: node for node in graph["nodes"]}
    assert [boxes[each]["members"] for each in above] == [2]
    assert nodes["query third"]["kind"] == "operator"
    assert graph["boxes"] < graph["operators"]


def test_a_box_that_is_opened_has_its_operators_beside_one_another(server: Running) -> None:
    box = by_label(plan(server, fold=True))["2 queries of one shape"]["id"]
    nodes = by_label(plan(server, fold=True, open=box))
    assert {"query first", "query second"} <= set(nodes)


def test_a_view_is_one_box_until_it_is_opened(server: Running) -> None:
    graph = plan(server, fold=True)
    assert [(each["name"], each["folded"]) for each in graph["views"]] == [("per_a", True)]
    assert by_label(graph)["view per_a"]["query_count"] == 2
    graph = plan(server, fold=True, open="view:per_a")
    assert "view per_a" not in by_label(graph)
    assert [each["folded"] for each in graph["views"]] == [False]


def test_queries_and_inputs_are_found_in_a_plan(server: Running) -> None:
    graph = plan(server, fold=True, find="SECOND")
    assert graph["found"] == [by_label(graph)["2 queries of one shape"]["id"]]
    assert plan(server, fold=True, find="stream s")["found"] == ["stream:s"]
    assert plan(server, fold=True, find="nothing of the kind")["found"] == []


def test_the_queries_of_a_box_are_listed_in_pages(server: Running) -> None:
    box = by_label(plan(server, fold=True))["2 queries of one shape"]["id"]
    listed = server.http.get("/api/plan/queries", params={"box": box, "fold": True, "limit": 1})
    assert (listed.json(), listed.headers["X-Total-Count"]) == (["first"], "2")
    wanted = {"box": box, "fold": True, "find": "sec"}
    assert server.http.get("/api/plan/queries", params=wanted).json() == ["second"]
    assert server.http.get("/api/plan/queries", params={"box": "shape:0"}).status_code == 404


def test_of_too_many_boxes_those_are_drawn_that_are_looked_for(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_graph, "MOST_NODES", 3)
    graph = plan(server)
    assert (graph["shown"], graph["boxes"] > 3) == (3, True)
    graph = plan(server, find="third")
    assert "query third" in by_label(graph)
    assert graph["found"] == [by_label(graph)["query third"]["id"]]
