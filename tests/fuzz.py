"""Compares the engine with the reference on random cases: ``python -m tests.fuzz --n 1000``.

A case is one database with several queries registered together, so sharing is tested too, and is
run in one of the ways that must not matter (``tests.ways``). A failure is cut down and printed as a
script that repeats it, with the seed that leads to it.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, replace

from rich.console import Console
from rich.progress import Progress

from millpond.errors import MillpondError
from millpond.scheduling.strategy_text import DIRECT
from tests.adhering import adhering
from tests.breaking import breaking, without_aside
from tests.cases import Alter, Case, Drop, Run
from tests.generator import seeded_case
from tests.history import BEGINNING
from tests.late_comers import late_case
from tests.matching import difference
from tests.punctuating import punctuated
from tests.reference_values import listed
from tests.siblings import sharing_case

LATE_EVERY = 5
ADHERING_EVERY = 2
"""Of so many cases one has constraints."""
PUNCTUATED_EVERY = 3
"""Of so many cases one has punctuations."""
BREAKING_EVERY = 5
"""Of so many cases one has constraints that tuples break."""
REFUSED = "the earliest possible is|reads no stream"
"""What is said of queries that cannot begin when they are to."""
NOT_ALTERED = "operators have not come equally far"
"""What is said of queries that cannot go on with another window just then."""


@dataclass(frozen=True)
class Failure:
    """What went wrong: ``surplus`` is what the engine has too much (weight > 0) or too little."""

    case: Case
    query: str
    surplus: tuple = ()
    error: str = ""
    wanted: tuple = ()
    """What the reference has put out, by what of the case counted."""

    def __str__(self):
        lines = [str(self.case), f"# {self.query} differs from the reference"]
        if self.error:
            return "\n".join([*lines, self.error])
        lines += [f"#   expected {row}" for row in self.wanted]
        lines += [
            f"#   too {'much' if w > 0 else 'little'} {(t, w, r)}" for t, w, r in self.surplus
        ]
        return "\n".join(lines)


def drive(engine, case):
    """Performs a case: {query: [(ts, weight, row)]}, the late rows of each stream, and the case
    as it was without what was refused."""
    engine.execute(case.ddl())
    for statement in case.query_ddl():
        engine.execute(statement)
    results, done, refused = {}, [], set()
    for action in case.schedule:
        if getattr(action, "query", None) in refused:
            continue
        if isinstance(action, Alter):
            engine.run_until_idle()
            if held_back(engine, action.query):
                continue
        if isinstance(action, Drop):
            results[action.query] = rows_of(engine.results(action.query))
        method, arguments = action.call(case)
        try:
            getattr(engine, method)(*arguments)
        except MillpondError as error:
            if isinstance(action, Alter) and re.search(NOT_ALTERED, str(error)):
                done.append(Run())
                continue
            if not getattr(action, "start", "") or not re.search(REFUSED, str(error)):
                raise
            refused.add(action.query)
        done.append(action)
        if works_at_once(engine) and not isinstance(action, Run):
            done.append(Run())
    engine.finish()
    for name in case.queries:
        if name not in results and name not in refused:
            results[name] = rows_of(engine.results(name))
    late = {s.name: [tuple(row.values()) for row in late_rows(engine, s)] for s in case.streams}
    return results, late, case.with_schedule(done)


def works_at_once(engine):
    """Whether an engine works whenever something comes, as if it had been asked to run."""
    return getattr(engine.settings, "mode", "") == DIRECT


def held_back(engine, query):
    """Whether a query has not answered all it can: it is one unit with queries that wait for others
    of their streams, and does its steps with them."""
    queries = engine.queries
    if queries.started is None or query not in queries.outputs:
        return False
    running = queries.started.running
    upstream = [running[each] for each in queries.graph.upstream(queries.outputs[query])]
    return any(each.cursor < horizon(each) for each in upstream)


def horizon(operator):
    """The time up to which all that an operator reads is complete."""
    return min((queue.heartbeat for queue, _ in operator.subscriptions), default=BEGINNING)


def late_rows(engine, stream):
    """The side stream of late tuples, without anything but the declared columns."""
    names = [name for name, _ in stream.schema]
    rows = engine.late(stream.name).to_pylist(maps_as_pydicts="strict")
    return [{name: listed(row[name]) for name in names} for row in rows]


def violating_rows(engine, stream):
    """The tuples that broke a constraint, without its name."""
    names = [name for name, _ in stream.schema]
    rows = engine.violating(stream.name).to_pylist(maps_as_pydicts="strict")
    return [tuple(listed(row[name]) for name in names) for row in rows]


def rows_of(table):
    """Results as (ts, weight, row)."""
    rows = table.to_pylist(maps_as_pydicts="strict")
    return [(r.pop("ts"), r.pop("weight"), tuple(map(listed, r.values()))) for r in rows]


def check(engine_factory, case):
    """The failures of a case; ``engine_factory(settings)`` gives an engine to use in a ``with``."""
    try:
        with engine_factory({"strategy": case.strategy}) as engine:
            results, late, whole = drive(engine, case)
            told = [name for name in told_aside(whole) if name in results]  # others were refused
            aside = {name: aside_of(engine.left_out(name)) for name in told}
            promising = [s for s in whole.streams if s.constraints]
            counted = without_aside(whole, {s.name: violating_rows(engine, s) for s in promising})
    except Exception:  # noqa: BLE001 (whatever the engine raises is a failure of the case)
        return [Failure(case, ", ".join(case.queries), error=traceback.format_exc())]
    failures = []
    if counted is None:
        return failures
    for name, actual in results.items():
        wanted = expected(counted, name, actual)
        surplus = difference(wanted, actual)
        if surplus:
            failures.append(Failure(whole, name, tuple(surplus), wanted=tuple(wanted)))
    for name, actual in aside.items():
        wanted = counted.left_out(name)
        surplus = difference(wanted, actual)
        if surplus:
            error = f"# left out: too much (+) or too little (-) {surplus}, expected {wanted}"
            failures.append(Failure(whole, name, error=error))
    if {s: Counter(rows) for s, rows in late.items()} != {
        s: Counter(rows) for s, rows in counted.late().items()
    }:
        failures.append(Failure(whole, "late", error=f"# late: {late}, expected {counted.late()}"))
    return failures


def told_aside(case):
    """The queries whose left out rows the reference knows: of correlated ones it does not, and of
    altered ones they are forgotten."""
    gone = {*case.dropped, *case.altered}
    there = (name for name in sorted(case.skipping) if name not in gone)
    return [name for name in there if case.left_out(name) is not None]


def aside_of(table):
    """What a query left out, as (ts, weight, (clause,)): the text of the row is the engine's."""
    counts = Counter()
    for record in table.to_pylist():
        clause = record["expression"].split(": ", 1)[1]
        found = re.match(r"WHERE|ON|GROUP BY|HAVING|SELECT", clause)
        counts[record["ts"], found.group() if found else "GROUP BY"] += record["weight"]
    return [(ts, weight, (clause,)) for (ts, clause), weight in counts.items() if weight]


