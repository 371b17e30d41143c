"""Queries: SELECT, set operations and Istream, Dstream, Rstream become the checked algebra."""

from dataclasses import dataclass, replace

from sqlglot import exp

from millpond.catalog import Catalog
from millpond.cql.algebra import Distinct, Dstream, Filter, Istream, Project, Rstream, SetOperation
from millpond.cql.check.correlation import (
    NOT_IN_RANKED,
    NOT_IN_SET_OPERATIONS,
    ONLY_EQUALITIES,
    is_correlated,
    is_correlating_equality,
)
from millpond.cql.check.expressions import analyser
from millpond.cql.check.finals import final, with_end
from millpond.cql.check.from_clause import AnalysedQuery, FromAnalyser
from millpond.cql.check.ranks import check_order
from millpond.cql.check.scope import Scope
from millpond.cql.check.select_list import SelectAnalyser, is_grouped_select, is_ranked_select
from millpond.cql.check.walk import connect, flatten, refuse
from millpond.cql.coercion import cast, common_type, with_article
from millpond.cql.expressions import Column, Expression, Literal
from millpond.cql.node import Node
from millpond.cql.text.dialect import unsupported
from millpond.cql.text.from_clause import ToStream
from millpond.cql.text.places import StatementError, StatementText, offset_of
from millpond.schema import Type

_OPERATORS: dict[str, type[Istream] | type[Dstream] | type[Rstream]] = {
    "ISTREAM": Istream,
    "DSTREAM": Dstream,
    "RSTREAM": Rstream,
}
_SET_OPERATIONS: dict[type[exp.Expr], str] = {
    exp.Union: "union",
    exp.Except: "except",
    exp.Intersect: "intersect",
}


@dataclass(frozen=True)
class QueryAnalyser:
    """Analyses queries over the names of a catalog; ``text`` is the statement they stand in."""

    catalog: Catalog
    text: StatementText

    def whole(self, node: exp.Expr) -> Node:
        """The plan of a top-level query or view, with CQL's default Istream."""
        return self.query(node).with_default

    def query(self, node: exp.Expr, outer: Scope | None = None, refusal: str = "") -> AnalysedQuery:
        """A query of any form; ``outer`` is the scope of the query around it."""
        if isinstance(node, exp.Subquery):
            if node.args.get("alias") is not None:
                raise StatementError("an alias cannot stand here", node.args["alias"])
            return self.query(node.this, outer, refusal)
        if isinstance(node, ToStream):
            return _to_stream(self.query(node.this, outer, refusal), node)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer)
        if not isinstance(node, exp.Select):
            refuse(node)
        return self._select(node, outer, refusal)

    def subquery(self, node: exp.Expr, enclosing: Scope) -> Node:
        """A subquery in an expression: a relation, correlated at most with ``enclosing``."""
        plan = self.query(node, enclosing).plan
        if plan.is_stream:
            raise StatementError(
                "a subquery in an expression is a relation; leave out Istream, Dstream or Rstream",
                node,
            )
        return plan

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> AnalysedQuery:
        if any(node.args.get(part) for part in ("by_name", "side", "kind", "on")):
            raise unsupported("a set operation BY NAME", offset_of(node))
        for part in ("order", "limit", "final"):
            if node.args.get(part) is not None:
                message = "put the set operation into FROM: SELECT * FROM (… UNION …) ORDER BY …"
                raise StatementError(message, node.args[part])
        left = self.query(node.this, outer, NOT_IN_SET_OPERATIONS)
        right = self.query(node.expression, outer, NOT_IN_SET_OPERATIONS)
        for branch, part in ((left, node.this), (right, node.expression)):
            if branch.plan.is_stream:
                raise StatementError(
                    "UNION, EXCEPT and INTERSECT combine relations; put Istream( … ) around it",
                    part,
                )
        word = _SET_OPERATIONS[type(node)]
        plans = _aligned(left.plan, right.plan, word, node.expression)
        return AnalysedQuery(
            SetOperation(*plans, word, not node.args.get("distinct")),
            left.is_aggregation or right.is_aggregation,
            left.names_stream or right.names_stream,
        )

    def _select(self, node: exp.Select, outer: Scope | None, refusal: str) -> AnalysedQuery:
        _check_select(node)
        check_order(node)
        is_ranked = is_ranked_select(node)
        with_arrival = is_ranked and not is_grouped_select(node)
        source = FromAnalyser(self.catalog, self.query, self.text, with_arrival)
        found = source.relation(node.args["from_"].this)
        scope = replace(found.scope, outer=outer, outer_refusal=ONLY_EQUALITIES)
        refusal = NOT_IN_RANKED if is_ranked else refusal
        plan = self._where(node, found.plan, replace(scope, outer_refusal=refusal))
        select = SelectAnalyser(node, scope, self.subquery, self.text, found.arrival)
        plan = select.project(plan)
        emitted = node.args.get("final")
        if emitted is not None:
            plan = with_end(plan, offset_of(emitted))
        if node.args.get("distinct") is not None:
            plan = Distinct(plan)
        if emitted is not None:
            plan = final(plan, self.catalog.tick_microseconds)
        is_relation = is_grouped_select(node) or is_ranked
        made = AnalysedQuery(plan, is_relation, found.names_stream)
        word = node.args.get("hint")
        return made if word is None else _to_stream(made, word)

    def _where(self, node: exp.Select, plan: Node, scope: Scope) -> Node:
        where = node.args.get("where")
        if where is None:
            return plan
        rules = analyser(scope, "WHERE", self.subquery)
        parts = []
        for part in flatten(where.this, exp.And):
            condition = rules.predicate(part)
            if is_correlated(condition) and not is_correlating_equality(condition):
                raise StatementError(ONLY_EQUALITIES, part)
            parts.append(condition)
        return Filter(plan, connect("and", parts), self.text.written("WHERE", where.this))


