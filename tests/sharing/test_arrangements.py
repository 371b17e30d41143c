"""How queries run beside others: what EXPLAIN says before they are registered, and what runs then.

A case of ``fixtures/*.txt``, one file for each way of sharing: ``== title``, then statements and
pushes (``> S 1, 2`` pushes a tuple and works), ``?`` and a query, and what EXPLAIN PHYSICAL says
of it.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from millpond import Engine

FOLDER = Path(__file__).parent / "fixtures"
DECLARED = """
    CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t FROM push();
    CREATE STREAM T (t BIGINT, k INT, w INT) TIMESTAMP BY t FROM push();
    CREATE RELATION R (k INT, n STRING) FROM push();
"""


def loaded():
    """(lines before the query, the query, what is expected) of all cases."""
    for path in sorted(FOLDER.glob("*.txt")):
        for case in path.read_text().split("== ")[1:]:
            title, *lines = case.rstrip().splitlines()
            (at,) = (i for i, line in enumerate(lines) if line.startswith("?"))
            expected = "\n".join(lines[at + 1 :])
            yield pytest.param(lines[:at], lines[at][2:], expected, id=f"{path.stem}: {title}")


def prepared(engine, lines):
    """Does what stands before the query."""
    engine.execute(DECLARED)
    for line in lines:
        if line.startswith("> "):
            name, _, row = line[2:].partition(" ")
            engine.push(name, [ast.literal_eval(f"({row},)")])
            engine.run_until_idle()
        elif line:
            engine.execute(line)


def without_costs(text):
    """What EXPLAIN says but for how long something took."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("estimated cost"))


@pytest.mark.parametrize(("lines", "query", "expected"), list(loaded()))
def test_a_query_runs_as_it_was_said(lines, query, expected):
    with Engine() as engine:
        prepared(engine, lines)
        operators = dict(engine.graph.operators)
        (plan,) = engine.execute(f"EXPLAIN PHYSICAL {query}")
        assert without_costs(plan.text) == expected
        assert engine.graph.operators == operators, "asking has changed something"
        engine.execute(f"CREATE QUERY new AS {query}")
        engine.validate()
        new = engine.graph.operators.keys() - operators.keys()
        upstream = engine.graph.upstream(engine.queries.outputs["new"])
        assert {each for each in upstream & new if f"{each}: " not in plan.text} == set()