def expected(case, query, actual):
    """What a query should have put out; one that was dropped, up to its last instant."""
    rows = case.expected(query)
    if query not in case.dropped:
        return rows
    last = max((moment(ts) for ts, _, _ in actual), default=-math.inf)
    return [row for row in rows if actual and moment(row[0]) <= last]


def moment(ts):
    """A time that can be compared: None is the beginning."""
    return BEGINNING if ts is None else ts


# Cutting a failing case down.


def shrink(engine_factory, failure, seconds=60.0):
    """A smaller case that still fails, found within some time."""
    deadline = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < deadline:
        smaller = False
        for candidate in smaller_cases(failure.case):
            if time.monotonic() > deadline:
                break
            if not valid(candidate):
                continue
            found = check(engine_factory, candidate)
            if found:
                failure, smaller = found[0], True
                break
    return failure


def valid(case):
    """Whether the inputs still fit: a row may be removed from a relation only if it is there."""
    for relation in case.relations:
        held = Counter()
        for _, sign, row in case.changes(relation):
            held[row] += sign
            if held[row] < 0:
                return False
    return True


def smaller_cases(case):
    """Cases with something left out, large parts first."""
    for name in case.queries if len(case.queries) > 1 else ():
        yield case.only(name)
    for name in case.queries if len(case.queries) > 1 else ():
        yield case.without([name])
    size = len(case.schedule)
    while size > 1:
        size //= 2
        for start in range(0, len(case.schedule), size):
            yield case.with_schedule(case.schedule[:start] + case.schedule[start + size :])
    for place, action in enumerate(case.schedule):
        rows = getattr(action, "rows", ())
        for index in range(len(rows) if len(rows) > 1 else 0):
            rest = replace(action, rows=rows[:index] + rows[index + 1 :])
            yield case.with_schedule((*case.schedule[:place], rest, *case.schedule[place + 1 :]))


