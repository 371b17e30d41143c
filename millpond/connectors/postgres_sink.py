"""Tables of PostgreSQL as sinks: the rows of a page and its number are one transaction.

The number stands in the table ``millpond_sinks`` beside the one that is written, a row for each
declaration. It goes from n to n + 1 in the transaction of page n, so that nobody writes a page that
is there: not after a kill, nor a process that stood still while another one went on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

import pyarrow as pa

from millpond.connectors.changed_rows import NEW, changes_of_each, last_of_each, repeated
from millpond.connectors.postgres_client import Server
from millpond.connectors.postgres_merge import KIND, STAGE, Merge
from millpond.connectors.postgres_rows import checked, copied, with_arrays, without_nul
from millpond.connectors.postgres_tables import (
    Table,
    TableColumn,
    found_table,
    listed,
    quoted,
    taken_by,
    takes,
    usual_type,
)
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results
from millpond.errors import OutputError
from millpond.identities import BAD_ROWS
from millpond.schema import Type

NUMBERS = "millpond_sinks"
"""The table with the numbers of pages."""

TIME, WEIGHT = "millpond_ts", "millpond_weight"
"""Columns of these names get the time of a result in ticks, and its weight."""

BESIDE = {TIME: 0, WEIGHT: 1}
"""Where they stand in results."""

LOCK = 0x6D696C6C
"""Held by who makes the table of numbers: two at once would be in each other's way."""


@dataclass(frozen=True)
class Target:
    """Where results go, and what is said of it."""

    results: Results
    server: Server
    table: str | Secret
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [name.lower() for name in self.results.schema.names]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise self.fault(f"the query has two columns {twice[0]}; give one another name")
        for each in self.key:
            if each.lower() not in names:
                known = ", ".join(self.results.schema.names)
                raise self.fault(f"no column {each} for the key; columns: {known}")

    @property
    def has_bad_rows(self) -> bool:
        """Whether the results are the bad rows of a stream's source."""
        return self.results.query.endswith(BAD_ROWS)

    def fault(self, reason: str) -> OutputError:
        """A fault that names query or stream, table and database."""
        owner = f"query {self.results.query}"
        if self.has_bad_rows:
            owner = f"bad rows of stream {self.results.query.removesuffix(BAD_ROWS)}"
        return OutputError(f"{owner}: table {self.table} at {self.server.place}: {reason}")

    def said(self, reason: str) -> OutputError:
        """A fault of the server's, and the way out."""
        retry = f"ALTER QUERY {self.results.query} ACTIVATE"
        again = "run again" if self.has_bad_rows else retry
        return self.fault(f"{reason}; see that it can be written, then {again}")