def _check_select(node: exp.Select) -> None:
    if not node.expressions:
        raise StatementError("SELECT needs at least one column", node)
    if node.args.get("from_") is None:
        raise StatementError("FROM is missing: a query reads streams, relations or views", node)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise StatementError("DISTINCT ON is not supported; use GROUP BY", node)
    known = {"expressions", "from_", "where", "group", "having", "distinct", "hint", "final"}
    known |= {"order", "limit"}
    for part, value in node.args.items():
        if value and part not in known:
            raise unsupported(part.strip("_").upper().replace("_", " "), offset_of(node))


def _to_stream(made: AnalysedQuery, node: exp.Expr) -> AnalysedQuery:
    kind = node.args["kind"]
    if made.plan.is_stream:
        raise StatementError(f"{kind.capitalize()} of a stream: the query is one already", node)
    return replace(made, plan=_OPERATORS[kind](made.plan))


def _aligned(left: Node, right: Node, word: str, place: exp.Expr) -> tuple[Node, Node]:
    """Both branches of a set operation with the same types."""
    if len(left.schema) != len(right.schema):
        raise StatementError(
            f"{word.upper()} needs as many columns on both sides; here {len(left.schema)} "
            f"{left.schema} and {len(right.schema)} {right.schema}",
            place,
        )
    types = []
    for position, (a, b) in enumerate(zip(_columns(left), _columns(right), strict=True)):
        to = common_type((a, b))
        if to is None:
            raise StatementError(
                f"column {position + 1} of {word.upper()} is {with_article(a.type)} on the left "
                f"and {with_article(b.type)} on the right; CAST one of them",
                place,
            )
        types.append(to)
    return _cast_to(left, types), _cast_to(right, types)


def _columns(plan: Node) -> list[Expression]:
    """The columns of a branch; a bare NULL is shown as such, for it takes any type."""
    columns: list[Expression] = [
        Column(i, f.type, f.name) for i, f in enumerate(plan.schema.fields)
    ]
    if isinstance(plan, Project):
        for i, expression in enumerate(plan.expressions):
            if isinstance(expression, Literal) and expression.value is None:
                columns[i] = Literal(None, Type.NULL)
    return columns


def _cast_to(plan: Node, types: list[Type]) -> Node:
    if plan.schema.types == tuple(types):
        return plan
    if isinstance(plan, Project):
        pairs = zip(plan.expressions, types, strict=True)
        return replace(plan, expressions=tuple(cast(e, to) for e, to in pairs))
    pairs = zip(_columns(plan), types, strict=True)
    return Project(plan, tuple(cast(column, to) for column, to in pairs), plan.schema.names)
