"""INSERT into streams and relations; DELETE and UPDATE of relations."""

from typing import Any

from sqlglot import exp

from millpond.catalog import Catalog, RelationEntry, StreamEntry, kind_of
from millpond.cql.check.columns import position_of
from millpond.cql.check.constants import evaluate, is_fraction
from millpond.cql.check.expressions import analyser
from millpond.cql.check.scope import Scope, scope_of
from millpond.cql.coercion import assign, with_article
from millpond.cql.expressions import Column, Expression, Value
from millpond.cql.statements import Delete, Insert, Update
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.text.syntax import DeleteStatement, InsertStatement, Name, UpdateStatement
from millpond.schema import Field, Type
from millpond.spelling import suggestion


def insert(syntax: InsertStatement, catalog: Catalog) -> Insert:
    """The rows to insert, in the order of the columns of the stream or relation."""
    entry = catalog.get(syntax.relation.text)
    relation = entry if isinstance(entry, StreamEntry) else _relation(syntax.relation, catalog)
    schema = relation.schema
    names = syntax.columns
    positions = (
        list(range(len(schema))) if names is None else [position_of(n, schema) for n in names]
    )
    if names is not None and len(set(positions)) < len(positions):
        raise StatementError("a column is named twice", names[0].offset)
    rows = []
    for row in [row.values for row in syntax.rows]:
        if len(row) != len(positions):
            raise StatementError(
                f"{len(positions)} values are needed, one each for "
                f"{', '.join(schema[p].name for p in positions)}; here are {len(row)}",
                row[0],
            )
        values: list[Any] = [None] * len(schema)
        for position, node in zip(positions, row, strict=True):
            values[position] = _constant(node, schema[position])
        rows.append(tuple(values))
    return Insert(relation.name, tuple(rows))


def _constant(node: exp.Expr, field: Field) -> Value:
    offset = offset_of(node)
    for part in node.find_all(exp.Column):
        raise StatementError("VALUES takes constants, not columns", part)
    value = analyser(Scope(), "VALUES").expression(node)
    made = evaluate(value, offset)
    if field.type in (Type.INT, Type.BIGINT) and is_fraction(made):
        raise StatementError(
            f'"{field.name}" is {with_article(field.type)}, the value is {made!s}; round it', offset
        )
    return evaluate(assign(value, field.type, f'"{field.name}"', offset), offset)


def delete(syntax: DeleteStatement, catalog: Catalog) -> Delete:
    """The rows to delete, as a predicate."""
    relation = _relation(syntax.relation, catalog)
    scope = scope_of(relation.name, relation.schema, catalog.functions)
    return Delete(relation.name, _condition(syntax.condition, scope, "DELETE"))


def update(syntax: UpdateStatement, catalog: Catalog) -> Update:
    """The new value of every column, as an expression over the old row."""
    relation = _relation(syntax.relation, catalog)
    schema = relation.schema
    scope = scope_of(relation.name, schema, catalog.functions)
    rules = analyser(scope, "SET")
    values: list[Expression] = [Column(i, f.type, f.name) for i, f in enumerate(schema.fields)]
    changed: set[int] = set()
    for name, node in [(a.column, a.value) for a in syntax.assignments]:
        position = position_of(name, schema)
        if position in changed:
            raise StatementError(f'"{name.text}" is set twice', name.offset)
        changed.add(position)
        value = rules.expression(node)
        values[position] = assign(value, schema[position].type, f'"{name.text}"', offset_of(node))
    return Update(relation.name, tuple(values), _condition(syntax.condition, scope, "UPDATE"))


def _condition(node: exp.Expr | None, scope: Scope, statement: str) -> Expression | None:
    if node is None:
        return None
    return analyser(scope, f"the WHERE of {statement}").predicate(node)


def _relation(name: Name, catalog: Catalog) -> RelationEntry:
    entry = catalog.get(name.text)
    if isinstance(entry, RelationEntry) and entry.is_static:
        raise StatementError(
            f'"{entry.name}" is declared static = true and cannot be changed', name.offset
        )
    if isinstance(entry, RelationEntry):
        return entry
    if entry is not None:
        raise StatementError(
            f'"{entry.name}" is a {kind_of(entry)}; only relations can be changed', name.offset
        )
    known = [relation.name for relation in catalog.of_kind(RelationEntry)]
    raise StatementError(f'no relation "{name.text}"{suggestion(name.text, known)}', name.offset)
