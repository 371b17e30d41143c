"""FROM: streams, relations, views, subqueries and their joins become one relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry, ViewEntry
from millpond.cql.algebra import (
    Istream,
    Join,
    LateralJoin,
    Project,
    RelationScan,
    StreamScan,
    WithTime,
)
from millpond.cql.check.expressions import analyser
from millpond.cql.check.hops import tick_of
from millpond.cql.check.match_recognize import matches
from millpond.cql.check.scope import TSTAMP, Scope, ScopeColumn, beside, scope_of, with_merged
from millpond.cql.check.taking_back import takes_back_rows
from millpond.cql.check.walk import connect
from millpond.cql.check.windows import windowed
from millpond.cql.coercion import unify
from millpond.cql.expressions import Call, Column, Expression
from millpond.cql.node import Node
from millpond.cql.outer_columns import names_around
from millpond.cql.text.from_clause import FromItem, JoinedItems
from millpond.cql.text.match_recognize import MatchRecognizeText
from millpond.cql.text.places import StatementError, StatementText, offset_of
from millpond.cql.text.syntax import Name
from millpond.schema import Type
from millpond.spelling import suggestion

LATERAL_IS_RIGHT = (
    "LATERAL stands behind what its subquery names: FROM a, LATERAL (SELECT …) b, a JOIN LATERAL "
    "(SELECT …) b ON …, or a LEFT JOIN LATERAL (SELECT …) b ON …"
)
ITEMS_LATERAL = "LATERAL stands before a subquery in parentheses: FROM a, LATERAL (SELECT …) b"


@dataclass(frozen=True)
class AnalysedQuery:
    """A query's plan, and what the defaults need to know about it."""

    plan: Node
    is_aggregation: bool
    names_stream: bool
    silent: tuple[exp.Identifier, ...] = ()
    """Views it passes on as they are, and that hold more than one would think if it is read."""

    @property
    def with_default(self) -> Node:
        """The plan with an Istream on top if the query gets one by default."""
        if self.gets_istream:
            return Istream(self.plan)
        return self.plan

    @property
    def gets_istream(self) -> bool:
        """Whether CQL's default puts an Istream on top."""
        return self.names_stream and not self.is_aggregation and not self.plan.is_stream


@dataclass(frozen=True)
class FromRelation:
    """What FROM makes: a relation, the names of its columns, and whether it names a stream."""

    plan: Node
    scope: Scope
    names_stream: bool
    arrival: tuple[Column, ...] = ()
    """The columns that tell when and as which element of a stream a row came, if asked for."""
    silent: tuple[exp.Identifier, ...] = ()
    """Views that are streams by default of a bounded window, and are read without a window."""