# Long runs.


def fuzz(engines, options, console):
    """Runs cases until ``n`` query-input pairs are done; the number of failures.

    ``engines(seed)`` gives what makes the engines for the case of a seed.
    """
    failures = done = 0
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("query-input pairs", total=options.n)
        for seed in range(options.seed, options.seed + -(-options.n // options.queries)):
            case = drawn_case(seed, options)
            found = check(engines(seed), case)
            done += len(case.queries)
            progress.update(task, completed=done, description=f"seed {seed}, {failures} failed")
            failures += len(found)
            for failure in found[:1]:
                report(engines(seed), failure, seed, options, console)
            if failures >= options.max_failures:
                break
    console.print(f"{done} query-input pairs, {failures} failed", highlight=False)
    return failures


def drawn_case(seed, options):
    """The case of a seed; with ``--sharing`` its queries are of a few shapes, with ``--coming``
    they come again while data flows."""
    case = _drawn(options, seed)
    if seed % BREAKING_EVERY == 0:
        return breaking(case, seed)
    if seed % PUNCTUATED_EVERY == 0:
        case = punctuated(case, seed)
    return adhering(case) if seed % ADHERING_EVERY == 0 else case


def _drawn(options, seed):
    if options.coming:
        return late_case(seed, options.queries)
    if options.sharing:
        return sharing_case(seed, options.queries)
    return seeded_case(seed, options.queries, late=seed % LATE_EVERY == 0)


def report(engine_factory, failure, seed, options, console):
    """Prints how to repeat a failure, before and after cutting it down."""
    again = f"python -m tests.fuzz --seed {seed} --n {options.queries} --queries {options.queries}"
    again += " --sharing" if options.sharing else ""
    again += " --coming" if options.coming else ""
    console.print(f"\nseed {seed} fails; again: {again}", style="bold red", highlight=False)
    if options.shrink_seconds > 0:
        failure = shrink(engine_factory, failure, options.shrink_seconds)
    console.print(str(failure), markup=False, highlight=False, soft_wrap=True)


def arguments(given):
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="query-input pairs to run")
    parser.add_argument("--seed", type=int, help="first seed; drawn if left out")
    parser.add_argument("--queries", type=int, default=8, help="queries in one engine")
    parser.add_argument(
        "--sharing", action="store_true", help="sets of queries that differ in constants only"
    )
    parser.add_argument(
        "--coming", action="store_true", help="queries that come again while data flows"
    )
    parser.add_argument("--max-failures", type=int, default=1)
    parser.add_argument("--shrink-seconds", type=float, default=120.0)
    options = parser.parse_args(given)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(2**32)
    return options


def main(given=None):
    """Starts Spark once and fuzzes; exits 1 on a failure."""
    options = arguments(given)
    from millpond.settings import Settings  # noqa: PLC0415 (so that the parts above need no engine)
    from millpond.spark.session import create_session  # noqa: PLC0415
    from tests.ways import Way  # noqa: PLC0415

    console = Console()
    console.print(f"seed {options.seed}", highlight=False)
    spark = create_session(Settings(spark_master="local[2]"))
    try:
        return fuzz(lambda seed: Way.drawn(seed).engines(spark), options, console)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
