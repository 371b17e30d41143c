"""The SELECT list: its items, their names, and what GROUP BY and HAVING say about them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millpond.cql.algebra import Project, SetOperation
from millpond.cql.check.clock import names_clock, selected
from millpond.cql.check.expressions import analyser, has_aggregate, has_aggregate_in_order
from millpond.cql.check.grouping import Grouping
from millpond.cql.check.items import Item
from millpond.cql.check.nested import name_of
from millpond.cql.check.ranks import Ranks
from millpond.cql.check.scope import Scope
from millpond.cql.check.walk import Analyser, Clock, SubqueryRule
from millpond.cql.coercion import typed
from millpond.cql.expressions import AggregateCall, Column, Expression
from millpond.cql.node import Node
from millpond.cql.text.places import StatementError, StatementText, offset_of
from millpond.cql.text.ranking import Ranking
from millpond.cql.written import Written
from millpond.functions.user_function import UserFunction

MAX_NAME = 60


def is_grouped_select(select: exp.Select, own: Mapping[str, UserFunction]) -> bool:
    """Whether a SELECT is an aggregation, maybe by one of the user's own functions."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(has_aggregate(node, own) for node in select.expressions)


def goes_by_arrival(select: exp.Select, own: Mapping[str, UserFunction]) -> bool:
    """Whether an aggregation asks in which order rows came."""
    others = [select.args.get(part) for part in ("having", "order")]
    parts = [*select.expressions, *(part for part in others if part is not None)]
    return any(has_aggregate_in_order(part, own) for part in parts)


def is_ranked_select(select: exp.Select) -> bool:
    """Whether the rows of a SELECT have ranks, or only the first are wanted."""
    if select.args.get("limit") is not None:
        return True
    return any(isinstance(node.unalias(), Ranking) for node in select.expressions)


def _all_of(plans: Sequence[Project], names: tuple[str, ...]) -> Project:
    """The rows of all plans."""
    first, *others = plans
    rows: Node = first
    for other in others:
        rows = SetOperation(rows, other, "union", True)
    columns = (Column(i, f.type, f.name) for i, f in enumerate(rows.schema.fields))
    return Project(rows, tuple(columns), names, first.written)


@dataclass(frozen=True)
class SelectAnalyser:
    """Makes the Project (over an Aggregate, if grouped) of one SELECT."""

    select: exp.Select
    scope: Scope
    subquery: SubqueryRule
    text: StatementText
    time: Clock
    """The time of the instant, of which HAVING may speak."""
    arrival: tuple[Column, ...] = ()
    """When and as which elements of a stream the rows came."""

    def project(self, relation: Node) -> Project:
        """The SELECT list, with GROUP BY and HAVING, over the joined and filtered sources."""
        items = self._items()
        if not is_ranked_select(self.select):
            return self._project(relation, items)
        ranks = Ranks(self.select, items, [Item(each.name, each) for each in self.arrival])
        base = self._project(relation, [*ranks.plain, *ranks.wanted(self._sorted)])
        return ranks.over(base, unique([item.name for item in items]))

    def _sorted(self, node: exp.Expr, items: Sequence[Item]) -> Item:
        """What ORDER BY or PARTITION BY names: a column of the SELECT list goes first."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return _at_position(node, items, "ORDER BY")
        if isinstance(node, exp.Column) and not node.table:
            named = [item for item in items if (item.alias or "").lower() == node.name.lower()]
            if named:
                return named[0]
        return Item(readable(self.text.of(node)), _unaliased(node, items, self.scope))

    def _project(self, relation: Node, items: list[Item]) -> Project:
        names = unique([item.name for item in items])
        if not is_grouped_select(self.select, self.scope.functions):
            rules = analyser(self.scope, "SELECT", self.subquery)
            return Project(relation, tuple(_values(rules, items)), names, self._written(items))
        return self._grouped(relation, items, names)

    def _written(self, items: list[Item]) -> tuple[Written, ...]:
        return tuple(
            self.text.written("SELECT", item.body)
            if isinstance(item.body, exp.Expr)
            else Written("SELECT", item.name, self.text.position(item.star_offset))
            for item in items
        )

    def _grouped(self, relation: Node, items: list[Item], names: tuple[str, ...]) -> Project:
        keys = self._keys(items)
        aggregates: list[AggregateCall] = []
        rules = analyser(self.scope, "SELECT", self.subquery, aggregates)
        values = _values(rules, items)
        for item in items:
            if isinstance(item.body, Column):
                rules.offsets.setdefault(item.body.position, item.star_offset)
        having = self.select.args.get("having")
        condition = None
        if having is not None:
            rules.clause, rules.clock = "HAVING", self.time
            condition = rules.predicate(_unaliased(having.this, items, self.scope))
        plans: list[Project] = []
        for present in self._grouping_sets(items, keys):
            absent = frozenset(key for key in keys if key not in present)
            grouping = Grouping(present, aggregates, offset_of(self.select), absent)
            plan = grouping.plan(relation, self._written_groups(present, keys, aggregates))
            if having is not None and condition is not None:
                written = self.text.written("HAVING", having.this)
                wanted = grouping.over(condition, rules.offsets)
                plan = selected(plan, wanted, written, self.time)
            over = tuple(grouping.over(value, rules.offsets) for value in values)
            plans.append(Project(plan, over, names, self._written(items)))
        return plans[0] if len(plans) == 1 else _all_of(plans, names)

    def _written_groups(
        self,
        present: tuple[Expression, ...],
        keys: Mapping[Expression, Written],
        aggregates: Sequence[AggregateCall],
    ) -> tuple[Written, ...]:
        """What the keys and the arguments of aggregates are in the script."""
        arguments = [
            Written("argument of", str(call), self.text.position(call.offset))
            for call in aggregates
        ]
        return (*(keys[key] for key in present), *arguments)

    def _grouping_sets(
        self, items: list[Item], keys: Mapping[Expression, Written]
    ) -> list[tuple[Expression, ...]]:
        """The keys of each grouping set; without such there is one, of all keys."""
        group = self.select.args.get("group")
        sets = None if group is None else group.args.get("grouping_sets")
        if sets is None:
            return [tuple(keys)]
        found = [[self._key(node, items) for node in each.expressions] for each in sets]
        return [tuple(dict.fromkeys(each)) for each in found]

    def _items(self) -> list[Item]:
        items: list[Item] = []
        for node in self.select.expressions:
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                items += self._expanded(node, star)
            else:
                items.append(self._item(node))
        return items

    def _expanded(self, node: exp.Expr, star: exp.Star) -> list[Item]:
        if any(star.args.values()):
            raise StatementError(
                "* with EXCEPT, REPLACE or RENAME is not supported; name the columns that are "
                "wanted",
                node,
            )
        source = node.table if isinstance(node, exp.Column) else None
        columns = self.scope.expand(source or None, offset_of(node))
        return [Item(c.name, c.value, None, offset_of(node)) for c in columns]

    def _item(self, node: exp.Expr) -> Item:
        if isinstance(node, exp.Alias):
            return Item(node.alias, node.this, alias=node.alias)
        if isinstance(node, exp.Column):
            return Item(self._spelling(node), node)
        if isinstance(node, exp.Dot):
            return Item(name_of(node), node)
        return Item(readable(self.text.of(node)), node)

    def _spelling(self, node: exp.Column) -> str:
        """The column's name as it was declared."""
        if self.scope.means_struct(node.table) or names_clock(node, self.scope):
            return node.name
        found = self.scope.resolve(node.table or None, node.name, offset_of(node))
        return found.name if isinstance(found, Column) and found.name else node.name

    def _keys(self, items: list[Item]) -> dict[Expression, Written]:
        """The keys of GROUP BY, each once, and what they are in the script."""
        group = self.select.args.get("group")
        keys: dict[Expression, Written] = {}
        nodes = [] if group is None else list(group.expressions)
        for each in (group and group.args.get("grouping_sets")) or ():
            nodes += each.expressions
        for node in nodes:
            keys.setdefault(self._key(node, items), self.text.written("GROUP BY", node))
        return keys

    def _key(self, node: exp.Expr, items: list[Item]) -> Expression:
        rules = analyser(self.scope, "GROUP BY")
        if isinstance(node, exp.Literal) and not node.is_string:
            body = _at_position(node, self._items(), "GROUP BY").body
            if isinstance(body, Ranking):
                message = "a rank is of grouped rows; have it in a subquery in FROM, and group that"
                raise StatementError(message, node)
            if not isinstance(body, exp.Expr):
                return body
            node = body
        return typed(rules.expression(_unaliased(node, items, self.scope)))