@dataclass(frozen=True)
class FromAnalyser:
    """Analyses one FROM; ``query`` analyses subqueries, ``default`` makes streams of them.

    ``views`` gets the plans of the views that are read, by ``id``; ``named`` has what WITH names.
    ``with_arrival``: if it is a single stream, its elements are to have their times and numbers.
    """

    catalog: Catalog
    query: Callable[..., AnalysedQuery]
    default: Callable[[AnalysedQuery, exp.Expr], Node]
    as_relation: Callable[[AnalysedQuery], Node]
    views: set[int]
    text: StatementText
    named: Mapping[str, AnalysedQuery]
    with_arrival: bool = False
    timed: frozenset[str] = frozenset()
    """The names, in lower case, of the streams of whose elements the times are asked for."""

    def relation(self, node: exp.Expr) -> FromRelation:
        """What one item of FROM, or a join of items, makes."""
        if isinstance(node, JoinedItems):
            return replace(self, with_arrival=False)._joined(node)
        if isinstance(node, FromItem):
            return self._item(node)
        raise StatementError("FROM takes names, subqueries and joins", node)

    def _item(self, item: FromItem) -> FromRelation:
        body = item.this
        alias = item.args.get("alias")
        if item.args.get("lateral"):
            raise StatementError(LATERAL_IS_RIGHT, item)
        if isinstance(body, (JoinedItems, FromItem)):
            self._refuse_extras(item)
            return self.relation(body)
        if isinstance(body, MatchRecognizeText):
            return self._matched(item, body)
        is_name = isinstance(body, exp.Identifier)
        found = self.named.get(body.name.lower()) if is_name else self.query(body)
        plan = self._named(body) if found is None else self._subquery(item, found)
        plan = renamed_columns(plan, item.args.get("columns"))
        name = alias.name if alias is not None else body.name if is_name else None
        scope = scope_of(name, plan.schema, self.catalog.functions)
        if plan.is_stream:
            return self._windowed(plan, item, scope, name)
        self._refuse_window(item, f'"{body.name}"' if is_name else "this subquery")
        return FromRelation(plan, scope, False)

    def _matched(self, item: FromItem, clause: MatchRecognizeText) -> FromRelation:
        """The matches of a pattern in a stream."""
        source = clause.this
        is_name = isinstance(source, exp.Identifier)
        if isinstance(source, (JoinedItems, FromItem)):
            raise StatementError("MATCH_RECOGNIZE stands behind a single stream or query", clause)
        found = self.named.get(source.name.lower()) if is_name else self.query(source)
        stream = self._named(source) if found is None else self.default(found, item)
        if not stream.is_stream:
            raise StatementError(
                "MATCH_RECOGNIZE takes a stream, whose rows only come; Istream(SELECT …) makes "
                "one of a relation",
                clause,
            )
        name = source.name if is_name else None
        plan = matches(stream, clause, name, self.catalog, self.text)
        plan = renamed_columns(plan, item.args.get("columns"))
        alias = item.args.get("alias")
        known = None if alias is None else alias.name
        scope = scope_of(known, plan.schema, self.catalog.functions)
        return self._windowed(plan, item, scope, known)

    def _windowed(
        self, stream: Node, item: FromItem, scope: Scope, name: str | None
    ) -> FromRelation:
        is_timed = name is not None and name.lower() in self.timed
        timed = WithTime(stream, tick_of(stream, self.catalog)) if is_timed else stream
        width = len(timed.schema)
        marked = WithTime(timed, is_numbered=True) if self.with_arrival else timed
        relation = windowed(marked, item, scope, self.catalog, self.text)
        columns = tuple(Column(i, f.type, f.name) for i, f in enumerate(relation.schema.fields))
        bounds = (ScopeColumn(name, c.name, c) for c in columns[len(marked.schema) :])
        times = (ScopeColumn(name, TSTAMP, c, False) for c in columns[len(stream.schema) : width])
        known = replace(scope, columns=(*scope.columns, *times, *bounds))
        arrival = columns[width : len(marked.schema)]
        return FromRelation(relation, known, True, arrival, self._silent(item))

    def _silent(self, item: FromItem) -> tuple[exp.Identifier, ...]:
        """The view that an item reads whole although it is a stream of a bounded window."""
        if not isinstance(item.this, exp.Identifier) or item.args.get("window") is not None:
            return ()
        entry = self.catalog.get(item.this.name)
        if item.this.name.lower() in self.named:
            return ()
        if not isinstance(entry, ViewEntry) or not entry.is_stream_unsaid:
            return ()
        return (item.this,) if takes_back_rows(entry.plan) else ()

    def _refuse_extras(self, item: FromItem) -> None:
        for part, words in (("alias", "an alias"), ("window", "a window"), ("sample", "SAMPLE")):
            if item.args.get(part) is not None:
                raise StatementError(
                    f"{words} cannot stand here; put it on a source inside the parentheses",
                    item.args[part],
                )

    def _refuse_window(self, item: FromItem, what: str) -> None:
        for part, words in (("window", "a window"), ("sample", "SAMPLE")):
            if item.args.get(part) is not None:
                raise StatementError(
                    f"{what} is a relation; {words} applies to streams "
                    "(Istream(SELECT …) makes one of a relation)",
                    item.args[part],
                )

    def _named(self, name: exp.Identifier) -> Node:
        entry = self.catalog.get(name.name)
        if isinstance(entry, StreamEntry):
            return StreamScan(entry.name, entry.schema)
        if isinstance(entry, RelationEntry):
            return RelationScan(entry.name, entry.schema, entry.is_static)
        if isinstance(entry, ViewEntry):
            plan: Node = entry.plan
            self.views.add(id(plan))
            return plan
        if isinstance(entry, QueryEntry):
            raise StatementError(
                f'"{entry.name}" is a query; FROM reads streams, relations and views '
                "(CREATE VIEW names a query for use in others)",
                name,
            )
        kinds = (StreamEntry, RelationEntry, ViewEntry)
        known = [e.name for e in self.catalog.entries.values() if isinstance(e, kinds)]
        raise StatementError(
            f'no stream, relation or view "{name.name}"{suggestion(name.name, known)}', name
        )

    def _subquery(self, item: FromItem, analysed: AnalysedQuery) -> Node:
        is_windowed = any(item.args.get(part) is not None for part in ("window", "sample"))
        return self.default(analysed, item) if is_windowed else self.as_relation(analysed)

    def _joined(self, node: JoinedItems) -> FromRelation:
        left = self.relation(node.this)
        if isinstance(node.expression, FromItem) and node.expression.args.get("lateral"):
            right, join = self._lateral(node, node.expression, left.scope)
        else:
            right, join = self.relation(node.expression), Join
        _refuse_twins(left.scope, right.scope, node.expression)
        kind = node.args["kind"]
        both = beside(left.scope, right.scope, len(left.plan.schema))
        pairs = self._pairs(node, left.scope, right.scope, both)
        condition = self._condition(node, both, pairs)
        on = node.args.get("on")
        written = None if on is None else self.text.written("ON", on)
        kind_of_join = "inner" if kind == "cross" else kind
        plan = join(left.plan, right.plan, kind_of_join, condition, written)
        scope = left.scope if kind in ("semi", "anti") else _merge(both, pairs, kind)
        names_stream = left.names_stream or right.names_stream
        return FromRelation(plan, scope, names_stream, silent=left.silent + right.silent)

    def _lateral(
        self, node: JoinedItems, item: FromItem, left: Scope
    ) -> tuple[FromRelation, type[Join]]:
        """A subquery that may name columns of what stands before it, and how it is joined."""
        if node.args["kind"] not in ("inner", "cross", "left"):
            raise StatementError(LATERAL_IS_RIGHT, item)
        if not isinstance(item.this, exp.Subquery):
            raise StatementError(ITEMS_LATERAL, item)
        plan = self.as_relation(self.query(item.this, replace(left, outer=None)))
        if plan.is_stream:
            raise StatementError(
                "a subquery behind LATERAL is a relation; leave out Istream, Dstream and Rstream",
                item,
            )
        self._refuse_window(item, "this subquery")
        plan = renamed_columns(plan, item.args.get("columns"))
        alias = item.args.get("alias")
        name = None if alias is None else alias.name
        scope = scope_of(name, plan.schema, self.catalog.functions)
        return FromRelation(plan, scope, False), LateralJoin if names_around(plan) else Join

    def _condition(self, node: JoinedItems, both: Scope, pairs: list[_Pair]) -> Expression | None:
        on = node.args.get("on")
        if on is not None:
            return analyser(both, "ON").predicate(on)
        if not pairs:
            return None
        equal = [Call("=", (p.left_value, p.right_value), Type.BOOLEAN) for p in pairs]
        return connect("and", list(equal))

    def _pairs(self, node: JoinedItems, left: Scope, right: Scope, both: Scope) -> list[_Pair]:
        """The pairs of columns that USING or NATURAL equates, as columns of the joined row."""
        using = node.args.get("using") or ()
        names = [(name.name, offset_of(name)) for name in using]
        if node.args.get("natural"):
            found = [c.name for c in left.columns if c.plain and right.plain(c.name)]
            names = [(name, offset_of(node)) for name in dict.fromkeys(found)]
            if not names:
                raise StatementError(
                    "NATURAL JOIN finds no columns of the same name; use ON or CROSS JOIN", node
                )
        return [self._pair(name, offset, left, both) for name, offset in names]

    def _pair(self, name: str, offset: int | None, left: Scope, both: Scope) -> _Pair:
        right = Scope(both.columns[len(left.columns) :])
        for side in (left, right):
            side.resolve(None, name, offset)
        first, second = left.plain(name)[0], right.plain(name)[0]
        values = unify((first.value, second.value), (offset, offset), "cannot join")
        return _Pair(first, second, values[0], values[1])


