"""Random queries hold at every instant what PostgreSQL answers for what the windows hold."""

import pytest

from tests.postgres_oracle import differences, prepare

QUERIES = 12


@pytest.mark.slow
def test_queries_answer_what_postgresql_does_at_every_instant(server):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        prepare(connection)
        assert differences(connection, 11, QUERIES) == []