def _values(rules: Analyser, items: Sequence[Item]) -> list[Expression]:
    bodies = [item.body for item in items]
    return [typed(rules.expression(b) if isinstance(b, exp.Expr) else b) for b in bodies]


def _at_position(node: exp.Literal, items: Sequence[Item], clause: str) -> Item:
    if not node.this.isdigit() or not 1 <= int(node.this) <= len(items):
        raise StatementError(
            f"{clause} {node.this}: the SELECT list has columns 1 to {len(items)}", node
        )
    return items[int(node.this) - 1]


def _unaliased(node: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    """The expression with names of the SELECT list replaced by what they stand for.

    A column of the sources goes before an item of the same name.
    """
    aliases = {item.alias.lower(): item.body for item in items if item.alias}

    def change(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or scope.plain(part.name):
            return part
        meant = aliases.get(part.name.lower())
        if not isinstance(meant, exp.Expr):
            return part
        return exp.Paren(this=meant.copy()).update_positions(part.this)

    return node.transform(change)


_PIECES = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<blank>(?:\s|--[^\n]*|/\*.*?\*/)+)
      | (?P<code>[^'"\s]+)""",
    re.VERBOSE | re.DOTALL,
)


def readable(text: str) -> str:
    """A name for an expression: its text in lower case, quoted parts kept, cut to a sane length.

    >>> readable("Count( * )"), readable("a ||  'X'")
    ('count(*)', "a || 'X'")
    """
    name = ""
    for piece in _PIECES.finditer(text):
        part = piece.group()
        if piece.lastgroup == "blank":
            part = "" if name.endswith("(") else " "
        elif piece.lastgroup == "code":
            part = part.lower()
            name = name.rstrip() if part[0] in ")," else name
        name += part
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names with _2, _3, … put on those that repeat an earlier one.

    >>> unique(["a", "A", "b", "a"])
    ('a', 'A_2', 'b', 'a_3')
    """
    taken = {name.lower() for name in names}
    given: set[str] = set()
    numbers: dict[str, int] = {}
    result = []
    for name in names:
        key, candidate = name.lower(), name
        while candidate.lower() in given or (candidate != name and candidate.lower() in taken):
            numbers[key] = numbers.get(key, 1) + 1
            candidate = f"{name}_{numbers[key]}"
        given.add(candidate.lower())
        result.append(candidate)
    return tuple(result)