def renamed_columns(plan: Node, written: Sequence[exp.Identifier | Name] | None) -> Node:
    """The columns under the names that stand in parentheses, if any do."""
    if written is None:
        return plan
    names = [n if isinstance(n, Name) else Name(n.name, offset_of(n) or 0) for n in written]
    fields = plan.schema.fields
    if len(names) != len(fields):
        raise StatementError(
            f"{len(fields)} columns need as many names, here are {len(names)}", names[0].offset
        )
    seen = set[str]()
    for name in names:
        if name.text.lower() in seen:
            raise StatementError(f'two columns are called "{name.text}"', name.offset)
        seen.add(name.text.lower())
    columns = tuple(Column(i, field.type, field.name) for i, field in enumerate(fields))
    return Project(plan, columns, tuple(name.text for name in names))


@dataclass(frozen=True)
class _Pair:
    """A column of USING on both sides, and the values that are compared."""

    left: ScopeColumn
    right: ScopeColumn
    left_value: Expression
    right_value: Expression


def _merge(both: Scope, pairs: list[_Pair], kind: str) -> Scope:
    if not pairs:
        return both
    merged = []
    for pair in pairs:
        value = pair.right_value if kind == "right" else pair.left_value
        if kind == "full":
            value = Call("coalesce", (pair.left_value, pair.right_value), value.type)
        merged.append((pair.left, pair.right, value))
    return with_merged(both, merged)


def _refuse_twins(left: Scope, right: Scope, node: exp.Expr) -> None:
    known = {name.lower() for name in left.sources}
    for name in right.sources:
        if name.lower() in known:
            raise StatementError(f'two sources are called "{name}"; give one an alias', node)