@dataclass(frozen=True)
class Form:
    """Makes rows of a table of results."""

    target: Target
    table: Table

    def __post_init__(self) -> None:
        for field, column in zip(self.target.results.schema.fields, self._own, strict=True):
            if not takes(field.type, column):
                raise self.target.fault(
                    f"column {column.name} is {column.type}, and {field.type} goes into "
                    f"{' or '.join(taken_by(field.type))}; CAST it in the query, or ALTER "
                    "the table"
                )
        for each in self._beside:
            if not takes(Type.BIGINT, each):
                raise self.target.fault(f"column {each.name} is {each.type}, not bigint")
        keys = frozenset(self.keys)
        if keys and keys not in self.table.keys:
            names = ", ".join(self.keys)
            raise self.target.fault(
                f"nothing keeps ({names}) unique there; ALTER TABLE {self.table.name} "
                f"ADD PRIMARY KEY ({listed(self.keys)})"
            )
        if not (keys or self.target.results.is_stream or self._has(WEIGHT)):
            raise self.target.fault(
                "the answer is a relation, whose rows come and go: name its key by "
                f"key = 'column, …', or have a column {WEIGHT} bigint that says which of both"
            )

    @cached_property
    def _own(self) -> list[TableColumn]:
        """The columns for those of the query."""
        found = []
        for name in self.target.results.schema.names:
            column = self.table.column(name)
            if column is None:
                there = ", ".join(each.name for each in self.table.columns)
                raise self.target.fault(
                    f"no column {name}; columns there: {there}; ALTER TABLE, or rename it by AS"
                )
            found.append(column)
        return found

    @cached_property
    def _beside(self) -> list[TableColumn]:
        """The columns for the time and the weight, if they are there."""
        found = [each for each in self.table.columns if each.name in BESIDE]
        return [each for each in found if each not in self._own]

    def _has(self, name: str) -> bool:
        return any(each.name == name for each in self._beside)

    @cached_property
    def keys(self) -> list[str]:
        """The columns of the key."""
        schema = self.target.results.schema
        return [self._own[schema.position(each) or 0].name for each in self.target.key]

    @cached_property
    def names(self) -> list[str]:
        """The columns that are written."""
        return [each.name for each in (*self._own, *self._beside)]

    @cached_property
    def merge(self) -> Merge:
        """How the rows of keys come into the table."""
        names = [each.name for each in self._own]
        return Merge(self.table.name, names, self.keys, self.target.results.is_stream)

    def rows(self, results: pa.Table) -> pa.Table:
        """The rows to add."""
        if self.target.has_bad_rows:
            results = without_nul(results)
        columns = [*results.columns[2:], *(results.column(BESIDE[e.name]) for e in self._beside)]
        rows = checked(with_arrays(pa.table(columns, self.names)), self.target.fault)
        return rows if self._has(WEIGHT) else repeated(rows, results.column(1))

    def changes(self, results: pa.Table) -> tuple[pa.Table, pa.Array]:
        """The rows of keys, and whether each is gone, changed or new; of a stream all are new."""
        columns, weights, fault = results.columns[2:], results.column(1), self.target.fault
        own = with_arrays(pa.table(columns, [each.name for each in self._own]))
        if self.target.results.is_stream:
            rows = last_of_each(own, self.keys, fault)
            return checked(rows, fault), pa.array([NEW] * rows.num_rows)
        rows, kinds = changes_of_each(own, weights, self.keys, fault)
        return checked(rows, fault), kinds


