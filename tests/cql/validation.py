"""What every checked plan promises to the layers below; any test can call ``validate``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from millpond.approximation.intervals.of_sums import COLUMNS
from millpond.cql import decimals
from millpond.cql.aggregates import AGGREGATES
from millpond.cql.algebra import (
    OVER_FUNCTIONS,
    Aggregate,
    Filter,
    Join,
    LateralJoin,
    Over,
    OverCall,
)
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    InSubquery,
    Literal,
    OuterColumn,
    Quantified,
    ScalarSubquery,
    walk,
)
from millpond.cql.functions import FUNCTIONS, OPERATORS
from millpond.cql.node import Node
from millpond.cql.row_patterns import MatchRecognize
from millpond.schema import Field, Schema, Type

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is_not_distinct", "in")


def validate(plan: Node, *outer: Schema) -> None:
    """Checks every expression of a plan against the schema it sees; ``outer``: those of the queries
    around it, the nearest first."""
    for node in own_nodes(plan):
        assert all(field.type is not Type.NULL for field in node.schema.fields), node.label()
        for expression in expressions(node):
            validate_expression(expression, visible(node), outer, isinstance(node, Filter))
        if isinstance(node, LateralJoin):
            validate(node.right, node.left.schema)


def own_nodes(plan: Node) -> Iterator[Node]:
    """The nodes of a plan that see the same queries around them."""
    seen, stack = set(), [plan]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += (node.left,) if isinstance(node, LateralJoin) else node.inputs


def visible(node: Node) -> Schema:
    """The row that the expressions of a node see."""
    if isinstance(node, Join):
        return node.left.schema + node.right.schema
    if isinstance(node, MatchRecognize):
        return node.input.schema + Schema(tuple(Field(str(s), s.type) for s in node.slots))
    return node.inputs[0].schema if node.inputs else Schema(())


def expressions(node: Node) -> list:
    """The expressions that stand directly in a node."""
    if isinstance(node, MatchRecognize):
        arguments = [slot.argument for slot in node.slots if slot.argument is not None]
        return [*node.partition, *arguments, *(d.condition for d in node.definitions)]
    found = []
    for field in fields(node):
        value = getattr(node, field.name)
        found += [v for v in (value if isinstance(value, tuple) else (value,)) if is_typed(v)]
    if isinstance(node, Aggregate | Over):
        calls = [e for e in found if isinstance(e, AggregateCall | OverCall)]
        assert all(call.function in (*AGGREGATES, *OVER_FUNCTIONS) for call in calls)
        found = [e for e in found if e not in calls]
        found += [call.argument for call in calls if call.argument is not None]
    return found


def is_typed(value: object) -> bool:
    return hasattr(value, "type") and not isinstance(value, Node)


def validate_expression(
    expression, row: Schema, outer: tuple[Schema, ...], in_filter: bool
) -> None:
    for part in walk(expression):
        assert part.type is not Type.NULL, str(part)
        if isinstance(part, Column):
            assert row[part.position].type is part.type, f"{part} in {row}"
            assert not part.name or row[part.position].name.lower() == part.name.lower()
        elif isinstance(part, OuterColumn):
            assert part.level <= len(outer), str(part)
            seen = outer[part.level - 1][part.position]
            assert seen.type is part.type
            assert seen.name.lower() == part.name.lower()
            assert in_filter
        elif isinstance(part, Call):
            validate_call(part)
        elif not isinstance(part, Literal):
            validate(part.subquery, row, *outer)
            validate_subquery(part)


IN_ZONES = {"local_time": Type.TIMESTAMP, "zoned_time": Type.TIMESTAMP, "zoned_text": Type.STRING}


def validate_call(call: Call) -> None:
    types = [argument.type for argument in call.arguments]
    name = call.function
    if name == "bound":  # of queries that tolerate a sample
        assert len(call.arguments) == 3 + COLUMNS[call.arguments[0].value]
        return
    if name in IN_ZONES:
        assert types == [IN_ZONES[name], Type.STRING], str(call)
        assert call.type is Type.TIMESTAMP
        return
    assert name in FUNCTIONS or name in OPERATORS, name
    if name in COMPARISONS:
        assert len(set(types)) == 1, str(call)
        assert call.type is Type.BOOLEAN
    elif call.type.is_decimal and name in ("+", "-", "*", "/", "%"):
        assert call.type is decimals.result(name, *types), str(call)
    elif name in ("+", "-", "*", "/", "%", "neg"):
        assert set(types) == {call.type}, str(call)
        assert call.type in (Type.BIGINT, Type.DOUBLE) or call.type.is_decimal
    elif name in ("and", "or", "not"):
        assert set(types) == {Type.BOOLEAN} == {call.type}, str(call)
    elif name in ("coalesce", "nullif", "greatest", "least"):
        assert set(types) == {call.type}, str(call)
    elif name == "case":
        pairs = len(types) // 2
        assert set(types[0 : 2 * pairs : 2]) == {Type.BOOLEAN}
        assert {*types[1 : 2 * pairs : 2], *types[2 * pairs :]} == {call.type}
    elif name in FUNCTIONS:
        validate_function(call)


def validate_function(call: Call) -> None:
    function = FUNCTIONS[call.function]
    assert function.accepts(len(call.arguments))
    for position, argument in enumerate(call.arguments):
        wanted = function.parameter(position)
        assert not isinstance(wanted, Type) or argument.type is wanted, str(call)
    if not call.type.is_decimal:
        assert function.result is None or call.type is function.result


def validate_subquery(part) -> None:
    schema = part.subquery.schema
    assert not part.subquery.is_stream
    if isinstance(part, (InSubquery, Quantified)):
        assert schema.types == (part.value.type,)
    elif isinstance(part, ScalarSubquery):
        assert schema.types == (part.type,)
