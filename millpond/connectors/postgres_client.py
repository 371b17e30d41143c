"""How PostgreSQL is reached, by ``psycopg``, which is installed apart."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from millpond.connectors.secrets import Secret, revealed
from millpond.errors import InputError

ANSWER_SECONDS = 30.0
"""How long a server has to take a connection, and others to let a row or table go."""

IDLE_SECONDS = 60.0
"""How long a transaction may pause: a process that stands still holds up nobody for longer."""


def client() -> Any:
    """The package; where it is not installed an error says how to install it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError:
        raise InputError(
            "postgres needs the package psycopg; install it with pip install 'millpond[postgres]'"
        ) from None


class Server:
    """A database, by its connection string; whatever is said of it has no password."""

    def __init__(self, owner: str, dsn: str | Secret, password: str | Secret) -> None:
        self.psycopg = client()
        text, word = revealed(dsn), revealed(password)
        given = self._parts(owner, text)
        _refuse_shown_password(owner, dsn, password, given)
        if isinstance(dsn, Secret) and given.get("password"):
            dsn.stands_also_for(given["password"])
        self._given = given | ({"password": word} if word else {})
        self.place = str(dsn) if isinstance(dsn, Secret) else _place(given)
        """The database as errors say it."""

    def _parts(self, owner: str, dsn: Any) -> dict[str, Any]:
        conninfo = importlib.import_module("psycopg.conninfo")
        if not isinstance(dsn, str):
            raise InputError(f"{owner}: the connection string is a text, not {dsn!r}")
        try:
            parts: dict[str, Any] = conninfo.conninfo_to_dict(dsn)
        except self.psycopg.Error:  # what it says may quote a password
            raise InputError(
                f"{owner}: this is no connection string of PostgreSQL's; "
                "write 'postgresql://user@host:5432/database' or 'host=… dbname=…'"
            ) from None
        return parts

    def connected(self) -> Any:
        """A new connection, in transactions; times are in UTC."""
        usual = {"connect_timeout": int(ANSWER_SECONDS), "application_name": "millpond"}
        usual |= {"tcp_user_timeout": int(1_000 * ANSWER_SECONDS), "client_encoding": "UTF8"}
        connection = self.psycopg.connect(**(usual | self._given), autocommit=True)
        try:
            for setting, value in (
                ("TimeZone", "UTC"),
                ("DateStyle", "ISO"),
                ("extra_float_digits", "1"),
                ("bytea_output", "hex"),
                ("IntervalStyle", "postgres"),
                ("lock_timeout", f"{ANSWER_SECONDS:g}s"),
                ("idle_in_transaction_session_timeout", f"{IDLE_SECONDS:g}s"),
            ):
                connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        except BaseException:
            connection.close()
            raise
        return connection

    def reading(self) -> Any:
        """A new connection that has all rows of a table or an error, and not those of a policy."""
        connection = self.connected()
        try:
            connection.execute("SET row_security = off")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def naming(self, fault: Any) -> Iterator[None]:
        """Has faults of PostgreSQL's be errors of ours, made by ``fault`` of what was said."""
        try:
            yield
        except self.psycopg.Error as error:
            raise fault(self.words_of(error)) from None

    def words_of(self, error: Any) -> str:
        """What a fault says, in one line, without a password."""
        said = " ".join(str(error).split()) or type(error).__name__
        word = self._given.get("password")
        return said.replace(word, "…") if word else said


def _refuse_shown_password(
    owner: str, dsn: str | Secret, password: str | Secret, given: dict[str, Any]
) -> None:
    """A password stands in no statement: plans, stores and SHOW have its text."""
    is_shown = bool(given.get("password")) and not isinstance(dsn, Secret)
    if is_shown or (password and not isinstance(password, Secret)):
        raise InputError(
            f"{owner}: a password does not stand in a statement, where everybody reads it; "
            "write password = 'env:MILLPOND_SECRET_NAME', or have it in ~/.pgpass"
        )


def _place(given: dict[str, Any]) -> str:
    """Where a database is.

    >>> _place({"host": "db", "port": "5433", "dbname": "shop"}), _place({})
    ('db:5433/shop', "PostgreSQL's usual place")
    """
    host, port, name = (str(given.get(key) or "") for key in ("host", "port", "dbname"))
    address = f"{host}:{port}" if port else host
    return "/".join(filter(None, (address, name))) or "PostgreSQL's usual place"


def policies_named(said: str) -> str:
    """What a server says, with what is to be done about policies for rows."""
    if "row-level security" in said:
        return f"{said}; read it as a user with BYPASSRLS, or as its owner without FORCE"
    return said


def text_given(owner: str, option: str, value: Any) -> str:
    """A text that is not empty; a name that is a secret is shown nowhere."""
    found = revealed(value)
    if not isinstance(found, str) or not found.strip():
        raise InputError(f"{owner}: {option} is a text that is not empty, not {value!r}")
    return found
