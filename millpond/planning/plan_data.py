"""Plans, operators and entries of the catalog as plain data, for the log.

A value of one of our kinds is a dict with its kind under ``is`` and its fields, those that have
their defaults left out; a node that is read twice stands there once. What is read is what was
written. Functions of the user are named: whoever reads has them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from millpond.catalog import (
    Connector,
    Constraint,
    PartitionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    Tolerance,
    ViewEntry,
)
from millpond.cql.algebra import OverCall
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Frame,
    InSubquery,
    Literal,
    OuterColumn,
    Quantified,
    ScalarSubquery,
    SortKey,
    UserCall,
)
from millpond.cql.node import Node, inputs_first
from millpond.cql.row_patterns import (
    Absence,
    Definition,
    Either,
    InTurn,
    Occurrence,
    Repeated,
    Skip,
    Slot,
)
from millpond.cql.written import Written
from millpond.errors import CqlWarning, MillpondError, Position
from millpond.functions.user_function import UserFunction
from millpond.planning.graph import Addition, Placed
from millpond.planning.identified import identified
from millpond.planning.nodes import InList
from millpond.planning.physical import Operator
from millpond.schema import Field as Named
from millpond.schema import Schema, Type

Functions = Mapping[str, UserFunction]

EXPRESSIONS = (
    AggregateCall,
    Call,
    Column,
    Exists,
    Frame,
    InSubquery,
    Literal,
    OuterColumn,
    OverCall,
    Quantified,
    ScalarSubquery,
    SortKey,
    UserCall,
)
ENTRIES = (StreamEntry, RelationEntry, ViewEntry, QueryEntry, PartitionEntry)
_OTHERS = (
    Absence,
    Addition,
    Connector,
    Constraint,
    CqlWarning,
    Definition,
    Either,
    InList,
    InTurn,
    Occurrence,
    Placed,
    Position,
    Repeated,
    Skip,
    Slot,
    Tolerance,
    Written,
)


def to_data(value: Any) -> Any:
    """An operator, a plan, an expression or a tuple of them as plain data.

    >>> to_data(Literal(date(2024, 2, 29), Type.DATE))
    {'is': 'Literal', 'value': {'date': '2024-02-29'}, 'type': {'type': 'DATE'}}
    """
    nodes: dict[Node, int] = {}
    listed: list[Any] = []
    for root in _roots(value):
        for node in inputs_first(root, into=True):
            if node not in nodes:
                listed.append(_told_fields(node, nodes))
                nodes[node] = len(nodes)
    told = _told(value, nodes)
    return {"nodes": listed, "of": told} if listed else told


def from_data(data: Any, functions: Functions) -> Any:
    """The same value again."""
    nodes: list[Node] = []
    if isinstance(data, dict) and "nodes" in data:
        for each in data["nodes"]:
            nodes.append(_read(each, nodes, functions))
        data = data["of"]
    return _read(data, nodes, functions)


def _roots(value: Any) -> Iterator[Node]:
    """The plans in a value, not those inside them."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _roots(each)
    elif is_dataclass(value) and not isinstance(value, Schema):
        for field in _fields(type(value)):
            yield from _roots(getattr(value, field.name))


def _told(value: Any, nodes: Mapping[Node, int]) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Node():
            return {"node": nodes[value]}
        case tuple():
            return [_told(each, nodes) for each in value]
        case Schema():
            return {"columns": [[each.name, each.type.value] for each in value.fields]}
        case Type():
            return {"type": value.value}
        case datetime():
            return {"time": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case UserFunction():
            return {"function": value.name}
        case _ if is_dataclass(value):
            return _told_fields(value, nodes)
    raise MillpondError(f"internal: {value!r} is no part of a plan")


def _told_fields(value: Any, nodes: Mapping[Node, int]) -> dict[str, Any]:
    kind = type(value)
    told: dict[str, Any] = {"is": kind.__name__}
    for field in _fields(kind):
        part = getattr(value, field.name)
        if field.default is MISSING or part != field.default:
            told[field.name] = _told(part, nodes)
    return told


def _read(data: Any, nodes: list[Node], functions: Functions) -> Any:
    if isinstance(data, list):
        return tuple(_read(each, nodes, functions) for each in data)
    if not isinstance(data, dict):
        return data
    if "is" in data:
        kind = _kinds()[data["is"]]
        parts = {k: _read(v, nodes, functions) for k, v in data.items() if k != "is"}
        return kind(**identified(kind, parts))
    ((what, told),) = data.items()
    match what:
        case "node":
            return nodes[told]
        case "columns":
            return Schema(tuple(Named(name, Type.of(type_)) for name, type_ in told))
        case "type":
            return Type.of(told)
        case "time":
            return datetime.fromisoformat(told)
        case "date":
            return date.fromisoformat(told)
        case "decimal":
            return Decimal(told)
        case "bytes":
            return bytes.fromhex(told)
        case _:
            return functions[told]


_FIELDS: dict[Any, tuple[Field[Any], ...]] = {}


def _fields(kind: Any) -> tuple[Field[Any], ...]:
    if kind not in _FIELDS:
        _FIELDS[kind] = fields(kind)
    return _FIELDS[kind]


@cache
def _kinds() -> dict[str, Any]:
    """The classes that plans are made of, by their names."""
    kinds = (*EXPRESSIONS, *ENTRIES, *_OTHERS, *_below(Node), *_below(Operator))
    return {kind.__name__: kind for kind in kinds}


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in type.__subclasses__(kind):
        yield each
        yield from _below(each)
