"""Queries: SELECT, set operations and Istream, Dstream, Rstream become the checked algebra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from millpond.catalog import Catalog, RelationEntry
from millpond.cql.algebra import (
    ONE_ROW,
    Distinct,
    Dstream,
    Istream,
    Join,
    Project,
    Rstream,
    SetOperation,
)
from millpond.cql.check.clock import clock_of, selected
from millpond.cql.check.correlation import (
    NOT_IN_SET_OPERATIONS,
    NOT_IN_SEVERAL_SETS,
    ONLY_IN_WHERE,
)
from millpond.cql.check.expressions import analyser
from millpond.cql.check.finals import final, with_end
from millpond.cql.check.from_clause import (
    AnalysedQuery,
    FromAnalyser,
    FromRelation,
    renamed_columns,
)
from millpond.cql.check.ranks import check_order
from millpond.cql.check.scope import NO_FROM, Scope
from millpond.cql.check.select_list import (
    SelectAnalyser,
    goes_by_arrival,
    is_grouped_select,
    is_ranked_select,
)
from millpond.cql.check.taking_back import taken_back
from millpond.cql.check.walk import connect, flatten, refuse
from millpond.cql.coercion import cast, common_type, with_article
from millpond.cql.expressions import Column, Expression, Literal
from millpond.cql.node import Node
from millpond.cql.text.dialect import INTO_FROM, unsupported
from millpond.cql.text.from_clause import ToStream, WithNames
from millpond.cql.text.places import StatementError, StatementText, offset_of
from millpond.errors import CqlWarning
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
_TAKES_BACK = (
    "{} takes rows back, of which the default Istream tells nothing; write RELATION before the "
    "query (AS RELATION SELECT …) for all changes, or STREAM if only what comes in is wanted"
)
_SILENT = (
    'view "{0}" is a stream by default: all its rows so far are read here, also those that its '
    "window has let go; write CREATE VIEW {0} AS RELATION …, or {0} [UNBOUNDED] if this is meant"
)
_RELATION_OF_STREAM = (
    "this query says itself that it is a stream; leave out RELATION, or read the stream through "
    "a window: SELECT * FROM Istream( … ) [RANGE 1 MINUTE]"
)

_FINAL_OF_ALL = (
    "EMIT FINAL makes a stream, and set operations combine relations; put the whole into FROM, "
    "with window_end on both sides: SELECT * FROM (… UNION …) T EMIT FINAL"
)


_NOTHING = FromRelation(ONE_ROW, Scope(), names_stream=False)
"""What a SELECT without FROM reads: one row, without columns."""


@dataclass(frozen=True)
class WholeQuery:
    """What a registered query or a view means."""

    plan: Node
    is_stream_unsaid: bool
    warnings: tuple[CqlWarning, ...]


@dataclass(frozen=True)
class QueryAnalyser:
    """Analyses queries over the names of a catalog; ``text`` is the statement they stand in."""

    catalog: Catalog
    text: StatementText
    warnings: list[CqlWarning] = field(default_factory=list)
    """What was found that is hardly meant."""
    views: set[int] = field(default_factory=set)
    """The plans of the views that were read, by ``id``."""
    named: Mapping[str, AnalysedQuery] = field(default_factory=dict)
    """What WITH has named, in lower case."""

    def whole(self, node: exp.Expr) -> WholeQuery:
        """A top-level query or view, with CQL's default Istream."""
        analysed = self.query(node)
        plan = self._default(analysed, node)
        if not plan.is_stream:
            self._as_relation(analysed)
        return WholeQuery(plan, analysed.gets_istream, tuple(self.warnings))

    def _default(self, analysed: AnalysedQuery, node: exp.Expr) -> Node:
        """The plan with the default Istream, if it gets one; warns of what that hides."""
        if analysed.gets_istream:
            found = {e.what: e.written for e in taken_back(analysed.plan, self.views)}
            for what, written in found.items():
                position = written.position if written else self.text.position(offset_of(node))
                self.warnings.append(CqlWarning(_TAKES_BACK.format(what), position))
        return analysed.with_default

    def _as_relation(self, analysed: AnalysedQuery) -> Node:
        """The plan, read as a relation; warns of views in it that are streams by default."""
        for name in analysed.silent:
            message = _SILENT.format(name.name)
            self.warnings.append(CqlWarning(message, self.text.position(offset_of(name))))
        return analysed.plan

    def query(self, node: exp.Expr, outer: Scope | None = None, refusal: str = "") -> AnalysedQuery:
        """A query of any form; ``outer`` is the scope of the query around it."""
        if isinstance(node, exp.Subquery):
            _check_parenthesised(node)
            return self.query(node.this, outer, refusal)
        if isinstance(node, WithNames):
            return self._with_names(node).query(node.this, outer, refusal)
        if isinstance(node, ToStream):
            return _to_stream(self.query(node.this, outer, refusal), node)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer)
        if not isinstance(node, exp.Select):
            refuse(node)
        return self._select(node, outer, refusal)

    def _with_names(self, node: WithNames) -> QueryAnalyser:
        """An analyser that knows the names of a WITH too, each those before it."""
        known: QueryAnalyser = self
        for each in node.expressions:
            name = each.args["alias"]
            if name.name.lower() in known.named and name.name.lower() not in self.named:
                raise StatementError(f'WITH names "{name.name}" twice', name)
            found = known.query(each.this)
            renamed = replace(found, plan=renamed_columns(found.plan, each.args.get("columns")))
            known = replace(known, named={**known.named, name.name.lower(): renamed})
        return known

    def subquery(self, node: exp.Expr, enclosing: Scope) -> Node:
        """A subquery in an expression: a relation, correlated at most with ``enclosing``."""
        plan = self._as_relation(self.query(node, enclosing))
        if plan.is_stream:
            raise StatementError(
                "a subquery in an expression is a relation; leave out Istream, Dstream, Rstream "
                "and EMIT FINAL",
                node,
            )
        return plan

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> AnalysedQuery:
        _check_set_operation(node)
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
            left.silent + right.silent,
        )

    def _select(self, node: exp.Select, outer: Scope | None, refusal: str) -> AnalysedQuery:
        _check_select(node)
        check_order(node)
        is_ranked, own = is_ranked_select(node), self.catalog.functions
        is_grouped = is_grouped_select(node, own)
        sources = FromAnalyser(
            self.catalog,
            self.query,
            self._default,
            self._as_relation,
            self.views,
            self.text,
            self.named,
            goes_by_arrival(node, own) if is_grouped else is_ranked,
            _timed(node),
        )
        source = node.args.get("from_")
        found = _NOTHING if source is None else sources.relation(source.this)
        scope = replace(
            found.scope,
            functions=own,
            outer=outer,
            outer_refusal=ONLY_IN_WHERE,
            arrival=found.arrival,
            key_of=self._key_of,
        )
        refusal = NOT_IN_SEVERAL_SETS if _has_several_sets(node) else refusal
        plan = self._where(node, found.plan, replace(scope, outer_refusal=refusal))
        arrival = () if is_grouped else found.arrival
        time = clock_of(found.plan, self.catalog)
        select = SelectAnalyser(node, scope, self.subquery, self.text, time, arrival)
        plan = select.project(plan)
        emitted = node.args.get("final")
        if emitted is not None:
            _refuse_final_sets(node, emitted)
            plan = with_end(plan, offset_of(emitted))
        if node.args.get("distinct") is not None:
            plan = Distinct(plan)
        if emitted is not None:
            plan = final(plan, self.catalog.tick_microseconds)
        is_relation = is_grouped or is_ranked
        made = AnalysedQuery(plan, is_relation, found.names_stream, found.silent)
        if is_relation or isinstance(plan, Distinct) or isinstance(found.plan, Join):
            self._as_relation(made)
            made = replace(made, silent=())
        word = node.args.get("hint")
        return made if word is None else _to_stream(made, word)

    def _key_of(self, name: str) -> tuple[int, ...]:
        """The key of a relation that no two rows share."""
        entry = self.catalog.get(name)
        is_unique = isinstance(entry, RelationEntry) and entry.checks_key
        return entry.key if isinstance(entry, RelationEntry) and is_unique else ()

    def _where(self, node: exp.Select, plan: Node, scope: Scope) -> Node:
        where = node.args.get("where")
        if where is None:
            return plan
        time = clock_of(plan, self.catalog)
        rules = analyser(scope, "WHERE", self.subquery, clock=time)
        parts = [rules.predicate(part) for part in flatten(where.this, exp.And)]
        written = self.text.written("WHERE", where.this)
        return selected(plan, connect("and", parts), written, time)


