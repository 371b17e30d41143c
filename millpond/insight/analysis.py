"""EXPLAIN ANALYZE: what was measured of a query's operators, and its progress charts, as text."""

from collections.abc import Iterator
from itertools import islice

from millpond.delivery.latency import in_unit
from millpond.identities import OperatorId
from millpond.scheduling.charts.progress_chart import partition, path_chart
from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot
from millpond.sharing.queries import Queries

MOST_PATHS = 8
"""So many ways from streams to the output have their charts shown."""


def analysed(queries: Queries, query: str) -> str:
    """What was measured of a running query."""
    output = queries.output_of(query)
    wanted = queries.graph.upstream(output)
    plan = queries.runtime.picture.elementary()
    parts = [
        [f"query {query}: latency {queries.ground.deliveries.latency(query)}"],
        list(_operators(queries, wanted)),
        list(_units(queries, wanted)),
    ]
    paths = list(islice(paths_to(plan, output.number), MOST_PATHS + 1))
    parts += [list(_chart(plan, path)) for path in paths[:MOST_PATHS]]
    if len(paths) > MOST_PATHS:
        parts.append([f"more than {MOST_PATHS} ways lead to the output; these are the first"])
    return "\n\n".join("\n".join(part) for part in parts)


def _operators(queries: Queries, wanted: set[OperatorId]) -> Iterator[str]:
    runtime = queries.runtime
    yield "operators"
    for identity in (each for each in runtime.running if each in wanted):
        measured, running = runtime.statistics[identity], runtime.running[identity]
        tally = measured.tally
        yield f"  {identity}: {queries.graph.operators[identity].label()}"
        yield (
            f"    {tally.rows_in:,} rows in, {tally.rows_out:,} out, {tally.driver_steps:,} steps "
            f"in the driver, {tally.executor_steps:,} on the executors, {in_unit(tally.seconds)}"
        )
        costs = (
            f"{place} {in_unit(line.step)} + {1e6 * line.row:.3g} µs a row"
            for place, line in running.places.lines.items()
        )
        yield (
            f"    a step costs: {'; '.join(costs)}; selectivity {measured.selectivity:.3g}; "
            f"bytes a row {measured.input_bytes:.0f} in, {measured.output_bytes:.0f} out"
        )
        usual = round(tally.rows_in / max(1, tally.steps))
        yield f"    the next one: {running.place_reason(usual)}"
        yield (
            f"    of late {measured.inputs.per_second():,.1f} rows/s in, "
            f"{measured.outputs.per_second():,.1f} out, busy {measured.busy.per_second():.1%}"
        )


def _units(queries: Queries, wanted: set[OperatorId]) -> Iterator[str]:
    """The virtual operators, and what waits in the queues before them."""
    runtime = queries.runtime
    yield "units and the queues before them"
    for unit in runtime.units:
        if not unit.identities & wanted:
            continue
        yield f"  {' + '.join(member.identity for member in unit.members)}"
        names = {n: None for each in unit.members for n in each.inputs if n not in unit.identities}
        for name in names:
            waiting = runtime.backlog.of(name)
            yield f"    {name}: {waiting.rows:,} rows wait, {waiting.bytes:,} bytes"


def paths_to(plan: PlanSnapshot, output: int) -> Iterator[OperatorPath]:
    """The ways from streams to an operator, found one by one: there may be very many."""
    stack: list[tuple[int, ...]] = [(output,)]
    while stack:
        path = stack.pop()
        first = plan.by_id[path[0]]
        yield from (OperatorPath(stream, path) for stream in first.streams)
        stack += [(above, *path) for above in reversed(first.upstream)]


def _chart(plan: PlanSnapshot, path: OperatorPath) -> Iterator[str]:
    """Work against bytes left for one tuple, and the lower envelope that Chain schedules by."""
    points = path_chart(plan, path)
    names = [OperatorId.numbered(each) for each in path.operators]
    yield f"progress chart of a tuple of {path.stream}, through {', '.join(names)}"
    yield f"  {in_unit(0.0):>10}  {points[0][1]:>10.1f} bytes"
    for (seconds, size), name in zip(points[1:], names, strict=True):
        yield f"  {in_unit(seconds):>10}  {size:>10.1f} bytes  after {name}"
    yield "  lower envelope:"
    for segment in partition(points):
        members = ", ".join(names[segment.first : segment.last + 1])
        yield f"    {members}: {segment.slope / 1e6:.4g} bytes/µs"
