"""NEXMark's queries of windows and ranks answer what DuckDB does."""

import pytest

from benchmarks.nexmark.__main__ import check
from benchmarks.nexmark.in_duckdb import QUERIES

EVENTS = {"q5": 12_000, "q7": 45_000, "q8": 12_000, "q19": 6_000}


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_answers_are_those_of_duckdb(query: str) -> None:
    assert check(query, EVENTS[query]) > 4