class PostgresSink:
    """Results as rows of a table.

    It connects when there is something to write, and anew after each fault: then the database says
    whether the page is there.
    """

    is_remote = True

    def __init__(self, target: Target) -> None:
        self._target = target
        run, pages = target.results.resume or (uuid4().hex, 0)
        self._run, self._next = str(run), int(pages)
        self._connection: Connection | None = None

    def mark(self) -> list[str | int]:
        """What tells this declaration from others, and the number of the next page."""
        return [self._run, self._next]

    def write(self, table: pa.Table) -> None:
        """Adds results as the next page."""
        self.write_numbered(table, self._next)

    def write_numbered(self, table: pa.Table, number: int) -> None:
        """Adds the results of a page, unless they are there."""
        if number < self._next:
            return
        with self._target.server.naming(self._target.said):
            try:
                connection = self._connected()
                if number >= self._next:
                    connection.transact(table, number)
            except BaseException:
                self._let_go()
                raise
        self._next = max(self._next, number + 1)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._target, self._run)
            self._next = self._connection.begin(self._next)
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Lets the connection go; all that was written is there."""
        self._let_go()


class Connection:
    """A connection, until its first fault."""

    def __init__(self, target: Target, run: str) -> None:
        self._target, self._run = target, run
        self._connection = target.server.connected()
        with self._closing():
            table = found_table(self._connection, revealed(target.table), target.fault)
            if table is None:
                raise target.fault(f"it is not there; {self._creation()}")
            self._form = Form(target, table)
            self._numbers = f"{quoted(table.schema)}.{NUMBERS}"
            self._is_staged = False

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _creation(self) -> str:
        """The statement that makes a table for the results."""
        columns = [
            f"{quoted(each.name)} {usual_type(each.type)}"
            for each in self._target.results.schema.fields
        ]
        if self._target.key:
            columns.append(f"PRIMARY KEY ({listed(self._target.key)})")
        elif not self._target.results.is_stream:
            columns += [f"{TIME} bigint", f"{WEIGHT} bigint"]
        return f"CREATE TABLE {self._target.table} ({', '.join(columns)})"

    def begin(self, known: int) -> int:
        """The number of the first page that is not there; ``known`` ones are."""
        with self._closing():
            self._make_numbers()
            self._connection.execute(
                f"INSERT INTO {self._numbers} VALUES (%s, %s, 0) ON CONFLICT DO NOTHING",  # noqa: S608
                (self._run, self._target.results.query),
            )
            (pages,) = self._connection.execute(
                f"SELECT pages FROM {self._numbers} WHERE run = %s",  # noqa: S608
                (self._run,),
            ).fetchone()
            if pages < known:
                raise self._target.fault(
                    f"{known} pages of results were written, and {self._numbers} has {pages} of "
                    "them: the database was put back to an earlier state, or somebody has changed "
                    "that table; DROP the query and CREATE it again for an empty table"
                )
            return int(pages)

    def _make_numbers(self) -> None:
        if self._connection.execute("SELECT to_regclass(%s)", (self._numbers,)).fetchone()[0]:
            return
        statement = (
            f"CREATE TABLE IF NOT EXISTS {self._numbers} "
            "(run text PRIMARY KEY, query text NOT NULL, pages bigint NOT NULL)"
        )
        try:
            with self._connection.transaction():
                self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                self._connection.execute(statement)
        except self._target.server.psycopg.errors.InsufficientPrivilege as error:
            said = self._target.server.words_of(error)
            raise self._target.fault(f"{said}; have somebody who may do it: {statement}") from None

    def transact(self, results: pa.Table, number: int) -> None:
        """Writes the results of a page and its number, unless somebody did."""
        form = self._form
        with self._connection.transaction():
            done = self._connection.execute(
                f"UPDATE {self._numbers} SET pages = %s WHERE run = %s AND pages = %s",  # noqa: S608
                (number + 1, self._run, number),
            )
            if done.rowcount == 0:
                self._check_written(number)
            elif form.keys:
                self._merge(*form.changes(results))
            else:
                self._copy(form.table.name, form.rows(results))

    def _check_written(self, number: int) -> None:
        """Somebody else has written the page: another process with the same store."""
        found = self._connection.execute(
            f"SELECT pages FROM {self._numbers} WHERE run = %s",  # noqa: S608
            (self._run,),
        ).fetchone()
        if found is None or found[0] <= number:
            has = "nothing" if found is None else f"{found[0]} pages"
            raise self._target.fault(
                f"page {number} is to be written, and {self._numbers} has {has}: somebody has "
                "changed that table; DROP the query and CREATE it again for an empty table"
            )

    def _copy(self, table: str, rows: pa.Table) -> None:
        into = f"COPY {table} ({listed(rows.column_names)}) FROM STDIN (FORMAT csv)"
        with self._connection.cursor() as cursor, cursor.copy(into) as copy:
            for text in copied(rows):
                copy.write(text)

    def _merge(self, rows: pa.Table, kinds: pa.Array) -> None:
        """Has each key the row it has now."""
        if not self._is_staged:
            self._connection.execute(self._form.merge.stage)
            self._is_staged = True
        self._copy(STAGE, rows.append_column(KIND, kinds))
        for kind, count in Counter(kinds.to_pylist()).items():
            found = self._connection.execute(self._form.merge.change(kind)).rowcount
            if found != count and kind != NEW:
                raise self._target.fault(
                    f"of {count} rows that were written before {found} are there: somebody else "
                    "has changed the table; DROP the query and CREATE it again for an empty table"
                )

    def close(self) -> None:
        """Lets the server go; what is not committed is not there."""
        self._connection.close()
