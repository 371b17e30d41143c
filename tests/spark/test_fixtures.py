"""Every text fixture, on Spark: the hand-checked result, names, late tuples and what is left out.

Fixtures over the same input run in one engine, so that they also share operators.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from millpond import Engine
from tests.fixtures_format import load, same_input
from tests.fuzz import aside_of, drive
from tests.matching import difference

FIXTURES = {f"{number:03d}": fixture for number, fixture in enumerate(load())}

GROUPS = {}
for _name, _fixture in FIXTURES.items():
    _case = _fixture.case
    GROUPS.setdefault(str(same_input(_case)), []).append(_name)


@pytest.fixture(scope="module")
def answers():
    """The answers already found: {name: (results, column names, late rows, what is left out)}."""
    return {}


def run_group(spark, names, answers):
    """Runs all fixtures over one input."""
    case = replace(
        FIXTURES[names[0]].case,
        queries={f"q{name}": FIXTURES[name].case.queries["q"] for name in names},
        skipping=frozenset(f"q{name}" for name in names if FIXTURES[name].case.skipping),
    )
    with Engine(spark=spark, settings={"strategy": case.strategy}) as engine:
        results, late, _ = drive(engine, case)
        for name in names:
            columns = tuple(engine.results(f"q{name}").column_names[2:])
            aside = aside_of(engine.left_out(f"q{name}"))
            answers[name] = results[f"q{name}"], columns, late, aside


@pytest.mark.parametrize("name", FIXTURES, ids=lambda name: str(FIXTURES[name]))
def test_spark_gives_the_hand_checked_result(spark, answers, name):
    fixture = FIXTURES[name]
    if name not in answers:
        (group,) = (names for names in GROUPS.values() if name in names)
        run_group(spark, group, answers)
    results, columns, late, aside = answers[name]
    assert not difference(fixture.expected, results)
    assert fixture.names is None or columns == fixture.names
    for stream, rows in fixture.late.items():
        assert Counter(late[stream]) == Counter(rows)
    assert fixture.aside is None or not difference(fixture.aside, aside)