def _timed(node: exp.Select) -> frozenset[str]:
    """The sources of which tstamp asks the time, in lower case."""
    calls = (call for call in node.find_all(exp.Anonymous) if call.name.lower() == "tstamp")
    names = (each.name.lower() for call in calls for each in call.expressions)
    return frozenset(names)


def _has_several_sets(node: exp.Select) -> bool:
    """Whether a SELECT is grouped in more than one way."""
    group = node.args.get("group")
    return group is not None and len(group.args.get("grouping_sets") or ()) > 1


def _refuse_final_sets(node: exp.Select, emitted: exp.Expr) -> None:
    if _has_several_sets(node):
        raise StatementError(
            "EMIT FINAL behind several grouping sets; have them in a subquery with window_end "
            "in it: SELECT * FROM (SELECT …, window_end FROM … GROUP BY ROLLUP (a), window_end) T "
            "EMIT FINAL",
            emitted,
        )


def _check_set_operation(node: exp.SetOperation) -> None:
    """Refuses what stands behind a set operation, and EMIT FINAL inside it."""
    if any(node.args.get(part) for part in ("by_name", "side", "kind", "on")):
        raise unsupported("a set operation BY NAME", offset_of(node))
    for part in (node, node.this.unnest(), node.expression.unnest()):
        emitted = part.args.get("final")
        if emitted is not None:
            raise StatementError(_FINAL_OF_ALL, emitted)
    for name, value in node.args.items():
        if value and name not in ("this", "expression", "distinct"):
            place = value[0] if isinstance(value, list) else value
            message = "put the set operation into FROM: SELECT * FROM (… UNION …) ORDER BY …"
            raise StatementError(message, place)


