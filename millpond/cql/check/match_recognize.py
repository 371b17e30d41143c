"""MATCH_RECOGNIZE: what its names mean, and which values of a match are kept.

Expressions are checked over *virtual* columns: those of the row that is looked at, those of the
last row of each variable, then the values that PREV, FIRST, LAST and aggregates stand for. Which
of them are used is known in the end; conditions that speak of their own row alone and arguments
become columns of the input, all other values are slots of the match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from millpond.catalog import Catalog, StreamEntry
from millpond.cql.aggregates import AGGREGATE_ALIASES, AGGREGATES
from millpond.cql.algebra import Filter, Project, StreamScan, WithTime
from millpond.cql.check import calls
from millpond.cql.check.expressions import RULES
from millpond.cql.check.hops import tick_of, time_column
from millpond.cql.check.match_slots import behind, check_near, slot_column, told, told_slots
from millpond.cql.check.row_patterns import checked_pattern
from millpond.cql.check.scope import Scope, ScopeColumn, scope_of
from millpond.cql.check.walk import Analyser
from millpond.cql.coercion import cast, typed
from millpond.cql.expressions import Column, Expression, children, walk, with_children
from millpond.cql.node import Node, canonical
from millpond.cql.row_patterns import DEFINE, Definition, MatchRecognize, Slot
from millpond.cql.text.match_recognize import MatchRecognizeText
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.written import Written
from millpond.schema import Type

NEXT = (
    "NEXT looks at rows that have yet to come; name that row in the PATTERN, and compare it in its "
    "own DEFINE: PATTERN (A B) DEFINE B AS B.x > A.x"
)
_NO_OFFSET = (
    "with an offset is not supported; give that row a variable of its own, PATTERN (A B C*) for "
    "the second one, or look back from the last one, PREV(LAST(A.x))"
)
_KINDS = ("count", "sum", "avg", "min", "max")
_ROWS = ("prev", "first", "last")
MOST_BACK = 1_000
Rule = Callable[[Analyser, Any], Expression]


def matches(
    stream: Node,
    clause: MatchRecognizeText,
    name: str | None,
    catalog: Catalog,
    text: StatementText,
) -> Node:
    """The stream of the matches of a pattern in a stream."""
    _check_order(stream, clause, catalog)
    return _Matching(stream, clause, name, catalog, text).plan()


def _check_order(stream: Node, clause: MatchRecognizeText, catalog: Catalog) -> None:
    order = clause.args.get("order")
    if order is None:
        return
    base = stream
    while isinstance(base, Filter):
        base = base.input
    entry = catalog.get(base.name) if isinstance(base, StreamScan) else None
    own = time_column(entry) if isinstance(entry, StreamEntry) else None
    if own is None:
        raise StatementError("rows are in order of the stream's time; leave ORDER BY out", order)
    if order.table or order.name.lower() != own.name.lower():
        raise StatementError(f"rows are in order of the stream's time: ORDER BY {own.name}", order)


@dataclass(frozen=True)
class _Looked:
    """An expression of DEFINE or MEASURES over virtual columns."""

    variable: str | None
    value: Expression
    node: exp.Expr


@dataclass
class _Matching:
    stream: Node
    clause: MatchRecognizeText
    name: str | None
    catalog: Catalog
    text: StatementText
    virtual: list[Slot] = field(default_factory=list)
    """What PREV, FIRST, LAST and aggregates stand for, their arguments columns of the input."""
    inputs: list[Expression] = field(default_factory=list)
    """The columns of the input, over those of the stream."""
    places: dict[str, int] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    """Where what becomes a column of the input stands."""
    slots: list[Slot] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.stream.schema)

    def plan(self) -> Node:
        """The plan of the clause."""
        self.pattern, self.within, self.skip = checked_pattern(
            self.clause, self.catalog.tick_microseconds
        )
        self.variables = list(self.pattern.variables)
        marked = self._marked()
        order = self._begin(marked)
        partition = tuple(map(self._partition_column, self.clause.args.get("partition") or ()))
        keys = tuple(Column(self._input(c), c.type, c.name) for c in partition)
        looked = [self._defined(node) for node in self.clause.args.get("defined") or ()]
        self._check_twice([each.variable or "" for each in looked])
        measures = [self._measure(node) for node in self.clause.args.get("measures") or ()]
        names = [*(c.name for c in keys), *(n.args["alias"].name for n in self._measures)]
        self._check_names(names)
        conditions = [self._condition(each) for each in looked]
        told_values = [self._resolved(each.value, None) for each in measures]
        width = len(self.inputs)
        definitions = tuple(Definition(v, behind(e, width)) for v, e in conditions)
        slots = told_slots(told_values)
        names_below = tuple(self._names_of_inputs())
        below = Project(marked, tuple(self.inputs), names_below, tuple(self.written))
        said = (definitions, tuple(self.slots), slots, self.within, self.skip)
        found = MatchRecognize(below, self.pattern.pattern, keys, order, *said)
        values = [told(value, slots, len(keys)) for value in told_values]
        own = [Column(i, c.type, c.name) for i, c in enumerate(keys)]
        written = [Written("PARTITION BY", c.name, self.text.position(None)) for c in keys]
        written += [self.text.written("MEASURES", node.this) for node in self._measures]
        return Project(found, (*own, *values), tuple(names), tuple(written))

    @property
    def _measures(self) -> list[exp.Expr]:
        return self.clause.args.get("measures") or []

    # -- the input ---------------------------------------------------------------------------

    def _marked(self) -> Node:
        return WithTime(self.stream, tick_of(self.stream, self.catalog), is_numbered=True)

    def _begin(self, marked: Node) -> int:
        """The number of a tuple first, then, where that does not tell them apart, all columns;
        how many these are."""
        fields = marked.schema.fields
        self._input(Column(self.width + 1, fields[-1].type, fields[-1].name))
        if not _is_base(self.stream):
            for place, named in self._fields:
                self._input(Column(place, named.type, named.name))
        return len(self.inputs)

    def _input(self, expression: Expression) -> int:
        """The column of the input that has the value of an expression."""
        key = canonical(expression)  # by its text, for -0.0 equals 0.0
        if key not in self.places:
            self.places[key] = len(self.inputs)
            self.inputs.append(expression)
            self.written.append(Written("MEASURES", str(expression), self.text.position(None)))
        return self.places[key]

    def _names_of_inputs(self) -> list[str]:
        return [e.name if isinstance(e, Column) else str(e) for e in self.inputs]

    def _partition_column(self, node: exp.Expr) -> Column:
        scope = scope_of(self.name, self.stream.schema, self.catalog.functions)
        column = Analyser(RULES, scope, "PARTITION BY").expression(node)
        if not isinstance(column, Column):
            raise StatementError("PARTITION BY takes columns", node)
        return column

    # -- expressions -------------------------------------------------------------------------

    def _defined(self, node: exp.Expr) -> _Looked:
        variable = node.this.name.upper()
        if variable not in self.variables:
            raise StatementError(f'the PATTERN has no variable "{node.this.name}"', node.this)
        condition = node.args["condition"]
        self._check_variables(condition, variable)
        return _Looked(variable, self._analyser(variable, DEFINE).predicate(condition), condition)

    def _measure(self, node: exp.Expr) -> _Looked:
        self._check_variables(node.this, None)
        value = typed(self._analyser(None, "MEASURES").expression(node.this))
        return _Looked(None, value, node.this)

    def _check_variables(self, node: exp.Expr, own: str | None) -> None:
        for column in node.find_all(exp.Column):
            self._variable(column.table, column, own)

    def _analyser(self, variable: str | None, clause: str) -> Analyser:
        """Of a condition of a variable, or of a measure."""
        rules: Mapping[type[exp.Expr], Rule] = {
            **RULES,
            exp.Anonymous: lambda analyser, node: self._call(analyser, node, variable),
        }
        return Analyser(rules, self._scope(variable), clause)

    def _scope(self, own: str | None) -> Scope:
        columns = [ScopeColumn(None, f.name, self._column(i, 0)) for i, f in self._fields]
        for number, variable in enumerate(self.variables, 1):
            block = 0 if variable == own else number
            if block and variable not in self.pattern.matched:
                continue
            columns += [
                ScopeColumn(variable, f.name, self._column(i, block), False)
                for i, f in self._fields
            ]
        return Scope(tuple(columns), functions=self.catalog.functions)

    @property
    def _fields(self) -> list[tuple[int, Any]]:
        return list(enumerate(self.stream.schema.fields))

    def _column(self, position: int, block: int) -> Column:
        """A virtual column."""
        named = self.stream.schema.fields[position]
        of = f"{self.variables[block - 1]}." if block else ""
        return Column(position + block * self.width, named.type, of + named.name)

    @property
    def _behind_blocks(self) -> int:
        return self.width * (1 + len(self.variables))

    def _call(self, analyser: Analyser, node: exp.Anonymous, own: str | None) -> Expression:
        """PREV, FIRST, LAST and aggregates; any other function as everywhere."""
        name = node.name.lower()
        if name == "next":
            raise StatementError(NEXT, node)
        if name in _ROWS:
            return self._navigation(name, node, own)
        if calls.is_aggregate(node, self.catalog.functions):
            return self._aggregate(AGGREGATE_ALIASES.get(name, name), node, own)
        return calls.function(analyser, node)

    def _navigation(self, name: str, node: exp.Anonymous, own: str | None) -> Expression:
        arguments = node.expressions
        if name != "prev":
            if len(arguments) == 2:
                raise StatementError(f"{name.upper()} {_NO_OFFSET}", node)
            self._check_count(arguments, 1, f"{name.upper()}(A.x)", node)
            return self._slot(name, arguments[0], own, 0)
        self._check_count(arguments, 2, "PREV(A.x) or PREV(A.x, n)", node)
        back = 1 if len(arguments) == 1 else _rows_back(arguments[1])
        inner, kind = arguments[0], "last"
        if isinstance(inner, exp.Anonymous) and inner.name.lower() in ("first", "last"):
            kind = inner.name.lower()
            self._check_count(inner.expressions, 1, f"{kind.upper()}(A.x)", inner)
            inner = inner.expressions[0]
        return self._slot(kind, inner, own, back)

    def _check_count(self, arguments: list[exp.Expr], most: int, form: str, node: exp.Expr) -> None:
        if not 1 <= len(arguments) <= most:
            raise StatementError(f"{form.split('(', maxsplit=1)[0]} is called as {form} here", node)

    def _aggregate(self, name: str, node: exp.Anonymous, own: str | None) -> Expression:
        arguments = node.expressions
        if name not in _KINDS or any(isinstance(each, exp.Distinct) for each in arguments):
            raise StatementError(
                f"a match has count, sum, avg, min and max of its rows, without DISTINCT, not "
                f"{name}; join the stream with the match and use GROUP BY",
                node,
            )
        if len(arguments) != 1:
            raise StatementError(f"{name} is called as {name}(A.x)", node)
        argument = arguments[0]
        star = argument.this if isinstance(argument, exp.Column) else argument
        if isinstance(star, exp.Star) and name == "count":
            table = argument.table if isinstance(argument, exp.Column) else ""
            variable = self._variable(table, argument, own)
            return self._known(Slot("count", variable, None, Type.BIGINT))
        return self._slot(name, argument, own, 0)

    def _slot(self, kind: str, node: exp.Expr, own: str | None, back: int) -> Expression:
        """A value of the rows of one variable."""
        named = {c.table.upper(): c for c in node.find_all(exp.Column)}
        if len(named) != 1:
            raise StatementError(
                "what stands in parentheses here names columns of one variable: SUM(A.x * A.y)",
                node,
            )
        (table,) = named
        variable = self._variable(table, named[table], own)
        if variable is None and kind == "last":
            variable = own
        value = self._argument(node)
        if kind not in _KINDS:
            value = typed(value)
            column = self._argument_column(value)
            return self._known(Slot(kind, variable, column, value.type, back))
        aggregate = AGGREGATES[kind]
        to = aggregate.argument(value.type)
        if to is None:
            raise StatementError(f"{kind} needs {aggregate.wanted}, not {value.type}", node)
        value = typed(value) if to is Type.NULL else cast(value, to)
        column = self._argument_column(value)
        return self._known(Slot(kind, variable, column, aggregate.result(value.type)))

    def _argument_column(self, value: Expression) -> Column:
        name = value.name if isinstance(value, Column) else str(value)
        return Column(self._input(value), value.type, name)

    def _variable(self, name: str, place: exp.Expr, own: str | None) -> str | None:
        """The variable that a column is of; None: any."""
        if not name:
            return None
        if name.upper() != own and name.upper() not in self.pattern.matched:
            absent = name.upper() in self.variables
            raise StatementError(
                f'no row of a match stands for "{name}", which is in the PATTERN behind NOT'
                if absent
                else f'the PATTERN has no variable "{name}"',
                place,
            )
        return name.upper()

    def _argument(self, node: exp.Expr) -> Expression:
        """A value of one row, over the columns of the stream."""
        columns = [
            ScopeColumn(source, f.name, Column(i, f.type, f.name), source is None)
            for source in (None, *self.variables)
            for i, f in self._fields
        ]
        scope = Scope(tuple(columns), functions=self.catalog.functions)
        return Analyser(RULES, scope, "a function of the rows of a match").expression(node)

    def _known(self, slot: Slot) -> Column:
        if slot not in self.virtual:
            self.virtual.append(slot)
        place = self._behind_blocks + self.virtual.index(slot)
        return Column(place, slot.type, str(slot))

    # -- what is used ------------------------------------------------------------------------

    def _condition(self, looked: _Looked) -> tuple[str, Expression]:
        """Of its own row alone: a column of the input; else over the input and the slots."""
        variable = looked.variable or ""
        positions = [c.position for c in walk(looked.value) if isinstance(c, Column)]
        if all(position < self.width for position in positions):
            place = self._input(looked.value)
            self.written[place] = self.text.written(DEFINE, looked.node)
            return variable, Column(place, Type.BOOLEAN, str(looked.value))
        check_near(looked.value, looked.node)
        return variable, self._resolved(looked.value, variable)

    def _resolved(self, value: Expression, own: str | None) -> Expression:
        """Virtual columns as columns of the input, or as slots: columns before the first."""
        if not isinstance(value, Column):
            return with_children(value, tuple(self._resolved(c, own) for c in children(value)))
        block, position = divmod(value.position, self.width)
        if value.position >= self._behind_blocks:
            return self._as_slot(self.virtual[value.position - self._behind_blocks])
        column = self.stream.schema.fields[position]
        place = Column(self._input(Column(position, column.type, column.name)), column.type)
        place = replace(place, name=column.name)
        if block == 0 and own is not None:
            return place
        variable = self.variables[block - 1] if block else None
        return self._as_slot(Slot("last", variable, place, column.type))

    def _as_slot(self, slot: Slot) -> Column:
        if slot not in self.slots:
            self.slots.append(slot)
        return slot_column(slot, self.slots.index(slot))

    # -- names -------------------------------------------------------------------------------

    def _check_twice(self, variables: list[str]) -> None:
        for place, variable in enumerate(variables):
            if variable in variables[:place]:
                node = self.clause.args["defined"][place].this
                raise StatementError(f'"{node.name}" is defined twice', node)

    def _check_names(self, names: list[str]) -> None:
        if not names:
            raise StatementError("a match has no columns; write MEASURES A.x AS a", self.clause)
        lower = [name.lower() for name in names]
        for place, name in enumerate(lower):
            if name in lower[:place]:
                measure = self._measures[place - len(names)]
                raise StatementError(f'two columns are called "{names[place]}"', measure)


def _is_base(node: Node) -> bool:
    """Whether tuples have numbers that tell them apart."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, StreamScan)


def _rows_back(node: exp.Expr) -> int:
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdigit() or not 1 <= int(text) <= MOST_BACK:
        raise StatementError(f"PREV goes back a whole number of rows from 1 to {MOST_BACK:,}", node)
    return int(text)
