"""Columns of what is declared, by their names."""

from millpond.catalog import MISSED_BY, VIOLATES
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import Name
from millpond.schema import Schema
from millpond.spelling import suggestion


def position_of(name: Name, schema: Schema) -> int:
    """The position of a named column."""
    position = schema.position(name.text)
    if position is None:
        raise StatementError(
            f'no column "{name.text}"{suggestion(name.text, schema.names)}', name.offset
        )
    return position


def refuse_columns_aside(stream: str, schema: Schema, offset: int) -> None:
    """Refuses a stream whose tuples could not be told from what is said of those put aside."""
    taken = [each.name for each in schema.fields if each.name.lower() in (VIOLATES, MISSED_BY)]
    if taken:
        raise StatementError(
            f'stream {stream} has a column "{taken[0]}", which tuples have behind their own that '
            "break a constraint or contradict a punctuation; call the column otherwise",
            offset,
        )
