"""Plans as text or JSON, at each stage from syntax to operators; starts no JVM."""

from typing import Any

from millpond.catalog import QueryEntry
from millpond.cql.node import Node
from millpond.cql.statements import Create, Explain, Statement
from millpond.cql.text.parse import syntax_tree
from millpond.planning.draft import add_query
from millpond.planning.graph import Graph
from millpond.planning.optimise import optimise
from millpond.planning.physical import Operator

STAGES = ("syntax", "logical", "physical")


def query_of(statement: Statement) -> QueryEntry | None:
    """The query that a statement registers or explains, or None."""
    action = statement.action
    if isinstance(action, Create) and isinstance(action.entry, QueryEntry):
        return action.entry
    return action.query if isinstance(action, Explain) else None


def explain_text(statement: Statement, query: QueryEntry, stage: str) -> str:
    """A query's plan, indented."""
    if stage == "syntax":
        return syntax_tree(statement.text)
    plan = str(query.plan) if stage == "logical" else _graph(query).describe()
    reduced = [f"reduced: {each}" for each in query.reduced]
    return "\n".join([plan, *reduced, *(f"warning: {each.message}" for each in query.warnings)])


def explain_json(statement: Statement, query: QueryEntry, stage: str) -> dict[str, Any]:
    """A query's plan as JSON values."""
    plan: Any
    if stage == "syntax":
        plan = syntax_tree(statement.text).splitlines()
    elif stage == "logical":
        plan = node_json(query.plan)
    else:
        operators = _graph(query).operators.items()
        plan = [{"id": identity, **node_json(operator)} for identity, operator in operators]
    warnings = [each.message for each in query.warnings]
    return {"query": query.name, "stage": stage, "plan": plan, "warnings": warnings}


def node_json(node: Node | Operator, known: dict[Node, int] | None = None) -> dict[str, Any]:
    """A plan node with all below it; what is read again is only referred to, by its number."""
    known = {} if known is None else known
    if isinstance(node, Node) and node.inputs:
        if node in known:
            return {"same_as": known[node]}
        known[node] = len(known) + 1
    return {
        "node": type(node).__name__,
        **({"number": known[node]} if isinstance(node, Node) and node in known else {}),
        "label": node.label(),
        "columns": [str(field) for field in node.schema.fields],
        "inputs": [node_json(below, known) for below in node.inputs],
    }


def _graph(query: QueryEntry) -> Graph:
    graph = Graph()
    add_query(graph, query.name, optimise(query.plan, query.on_error))
    return graph
