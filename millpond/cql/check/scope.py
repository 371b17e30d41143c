"""Which columns and functions a name can mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from millpond.cql.expressions import Column, Expression, OuterColumn, with_children
from millpond.cql.expressions import children as children_of
from millpond.cql.text.places import StatementError
from millpond.functions.user_function import UserFunction
from millpond.schema import Schema
from millpond.spelling import suggestion

TSTAMP = "tstamp()"
"""The name, which nobody can write, of the column that has the times of a stream's elements."""


_OF_A_WINDOW = "; a window in FROM has it: FROM S [TUMBLE 10 SECONDS]"
NO_FROM = "there is no FROM, which says what is read: FROM and a stream, relation or view"


@dataclass(frozen=True)
class ScopeColumn:
    """A column that an expression may name. ``plain``: also without its source's name, and by *."""

    source: str | None
    name: str
    value: Expression
    plain: bool = True

    def answers(self, source: str | None, name: str) -> bool:
        """Whether ``source.name`` (or the bare name) means this column."""
        if self.name.lower() != name.lower():
            return False
        if source is None:
            return self.plain
        return self.source is not None and self.source.lower() == source.lower()


@dataclass(frozen=True)
class Scope:
    """The columns in sight, those of the queries around, and the user's functions.

    ``outer_refusal`` is the error for naming an outer column where that is not allowed.
    """

    columns: tuple[ScopeColumn, ...] = ()
    outer: Scope | None = None
    outer_refusal: str = field(default="", compare=False)
    functions: Mapping[str, UserFunction] = field(default_factory=dict, compare=False)
    arrival: tuple[Column, ...] = ()
    """When and as which elements of a stream rows came, where that is known."""
    key_of: Callable[[str], tuple[int, ...]] = field(default=lambda _: (), compare=False)
    """The positions of the key of a relation, by its name."""

    @property
    def sources(self) -> list[str]:
        """The names of the sources, in order."""
        return list(dict.fromkeys(c.source for c in self.columns if c.source is not None))

    def resolve(self, source: str | None, name: str, offset: int | None) -> Expression:
        """The column that a name means; raises if there is none or more than one."""
        found = self._find(source, name)
        if len(found) > 1:
            written = " or ".join(f"{c.source}.{c.name}" for c in found if c.source)
            raise StatementError(f'"{name}" is ambiguous; write {written}', offset)
        if found:
            return found[0].value
        return self._outward(source, name, offset)

    def _outward(self, source: str | None, name: str, offset: int | None) -> OuterColumn:
        """The column of a query around this one, the nearest that has one."""
        inside, level, refusal = self, 1, ""
        while inside.outer is not None:
            refusal = refusal or inside.outer_refusal
            found = inside.outer._find(source, name)
            if len(found) == 1:
                if refusal:
                    raise StatementError(refusal, offset)
                return _outer_column(found[0], level, offset)
            inside, level = inside.outer, level + 1
        raise self._unknown(source, name, offset)

    def knows(self, name: str) -> bool:
        """Whether a bare name means a column, here or in a query around."""
        return bool(self.plain(name)) or (self.outer is not None and self.outer.knows(name))

    def means_struct(self, name: str) -> bool:
        """Whether a bare name means a STRUCT here, and no source: ``name.a`` is a field of it."""
        if not name or self._names_source(name):
            return False
        found = self.plain(name)
        if found or self.outer is None:
            return any(column.value.type.is_struct for column in found)
        return self.outer.means_struct(name)

    def _names_source(self, name: str) -> bool:
        if name.lower() in [source.lower() for source in self.sources]:
            return True
        return self.outer is not None and self.outer._names_source(name)

    def _find(self, source: str | None, name: str) -> list[ScopeColumn]:
        return [column for column in self.columns if column.answers(source, name)]

    def plain(self, name: str) -> list[ScopeColumn]:
        """The columns that the bare name may mean."""
        return self._find(None, name)

    def expand(self, source: str | None, offset: int | None) -> list[ScopeColumn]:
        """The columns that * or source.* stands for."""
        if source is None:
            return [column for column in self.columns if column.plain]
        if source.lower() not in [known.lower() for known in self.sources]:
            raise self._unknown_source(source, offset)
        own = [c for c in self.columns if c.source and c.source.lower() == source.lower()]
        return [column for column in own if column.name != TSTAMP]

    def _unknown(self, source: str | None, name: str, offset: int | None) -> StatementError:
        if source is not None and source.lower() not in [s.lower() for s in self.sources]:
            return self._unknown_source(source, offset)
        if name == TSTAMP:
            return StatementError(
                f'"{source}" is a relation, whose rows have no time; tstamp takes a stream', offset
            )
        if not self.columns:
            return StatementError(f'no column "{name}"; {NO_FROM}', offset)
        names = [c.name for c in self.columns if source is None or c.answers(source, c.name)]
        of = f' in "{source}"' if source else ""
        hidden = [c for c in self.plain(source or "") if c.value.type.is_struct]
        if hidden and hidden[0].source:
            way = f"{hidden[0].source}.{hidden[0].name}.{name}"
            message = f'no column "{name}"{of}, a source in FROM; of the STRUCT write {way}'
            return StatementError(message, offset)
        window = _OF_A_WINDOW if name.lower() in ("window_start", "window_end") else ""
        return StatementError(f'no column "{name}"{of}{suggestion(name, names)}{window}', offset)

    def _unknown_source(self, source: str, offset: int | None) -> StatementError:
        if not self.columns:
            return StatementError(f'no source "{source}"; {NO_FROM}', offset)
        return StatementError(
            f'no source "{source}" in FROM{suggestion(source, self.sources)}', offset
        )


def _outer_column(column: ScopeColumn, level: int, offset: int | None) -> OuterColumn:
    value = column.value
    if not isinstance(value, Column):
        raise StatementError(
            f'"{column.name}" of the enclosing query is computed; name one side', offset
        )
    return OuterColumn(value.position, value.type, value.name, level)


def scope_of(source: str | None, schema: Schema, functions: Mapping[str, UserFunction]) -> Scope:
    """The scope of one source."""
    columns = tuple(
        ScopeColumn(source, f.name, Column(i, f.type, f.name)) for i, f in enumerate(schema.fields)
    )
    return Scope(columns, functions=functions)


def beside(left: Scope, right: Scope, width: int) -> Scope:
    """The scope of a join, whose left input has ``width`` columns."""
    moved = tuple(replace(c, value=shifted(c.value, width)) for c in right.columns)
    return replace(left, columns=left.columns + moved)


def shifted(expression: Expression, by: int) -> Expression:
    """The expression over a row that has ``by`` more columns in front."""
    if isinstance(expression, Column):
        return replace(expression, position=expression.position + by)
    return with_children(expression, tuple(shifted(c, by) for c in children_of(expression)))


def with_merged(joined: Scope, merged: list[tuple[ScopeColumn, ScopeColumn, Expression]]) -> Scope:
    """The scope of a join USING: each pair of columns appears once, in front, as a new value."""
    hidden = [column for left, right, _ in merged for column in (left, right)]
    front = tuple(ScopeColumn(None, left.name, value) for left, _, value in merged)
    rest = tuple(replace(c, plain=False) if c in hidden else c for c in joined.columns)
    return replace(joined, columns=front + rest)
