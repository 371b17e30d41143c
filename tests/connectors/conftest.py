"""One server of PostgreSQL for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.debian import MissingProgramError
from tests.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="pip install 'millpond[postgres]' brings it")
    try:
        started = PostgresServer()
    except MissingProgramError as error:
        pytest.skip(str(error))
    yield started
    started.close()
