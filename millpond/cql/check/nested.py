"""Rules for ARRAYs, STRUCTs and MAPs: how they are made, and what is in them."""

from sqlglot import exp

from millpond.cql.check.walk import Analyser
from millpond.cql.coercion import cast, implicit_cast, typed, unify, with_article
from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.text.constructors import MapOfEntries
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.type_names import map_of, struct_of
from millpond.schema import Field, Type
from millpond.spelling import suggestion


def array(analyser: Analyser, node: exp.Array) -> Expression:
    """ARRAY[e, …], of values that have one type."""
    items: list[exp.Expr] = node.expressions
    if not items:
        raise StatementError(
            "ARRAY[] does not say of what; write CAST('[]' AS ARRAY<INT>), or of another type", node
        )
    values = [analyser.expression(each) for each in items]
    made = unify(values, list(map(offset_of, items)), "the elements of an ARRAY mix")
    return Call("array", made, Type.array(made[0].type))


def map_of_entries(analyser: Analyser, node: MapOfEntries) -> Expression:
    """MAP[k, v, …]: keys of one type, and values of one type."""
    items: list[exp.Expr] = node.expressions
    if not items:
        raise StatementError(
            "MAP[] does not say of what; write CAST('{}' AS MAP<STRING, INT>), or of other types",
            node,
        )
    if len(items) % 2:
        raise StatementError("a MAP has a value behind each key: MAP['a', 1, 'b', 2]", node)
    values, places = [analyser.expression(each) for each in items], list(map(offset_of, items))
    keys = unify(values[::2], places[::2], "the keys of a MAP mix")
    others = unify(values[1::2], places[1::2], "the values of a MAP mix")
    parts = [part for pair in zip(keys, others, strict=True) for part in pair]
    return Call("map", tuple(parts), map_of(keys[0].type, others[0].type, places[0]))


def struct(analyser: Analyser, node: exp.Struct) -> Expression:
    """STRUCT(e AS a, …)."""
    if not node.expressions:
        raise StatementError("a STRUCT has fields: STRUCT(1 AS a, 'x' AS b)", node)
    named = [_named(each) for each in node.expressions]
    return made_struct(analyser, named, node)


def _named(node: exp.Expr) -> tuple[str, exp.Expr]:
    """A part of a STRUCT and its name, which a column has of itself."""
    if isinstance(node, exp.Alias):
        return node.alias, node.this
    if isinstance(node, exp.Column | exp.Dot) and isinstance(name_of(node), str):
        return name_of(node), node
    raise StatementError("a field of a STRUCT has a name: STRUCT(1 AS a, 'x' AS b)", node)


def name_of(node: exp.Column | exp.Dot) -> str:
    """What a column or field is called where it is written."""
    return str(node.name if isinstance(node, exp.Column) else node.expression.name)


def made_struct(
    analyser: Analyser, named: list[tuple[str, exp.Expr]], node: exp.Expr
) -> Expression:
    """The STRUCT of parts with names."""
    values = [typed(analyser.expression(part)) for _, part in named]
    fields = [Field(name, v.type) for (name, _), v in zip(named, values, strict=True)]
    return Call("struct", tuple(values), struct_of(fields, offset_of(node)))


def dot(analyser: Analyser, node: exp.Dot) -> Expression:
    """e.a"""
    name = node.expression
    if not isinstance(name, exp.Identifier):
        raise StatementError("a field is written as e.name", node)
    return field_of(analyser.expression(node.this), name.name, offset_of(name))


def field_of(value: Expression, name: str, offset: int | None) -> Expression:
    """A field of a STRUCT."""
    if not value.type.is_struct:
        raise StatementError(
            f".{name} stands behind a STRUCT, not {with_article(value.type)}", offset
        )
    found = value.type.field(name)
    if found is None:
        names = [field.name for field in value.type.fields]
        raise StatementError(f'no field "{name}"{suggestion(name, names)}', offset)
    return Call("field", (value, Literal(found.name, Type.STRING)), found.type)


def element(analyser: Analyser, node: exp.Bracket) -> Expression:
    """a[place], from 1 on, and m[key]."""
    (at,) = node.expressions
    value, place = analyser.expression(node.this), analyser.expression(at)
    if value.type.is_map:
        return Call("[]", (value, _key(value.type, place, offset_of(at))), value.type.element)
    if not value.type.is_array:
        raise StatementError(
            f"[ ] stands behind an ARRAY or MAP, not {with_article(value.type)}", node
        )
    if place.type not in (Type.INT, Type.BIGINT, Type.NULL):
        raise StatementError(f"the place of an element is an INT, not {place.type}", at)
    return Call("[]", (value, cast(place, Type.BIGINT)), value.type.element)


def _key(of: Type, key: Expression, offset: int | None) -> Expression:
    """The key of a value, of the type of all."""
    found = unify(
        [Literal(None, of.key), key], [offset, offset], "a MAP's key and what is asked mix"
    )
    if found[0].type is not of.key:
        raise StatementError(f"a key of {of} is {with_article(of.key)}, not {key.type}", offset)
    return implicit_cast(key, of.key, offset)