def _check_parenthesised(node: exp.Subquery) -> None:
    """Refuses what stands behind a query in parentheses."""
    if node.args.get("alias") is not None:
        raise StatementError("an alias cannot stand here", node.args["alias"])
    for part, value in node.args.items():
        if value and part != "this":
            place = value[0] if isinstance(value, list) else value
            raise StatementError(INTO_FROM, place)


def _check_select(node: exp.Select) -> None:
    if not node.expressions:
        raise StatementError("SELECT needs at least one column", node)
    if node.args.get("from_") is None:
        _check_without_from(node)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise StatementError(
            "DISTINCT ON is not supported; number the rows: SELECT * FROM (SELECT *, ROW_NUMBER() "
            "OVER (PARTITION BY a ORDER BY b) AS n FROM S) T WHERE n = 1",
            node,
        )
    known = {"expressions", "from_", "where", "group", "having", "distinct", "hint", "final"}
    known |= {"order", "limit"}
    for part, value in node.args.items():
        if value and part not in known:
            raise unsupported(part.strip("_").upper().replace("_", " "), offset_of(node))


def _check_without_from(node: exp.Select) -> None:
    """Refuses what stands for columns, or asks for their times, where there are none."""
    for each in node.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and each.name == "*"):
            raise StatementError(f"* stands for the columns of FROM; {NO_FROM}", each)
    if node.args.get("final") is not None:
        raise StatementError(f"EMIT FINAL waits for windows to end; {NO_FROM}", node.args["final"])


def _to_stream(made: AnalysedQuery, node: exp.Expr) -> AnalysedQuery:
    kind = node.args["kind"]
    if kind == "RELATION" and made.plan.is_stream:
        raise StatementError(_RELATION_OF_STREAM, node)
    if kind == "RELATION":
        return replace(made, names_stream=False)
    if kind == "STREAM":
        return made if made.plan.is_stream else replace(made, plan=Istream(made.plan))
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
