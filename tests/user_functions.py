"""Functions of the user for tests, each with what it means for one row in the reference evaluator.

``reciprocal`` raises for zero and gives NULL for NULL; ``shown`` has a text for NULL too.
"""

from __future__ import annotations

import pyarrow as pa

from tests.reference_values import NoValueError


def reciprocal(numbers):
    """1000 divided by each number."""
    return pa.array([None if n is None else 1000 // n for n in numbers.to_pylist()], pa.int64())


def shown(numbers, marks):
    """Each number with its mark."""
    pairs = zip(numbers.to_pylist(), marks.to_pylist(), strict=True)
    return pa.array([f"{mark}{number}" for number, mark in pairs], pa.string())


FUNCTIONS = [
    ("reciprocal", reciprocal, ["BIGINT"], "BIGINT"),
    ("shown", shown, ["INT", "STRING"], "STRING"),
]


def _reciprocal(number):
    if number == 0:
        raise NoValueError
    return None if number is None else 1000 // number


MEANINGS = {"reciprocal": _reciprocal, "shown": lambda number, mark: f"{mark}{number}"}

SCHEMA = [("t", "BIGINT"), ("a", "INT")]
QUERIES = {
    "listed": "SELECT a, reciprocal(a) AS r FROM S",
    "selected": "SELECT shown(a, '#') AS s FROM S WHERE a > -3 AND reciprocal(a) > 300",
    "grouped": "SELECT reciprocal(a) AS r, count(*) AS n FROM S [RANGE 2] GROUP BY reciprocal(a)",
    "nested": "SELECT shown(a, 'x') AS s, coalesce(reciprocal(a * a), -1) AS r FROM S",
    "shielded": "SELECT CASE WHEN a <> 0 THEN reciprocal(a) ELSE -1 END AS r FROM S [ROWS 2]",
}
STOPPING = "shielded"
"""The query that no input stops, so that it needs no ON ERROR SKIP."""


def script():
    """The statements that register all queries."""
    declared = ["CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"]
    for name, text in QUERIES.items():
        skip = "" if name == STOPPING else "ON ERROR SKIP "
        declared.append(f"CREATE QUERY {name} {skip}AS {text};")
    return "".join(declared)
