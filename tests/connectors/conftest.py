"""One server of PostgreSQL for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_server import MissingServerError, PostgresServer


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="pip install 'millpond[postgres]' brings it")
    try:
        started = PostgresServer()
    except MissingServerError as error:
        pytest.skip(f"no PostgreSQL: {error}")
    yield started
    started.close()
