"""The items of a SELECT list."""

from dataclasses import dataclass

from sqlglot import exp

from millpond.cql.expressions import Expression


@dataclass(frozen=True)
class Item:
    """One column of the result: an expression as written, or a column that * stands for."""

    name: str
    body: exp.Expr | Expression
    alias: str | None = None
    star_offset: int | None = None
