"""Columns of what is declared, by their names."""

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
