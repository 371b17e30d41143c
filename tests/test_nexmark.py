"""NEXMark's queries, Q0 to Q22, answer what DuckDB does."""

import pytest

from benchmarks.nexmark.__main__ import check
from benchmarks.nexmark.in_duckdb import QUERIES

EVENTS, LOOKS = 3_000, 2


def test_there_are_all_of_them() -> None:
    assert list(QUERIES) == [f"q{number}" for number in range(23)]


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_answers_are_those_of_duckdb(query: str) -> None:
    assert check(query, EVENTS, LOOKS) > 0
