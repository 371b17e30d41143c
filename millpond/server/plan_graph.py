"""The running plan as a graph of boxes and edges, and its drawings: JSON, Graphviz, SVG."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from millpond.entities import Entity
from millpond.facade.engine import Engine
from millpond.identities import OperatorId, QueueId
from millpond.insight.input_names import input_label
from millpond.insight.operator_names import named_queries, operator_label
from millpond.planning.physical import OutputOperator
from millpond.server.plan_folding import Boxes, Folding, Members, Wish, without_constants

NODE_WIDTH, NODE_HEIGHT, GAP_X, GAP_Y = 190, 46, 40, 70
MOST_NODES = 400
"""A picture of more says nothing."""

MOST_NAMED = 3
"""So many queries of a box are named; the others are counted."""

MEASURED_EDGE = ("backlog_rows", "backlog_bytes", "behind_seconds", "rate", "retained_bytes")


def plan_graph(engine: Engine, folding: Folding, wish: Wish) -> dict[str, Any]:
    """Nodes (inputs, boxes of operators) and edges (queues) with what was measured of them."""
    with engine.held():
        return _Drawing(engine, folding, wish).graph()


@dataclass
class _Served:
    """The queries that a box works for: how many, and the first of them."""

    count: int = 0
    named: tuple[str, ...] = ()

    def words(self) -> str:
        more = self.count - len(self.named)
        return ", ".join(self.named) + (f" and {more:,} more" if more else "")


class _Drawing:
    """A plan of one moment; the lock is held."""

    def __init__(self, engine: Engine, folding: Folding, wish: Wish) -> None:
        self._engine, self._wish = engine, wish
        self._kinds = engine.entities().kinds
        self._operators = list(engine.runtime.running) if engine.has_runtime else []
        self._boxes: Boxes = folding.boxes(engine, wish)
        self._shown = self._chosen()
        units = engine.runtime.units.of if engine.has_runtime else {}
        self._unit_of = {name: unit.identity for name, unit in units.items()}
        self._threads = (
            [t.operators for t in engine.queries.partitioning.threads()]
            if engine.has_runtime
            else []
        )
        self._thread_of = {name: at for at, part in enumerate(self._threads) for name in part}

    def _chosen(self) -> list[str]:
        """The boxes that are drawn: of too many those that are looked for, and what they read."""
        boxes = list(self._boxes.members)
        if len(boxes) <= MOST_NODES or not self._wish.find:
            return boxes[:MOST_NODES]
        chosen: dict[str, None] = {}
        for box in boxes:
            if len(chosen) < MOST_NODES and self._is_found(box):
                chosen |= dict.fromkeys(self._below(box))
        return [box for box in boxes if box in chosen]

    def _below(self, box: str) -> Iterable[str]:
        below = self._engine.graph.upstream(self._boxes.members[box][0])
        return {self._boxes.of[each] for each in below if each in self._boxes.of}

    def graph(self) -> dict[str, Any]:
        """The whole of it."""
        edges = list(self._edges())
        inputs = dict.fromkeys(e["from"] for e in edges if e["from"] not in self._boxes.members)
        nodes = [self._input(name) for name in inputs]
        nodes += [self._node(box) for box in self._shown]
        return {
            "nodes": nodes,
            "edges": edges,
            "operators": len(self._operators),
            "boxes": len(self._boxes.members),
            "shown": len(self._shown),
            "threads": len(self._threads),
            "partitions": [entry.name for entry in self._engine.queries.partitioning.entries],
            "views": [
                {"name": name, "operators": count, "folded": f"view:{name}" in self._boxes.members}
                for name, count in self._boxes.views.items()
            ],
            "found": self._found(nodes) if self._wish.find else [],
        }

    def _input(self, queue: str) -> dict[str, Any]:
        label = input_label(self._engine.catalog, queue)
        kind, _, name = label.partition(" ")
        about = {"of": kind, "name": name} if kind in ("stream", "relation") else {}
        measured = self._measured([QueueId(queue)])
        return {"id": queue, "kind": "input", "label": label, **about, **measured}

    def _node(self, box: str) -> dict[str, Any]:
        members, kind = self._boxes.members[box], self._boxes.kinds[box]
        statistics = [self._engine.runtime.statistics[each] for each in members]
        driver = sum(each.tally.driver_steps for each in statistics)
        executors = sum(each.tally.executor_steps for each in statistics)
        served = self._served(box)
        return {
            "id": box,
            "kind": kind,
            "label": self._label(box),
            "does": operator_label(self._engine.graph.operators[members[-1]]),
            "members": len(members),
            "puts_out": isinstance(self._engine.graph.operators[members[0]], OutputOperator),
            "first": members[0],
            "unit": self._unit_of.get(members[0], members[0]) if len(members) == 1 else box,
            "thread": self._thread_of.get(members[0], 0),
            "partition": self._engine.runtime.partitions.of.get(members[0], ""),
            "load": sum(each.busy.per_second() for each in statistics),
            "place": "spark" if executors > driver else "driver",
            "queries": served.words(),
            "query_count": served.count,
            "rows_in_per_second": sum(each.inputs.per_second() for each in statistics),
            "rows_out_per_second": sum(each.outputs.per_second() for each in statistics),
            "synopsis_bytes": self._synopsis(members),
        }

    def _label(self, box: str) -> str:
        """What a box is called: an operator by what it does, an output by its queries."""
        members = self._boxes.members[box]
        if self._boxes.kinds[box] == "view":
            return f"view {box.removeprefix('view:')}"
        operator = self._engine.graph.operators[members[0]]
        if not isinstance(operator, OutputOperator):
            label = operator_label(operator)
            return label if len(members) == 1 else without_constants(label)
        served = self._served(box)
        if served.count == 1:
            return f"{'left out of ' * operator.query.is_aside}query {served.named[0]}"
        return f"{served.count:,} queries of one shape"

    def _served(self, box: str) -> _Served:
        count, named = 0, list[str]()
        for name in self._boxes.served(self._engine.graph, box):
            names = named_queries(self._engine.queries, [name])
            count += len(names)
            named += names[: MOST_NAMED - len(named)]
        return _Served(count, tuple(named))

    def _synopsis(self, members: Members) -> int | None:
        running = self._engine.runtime.running
        found = [each for each in members if running[each].state is not None][:MOST_NODES]
        if not found:
            return None
        return sum(int(self._entity("synopsis", each).get("memory")) for each in found)

    def _entity(self, kind: str, name: str) -> Entity:
        return Entity(self._engine.controlled, self._kinds[kind], name)

    def _edges(self) -> Iterator[dict[str, Any]]:
        """The queues between boxes, those that have the same ends as one."""
        shown, queues = set(self._shown), defaultdict[tuple[str, str], list[QueueId]](list)
        for box in self._shown:
            for each in self._boxes.members[box]:
                for queue in self._engine.runtime.running[each].inputs:
                    begin = self._begin(queue)
                    is_there = begin in shown or begin not in self._boxes.members
                    if begin != box and is_there and queue not in queues[begin, box]:
                        queues[begin, box].append(queue)
        for (begin, end), between in queues.items():
            if between:
                yield self._edge(begin, end, between)

    def _begin(self, queue: QueueId) -> str:
        if isinstance(queue, OperatorId):
            return self._boxes.of.get(queue, queue)
        return str(queue.original) if self._wish.folds else str(queue)

    def _edge(self, begin: str, end: str, queues: list[QueueId]) -> dict[str, Any]:
        unit = self._unit_of.get(queues[0]) if isinstance(queues[0], OperatorId) else None
        readers = self._boxes.members[end]
        is_within = unit is not None and any(self._unit_of.get(each) == unit for each in readers)
        return {
            "from": begin,
            "to": end,
            "queue": str(queues[0]),
            "queues": len(queues),
            "label": input_label(self._engine.catalog, queues[0]),
            "present": not is_within,
            **self._measured(queues),
        }

    def _measured(self, queues: list[QueueId]) -> dict[str, Any]:
        """What is measured of queues, summed up; the longest wait of theirs."""
        known = [each for each in queues if each in self._engine.inputs.queues]
        tables = [self._entity("queue", each).values() for each in known[:MOST_NODES]]
        found = {key: sum(table[key] for table in tables) for key in MEASURED_EDGE}
        if tables:
            found["behind_seconds"] = max(table["behind_seconds"] for table in tables)
        return found if tables else {}

    # -- what is looked for ----------------------------------------------------------------

    def _found(self, nodes: list[dict[str, Any]]) -> list[str]:
        """The nodes that have to do with what is looked for."""
        inputs = [n["id"] for n in nodes if n["kind"] == "input" and self._has(n["label"], n["id"])]
        return inputs + [box for box in self._shown if self._is_found(box)]

    def _has(self, *texts: str) -> bool:
        return any(self._wish.find in text.lower() for text in texts)

    def _is_found(self, box: str) -> bool:
        members, graph = self._boxes.members[box], self._engine.graph
        if self._has(box, *members, *(graph.operators[each].label() for each in members)):
            return True
        outputs = (graph.operators[each] for each in members)
        names = (o.query.asked_by for o in outputs if isinstance(o, OutputOperator))
        return self._has(*named_queries(self._engine.queries, names))


def queries_of_box(engine: Engine, folding: Folding, wish: Wish, box: str) -> list[str] | None:
    """The names of all queries that a box works for; None if there is no such box."""
    with engine.held():
        boxes = folding.boxes(engine, wish)
        if box not in boxes.members:
            return None
        return named_queries(engine.queries, boxes.served(engine.graph, box))


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
    return f"{node['id']}: {node['label'][:60]}" if node["kind"] == "operator" else node["label"]


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
