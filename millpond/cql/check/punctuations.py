"""PUNCTUATE: which values of which columns of a stream will not follow."""

from collections.abc import Iterator

from sqlglot import exp

from millpond.catalog import Catalog, StreamEntry
from millpond.cql.check.columns import position_of, refuse_columns_aside
from millpond.cql.check.constants import evaluate, is_fraction
from millpond.cql.check.expressions import analyser
from millpond.cql.check.scope import Scope
from millpond.cql.coercion import assign, with_article
from millpond.cql.expressions import Value
from millpond.cql.patterns import LEAST, MOST, Pattern, Values, as_number
from millpond.cql.statements import Punctuate
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.text.punctuations import parse_pattern
from millpond.cql.text.syntax import Name, PunctuatedClause, PunctuateStatement
from millpond.errors import CqlError, Position
from millpond.schema import Field, Schema, Type
from millpond.spelling import suggestion

WAY_OUT = (
    "a pattern is column = constant, <, <=, >, >=, BETWEEN … AND … or IN (…), joined by AND; write "
    "a PUNCTUATE for each of several"
)

_ENDS: dict[type[exp.Expr], tuple[int | None, int | None]] = {
    exp.EQ: (0, 0),
    exp.LTE: (None, 0),
    exp.LT: (None, -1),
    exp.GTE: (0, None),
    exp.GT: (1, None),
}
"""From where to where values go that compare so with a constant: None has no end."""

_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
}
"""The comparison with its sides exchanged."""


def punctuate(syntax: PunctuateStatement, catalog: Catalog) -> Punctuate:
    """What a statement says of a stream."""
    entry = catalog.get(syntax.stream.text)
    if not isinstance(entry, StreamEntry):
        known = [stream.name for stream in catalog.of_kind(StreamEntry)]
        raise StatementError(
            f'no stream "{syntax.stream.text}"{suggestion(syntax.stream.text, known)}',
            syntax.stream.offset,
        )
    refuse_columns_aside(entry.name, entry.schema, syntax.stream.offset)
    return Punctuate(entry.name, pattern_of(syntax.condition, entry), syntax.on_violation)


def read_pattern(text: str, entry: StreamEntry) -> Pattern:
    """The pattern that a text says; raises ``CqlError``."""
    try:
        refuse_columns_aside(entry.name, entry.schema, 0)
        return pattern_of(parse_pattern(text), entry)
    except StatementError as error:
        raise error.located(text, Position(1, 1)) from None
    except RecursionError:
        raise CqlError("the pattern is nested too deeply", Position(1, 1)) from None


def carrying_column(clause: PunctuatedClause, schema: Schema, name: Name) -> int:
    """The position of the column that carries punctuations."""
    position = position_of(clause.column, schema)
    given = schema[position].type
    if given is not Type.STRING:
        raise StatementError(
            f'"{clause.column.text}" is {with_article(given)}; punctuations are carried by a '
            "STRING, such as 'order_id <= 7'",
            clause.column.offset,
        )
    refuse_columns_aside(name.text, schema, clause.column.offset)
    return position


def pattern_of(condition: exp.Expr, entry: StreamEntry) -> Pattern:
    """The pattern that a condition is."""
    found: dict[int, Values] = {}
    for part in _conjuncts(condition):
        position, values = _part(part, entry)
        both = found[position].common(values) if position in found else values
        if not both:
            raise StatementError(f'no value of "{entry.schema[position].name}" is like that', part)
        found[position] = both
    return Pattern(tuple(sorted(found.items())))


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    pending = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Paren):
            pending.append(part.this)
        elif isinstance(part, exp.And):
            pending += [part.expression, part.this]
        else:
            yield part


def _part(part: exp.Expr, entry: StreamEntry) -> tuple[int, Values]:
    """The column that a comparison is about, and the values it is true of."""
    match part:
        case exp.Between():
            position, field = _column(part.this, entry)
            low, high = (_number(part.args[each], field) for each in ("low", "high"))
            return position, Values(((low, high),) if low <= high else ())
        case exp.In() if part.expressions:
            position, field = _column(part.this, entry)
            return position, Values().united(_one(each, field) for each in part.expressions)
        case _ if type(part) in _ENDS:
            return _compared(part, entry)
    raise StatementError(WAY_OUT, part)


def _compared(part: exp.Expr, entry: StreamEntry) -> tuple[int, Values]:
    kind, (one, other) = type(part), (part.this, part.expression)
    if isinstance(other, exp.Column) and not isinstance(one, exp.Column):
        kind, one, other = _TURNED[kind], other, one
    position, field = _column(one, entry)
    if kind is exp.EQ:
        return position, _one(other, field)
    number, (below, above) = _number(other, field), _ENDS[kind]
    low = LEAST if below is None else number + below
    high = MOST if above is None else number + above
    return position, Values(((low, high),) if low <= high else ())


def _column(node: exp.Expr, entry: StreamEntry) -> tuple[int, Field]:
    if not isinstance(node, exp.Column):
        raise StatementError(WAY_OUT, node)
    if node.table and node.table.lower() != entry.name.lower():
        raise StatementError(
            f'"{node.table}" is not the stream that is punctuated; write {entry.name}.{node.name}',
            node,
        )
    position = position_of(Name(node.name, offset_of(node) or 0), entry.schema)
    field = entry.schema[position]
    is_other = field.type.is_decimal or field.type.is_nested
    if field.type in (Type.DOUBLE, Type.BINARY) or is_other:
        raise StatementError(
            f'"{field.name}" is {with_article(field.type)}, of which no value is said to be the '
            "last one; punctuate another column",
            node,
        )
    return position, field


def _one(node: exp.Expr, field: Field) -> Values:
    value = _constant(node, field)
    if isinstance(value, str):
        return Values(texts=(value,))
    number = as_number(value)
    return Values(((number, number),))


def _number(node: exp.Expr, field: Field) -> int:
    """The constant at an end of a range."""
    if field.type in (Type.STRING, Type.BOOLEAN):
        raise StatementError(
            f'"{field.name}" is {with_article(field.type)}; ranges are of an INT, BIGINT, DATE or '
            "TIMESTAMP, and others are listed: = or IN (…)",
            node,
        )
    return as_number(_constant(node, field))


def _constant(node: exp.Expr, field: Field) -> Value:
    offset = offset_of(node)
    for part in node.find_all(exp.Column):
        raise StatementError(f"a pattern has constants, not columns; {WAY_OUT}", part)
    value = analyser(Scope(), "WHERE").expression(node)
    made = evaluate(value, offset)
    if made is None:
        raise StatementError("nothing is equal to NULL, and nothing is said of NULLs", offset)
    if is_fraction(made):
        raise StatementError(
            f'"{field.name}" is {with_article(field.type)}, the value is {made!s}; round it', offset
        )
    return evaluate(assign(value, field.type, f'"{field.name}"', offset), offset)
