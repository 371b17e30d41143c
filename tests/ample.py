"""Whether answers are bit for bit the same where overload may be approximated: part of make fuzz.

    python -m tests.ample [--of 1]

Every text fixture runs in the driver twice: as it is, and where overload may be approximated, with
a ``latency`` that is never reached, by queries that tolerate a sample as far as they have bounds.
All results, with their order and types, have to be equal, and the ends of bounds to be the answers.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from millpond import Engine
from tests.fixtures_format import load, same_input
from tests.fuzz import drive

IN_THE_DRIVER = {"driver_rows": 10**9, "place_by": "rows"}
APPROXIMATE = {"overload": "approximate", "latency": "1 hour"}
APPROXIMATE |= {"tolerate": "SAMPLE AT LEAST 1 PERCENT"}
ENDS = ("_low", "_high", "_certain_low", "_certain_high")


def groups(of=1):
    """Cases, each with the queries of all fixtures over one input; one of so many."""
    found = {}
    for number, fixture in enumerate(load()):
        case, name = fixture.case, f"q{number:03d}"
        together = found.setdefault(str(same_input(case)), same_input(case))
        skipping = together.skipping | ({name} if case.skipping else set())
        queries = together.queries | {name: case.queries["q"]}
        found[str(same_input(case))] = replace(together, queries=queries, skipping=skipping)
    return list(found.values())[::of]


def results(case, settings):
    """All that the queries of a case put out, as tables."""
    said = IN_THE_DRIVER | {"strategy": case.strategy} | settings
    with Engine(settings=said) as engine:
        drive(engine, case)
        return {name: engine.results(name) for name in case.queries}


def looked_at(case):
    """The queries whose results are others, those that put out rows, and those that tolerate."""
    exact, other = results(case, {}), results(case, APPROXIMATE)
    return (
        [name for name, table in exact.items() if not is_same(table, other[name])],
        [name for name, table in exact.items() if table.num_rows],
        [name for name, table in exact.items() if table.schema != other[name].schema],
    )


def is_same(exact, other):
    """Whether a result has the exact one's columns, and bounds that are equal to these."""
    names, others = exact.column_names, set(other.column_names)
    ends = [(name, name + end) for name in names for end in ENDS if name + end in others]
    return other.select(names).equals(exact) and all(
        row[name] == row[end] or row[name] != row[name]
        for row in other.to_pylist()
        for name, end in ends
    )


def main():
    """Runs the fixtures and says which answers are others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", type=int, default=1)
    wrong, there, tolerant = [], 0, 0
    for case in groups(parser.parse_args().of):
        others, with_rows, of_bounds = looked_at(case)
        wrong += [case.queries[name] for name in others]
        there, tolerant = there + len(with_rows), tolerant + len(of_bounds)
    told = f"{there} answers, {tolerant} queries that tolerate, {len(wrong)} answers are others"
    print(told, *wrong, sep="\n  ")  # noqa: T201
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
