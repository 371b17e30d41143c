"""A real PostgreSQL server for tests: Debian's, installed if that is possible, on a Unix socket."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.debian import installed
from tests.patience import PATIENCE_SECONDS

with suppress(ImportError):  # tests that need it are skipped
    import psycopg

_SETTINGS = {
    "listen_addresses": "''",
    "wal_level": "logical",
    "fsync": "off",
    "max_replication_slots": "200",
    "max_wal_senders": "4",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "timezone": "'Asia/Kolkata'",  # not the one that we ask for
}


@cache
def programs() -> Path:
    """Where initdb and its like are, installed now if need be."""
    return installed(_found, "postgresql")


def _found() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if folders:
        return folders[-1].parent
    path = shutil.which("initdb")
    return Path(path).resolve().parent if path else None


class PostgresServer:
    """A server with a folder of its own; it can be ended and started again."""

    def __init__(self, **settings: str) -> None:
        self._programs = programs()
        self._user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._folder = Path(tempfile.mkdtemp(prefix="millpond-postgres-", dir="/tmp"))
        if self._user:
            shutil.chown(self._folder, "postgres", "postgres")
        self.dsn = f"postgresql://postgres@/postgres?host={self._folder}"
        self._run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--no-sync")
        with (self._folder / "data" / "postgresql.conf").open("a") as file:
            whole = _SETTINGS | settings | {"unix_socket_directories": f"'{self._folder}'"}
            file.writelines(f"{name} = {value}\n" for name, value in whole.items())
        self.start()

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _run(self, name: str, *words: str) -> None:
        done = subprocess.run(
            [self._programs / name, *words],
            capture_output=True,
            check=False,
            cwd=self._folder,
            timeout=PATIENCE_SECONDS,
            **self._user,
        )
        log = self._folder / "log"
        said = log.read_text()[-2_000:] if log.exists() else ""
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode() + said

    def start(self) -> None:
        """Starts it and waits until it answers."""
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", self._data, "-l", log, "-w", "start", "-s")

    def end(self) -> None:
        """Ends it as a loss of power does, but that files stay."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop", "-s")

    def close(self) -> None:
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- what tests do with it -------------------------------------------------------------

    def run(self, *statements: str) -> None:
        """Executes statements, each in a transaction of its own."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(query).fetchall()

    def table(self, columns: str) -> str:
        """A new table."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.run(f"CREATE TABLE {name} ({columns})")
        return name
