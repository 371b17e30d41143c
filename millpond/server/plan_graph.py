"""The running plan as a graph of nodes and edges, and its drawings: JSON, Graphviz, SVG."""

from collections import defaultdict
from html import escape
from typing import Any

from millpond.entities.running import thread_parts
from millpond.facade.engine import Engine
from millpond.identities import QueryId
from millpond.insight.input_names import input_label

NODE_WIDTH, NODE_HEIGHT, GAP_X, GAP_Y = 190, 46, 40, 70
MOST_NODES = 400
"""A picture of more says nothing."""


def plan_graph(engine: Engine, query: str | None = None) -> dict[str, Any]:
    """Nodes (inputs, operators) and edges (queues) with what was measured of them.

    ``query``: only what works for this one.
    """
    with engine.held():
        entities = engine.entities()
        operators = {e.name: e.values() for e in entities.of_kind("operator")}
        queues = {e.name: e.values() for e in entities.of_kind("queue")}
        synopses = {e.name: e.values() for e in entities.of_kind("synopsis")}
        units = engine.runtime.units.of if engine.has_runtime else {}
        unit_of: dict[str, str] = {name: unit.identity for name, unit in units.items()}
        threads = thread_parts(engine.controlled) if engine.has_runtime else []
        output = engine.queries.outputs.get(QueryId(query)) if query else None
        wanted = engine.graph.upstream(output) if output in operators else set(operators)
    parts = enumerate(threads)
    thread_of: dict[str, int] = {name: place for place, part in parts for name in part}
    shown = [name for name in operators if name in wanted][:MOST_NODES]
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    read = dict.fromkeys(q for name in shown for q in _reads(operators[name]))
    with engine.held():
        labels = {name: input_label(engine.catalog, name) for name in read}
    nodes += [
        {"id": name, "kind": "input", "label": labels[name], **_of(queues, name)}
        for name in read
        if name not in operators
    ]
    for name in shown:
        values = operators[name]
        steps = values["executor_steps"], values["driver_steps"]
        nodes.append(
            {
                "id": name,
                "kind": "operator",
                "label": values["does"],
                "unit": unit_of.get(name, name),
                "thread": thread_of.get(name, 0),
                "load": values["load"],
                "place": "spark" if steps[0] > steps[1] else "driver",
                "queries": values["queries"],
                "rows_in_per_second": values["rows_in_per_second"],
                "rows_out_per_second": values["rows_out_per_second"],
                "waiting_rows": values["waiting_rows"],
                "synopsis_bytes": synopses[name]["memory"] if name in synopses else None,
            }
        )
        for queue in _reads(values):
            if queue in operators and queue not in shown:
                continue
            edge: dict[str, Any] = {"from": queue, "to": name, "queue": queue}
            edges.append(edge | {"label": labels[queue]} | _of(queues, queue))
    for edge in edges:
        same = unit_of.get(edge["from"]) == unit_of.get(edge["to"]) and edge["from"] in unit_of
        edge["present"] = not same
    return {
        "nodes": nodes,
        "edges": edges,
        "operators": len(operators),
        "shown": len(shown),
        "threads": len(threads),
    }


def _reads(values: dict[str, Any]) -> list[str]:
    return [name for name in values["reads"].split(", ") if name]


def _of(queues: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    keys = ("backlog_rows", "backlog_bytes", "behind_seconds", "rate", "retained_bytes")
    return {key: queues[name][key] for key in keys} if name in queues else {}


def dot(graph: dict[str, Any]) -> str:
    """The graph in Graphviz' language."""
    lines = ["digraph millpond {", "  rankdir=TB;", "  node [shape=box, fontname=sans];"]
    for node in graph["nodes"]:
        shape = "ellipse" if node["kind"] == "input" else "box"
        lines.append(f"  {_quoted(node['id'])} [label={_quoted(_title(node))}, shape={shape}];")
    for edge in graph["edges"]:
        rows = edge.get("backlog_rows", 0)
        style = "solid" if edge["present"] else "dotted"
        label = _quoted(f"{rows:,} rows wait" if rows else "")
        ends = f"{_quoted(edge['from'])} -> {_quoted(edge['to'])}"
        lines.append(f"  {ends} [label={label}, style={style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _title(node: dict[str, Any]) -> str:
    return node["label"] if node["kind"] == "input" else f"{node['id']}: {node['label'][:60]}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def layers(graph: dict[str, Any]) -> list[list[str]]:
    """The nodes in layers: each below all that it reads, beside those with near readers."""
    above: dict[str, list[str]] = defaultdict(list)
    for edge in graph["edges"]:
        above[edge["to"]].append(edge["from"])
    depth: dict[str, int] = {}
    for node in graph["nodes"]:  # operators come after those that they read
        depth[node["id"]] = 1 + max((depth.get(up, -1) for up in above[node["id"]]), default=-1)
    rows: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, level in depth.items():
        rows[level].append(name)
    for level, row in enumerate(rows[1:], start=1):
        place = {name: index for index, name in enumerate(rows[level - 1])}
        row.sort(key=lambda name: _mean([place.get(up, 0) for up in above[name]]))
    return rows


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def svg(graph: dict[str, Any]) -> str:
    """The graph as a picture."""
    rows = layers(graph)
    width = max((len(row) for row in rows), default=1) * (NODE_WIDTH + GAP_X) + GAP_X
    height = len(rows) * (NODE_HEIGHT + GAP_Y) + GAP_Y
    at: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        left = (width - len(row) * (NODE_WIDTH + GAP_X) + GAP_X) / 2
        for index, name in enumerate(row):
            at[name] = (
                left + index * (NODE_WIDTH + GAP_X),
                GAP_Y / 2 + level * (NODE_HEIGHT + GAP_Y),
            )
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    parts = [f'<svg {box} font-family="sans-serif" font-size="11">']
    for edge in graph["edges"]:
        (x1, y1), (x2, y2) = at[edge["from"]], at[edge["to"]]
        dash = "" if edge["present"] else ' stroke-dasharray="4 4"'
        x1, x2 = x1 + NODE_WIDTH / 2, x2 + NODE_WIDTH / 2
        parts.append(
            f'<line x1="{x1}" y1="{y1 + NODE_HEIGHT}" x2="{x2}" y2="{y2}" stroke="#678"{dash}/>'
        )
        if edge.get("backlog_rows"):
            middle = (x1 + x2) / 2, (y1 + NODE_HEIGHT + y2) / 2
            parts.append(f'<text x="{middle[0]}" y="{middle[1]}">{edge["backlog_rows"]:,}</text>')
    parts += [_box(node, *at[node["id"]]) for node in graph["nodes"]]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(node: dict[str, Any], x: float, y: float) -> str:
    corner = 22 if node["kind"] == "input" else 4
    load = min(1.0, node.get("load") or 0.0)
    fill = "#dfe9f2" if node["kind"] == "input" else f"hsl({120 - 120 * load:.0f} 60% 85%)"
    title = _title(node)
    short = title if len(title) <= 30 else title[:29] + "…"
    return (
        f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{NODE_WIDTH}" '
        f'height="{NODE_HEIGHT}" rx="{corner}" fill="{fill}" stroke="#456"/>'
        f'<text x="{x + NODE_WIDTH / 2}" y="{y + 27}" text-anchor="middle">{escape(short)}</text>'
        "</g>"
    )
