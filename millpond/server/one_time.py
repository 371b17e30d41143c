"""One-time queries: a question about relations and windows as they are, answered once.

An engine of its own gets what the queues retain, runs the query on it, and is asked for the content
at the present time. Where a window reaches back beyond what is retained, the answer would be wrong,
and is refused with the reason.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millpond.catalog import Connector, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors import arrow_schema
from millpond.connectors.nested import inside_table, outside_table
from millpond.cql.algebra import (
    ONE_ROW,
    Dstream,
    HopWindow,
    Istream,
    Join,
    RangeWindow,
    RelationScan,
    RowsWindow,
    Rstream,
    SessionWindow,
    StreamScan,
    TimeFilter,
    UntilWindow,
)
from millpond.cql.node import Node
from millpond.cql.statements import Create, Statement
from millpond.errors import InputError, OutgrownError, StateError
from millpond.facade.engine import Engine
from millpond.identities import StreamId
from millpond.intake.arrivals import Intake
from millpond.intake.promises import promise_all
from millpond.planning.join_keys import join_keys
from millpond.planning.optimise import optimise
from millpond.schema import BEGINNING, FOREVER
from millpond.server.faults import RequestError
from millpond.server.feeds import net_content
from millpond.server.limits import Limits
from millpond.storage.pages import concatenated
from millpond.storage.queues import Queue

ROWS_HERE = 2**31
"""Steps of any size run in the driver: an answer is waited for, and Spark starts slowly."""

PAIRS_A_ROW = 20
"""So many pairs may joins without equality look at for each row that a question may read."""

STEP_ROWS = 20_000
"""How many rows a step reads, about, so that bounds are looked at often."""


def answer(engine: Engine, statement: Statement, limits: Limits) -> tuple[pa.Table, Any]:
    """The rows of a query now, and when that is; raises ``StateError`` where it can not be told.

    What it reads, holds and takes is bounded; a bound that is hit is a ``RequestError`` that says
    which.
    """
    bounds = Bounds(limits)
    action = statement.action
    entry = action.entry if isinstance(action, Create) else None
    if not isinstance(entry, QueryEntry):
        raise StateError("ask with a SELECT; other statements change something")
    plan = _relation(entry.plan)
    with engine.held():
        now = _now(engine, plan)
        _refuse_what_is_gone(engine, plan, now)
        bounds.check_amount("reads", *_amount(engine, plan))
        bounds.check_pairs(_pairs(engine, optimise(plan, entry.on_error)))
        streams = {n: _tuples(engine, n) for n in _names(plan, StreamScan)}
        relations = {n: _content(engine, n) for n in _names(plan, RelationScan)}
    trial = _Trial(_settings(engine, limits), bounds)
    with trial:
        trial.catalog.functions.update(engine.catalog.functions)
        for name in (*relations, *streams):
            _declare(trial, engine, name)
        for name, table in relations.items():
            trial.push(name, table)
        trial.statements.declare(replace(entry, plan=plan, sink=None, active=True))
        nothing = trial.deliveries.of(entry.name).table([])
        content = _Content(nothing, now, bounds)
        trial.subscribe(entry.name, content.add)
        for name, table in streams.items():
            trial.inputs.streams[StreamId(name)].queue.append(table)
        trial.run_through(now)
        when = trial.format_time(entry.name, now if now > BEGINNING else None)
    table = outside_table(content.summed(), entry.plan.schema.types, first=2)
    bounds.check()
    return table, when


def _settings(engine: Engine, limits: Limits) -> dict[str, Any]:
    settings: dict[str, Any] = {"tick": f"{engine.catalog.tick_microseconds} microseconds"}
    settings |= {"driver_rows": ROWS_HERE, "place_by": "rows", "seed": engine.settings.seed}
    return settings | {"step_rows": STEP_ROWS, "budget": limits.ask_bytes}


class Bounds:
    """How many rows, bytes and seconds one question may take."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ends = time.monotonic() + limits.ask_seconds
        self._holds = (0, 0)

    def holds(self, rows: int, size: int) -> None:
        """So much is held now; the next check looks at it."""
        self._holds = rows, size

    def check_amount(self, does: str, rows: int, size: int) -> None:
        """Refuses a question that reads or holds more than it may."""
        if rows > self._limits.ask_rows:
            raise _hit("rows", f"{does} {rows:,} rows", f"{self._limits.ask_rows:,} are")
        if size > self._limits.ask_bytes:
            raise _hit("bytes", f"{does} {size:,} bytes", f"{self._limits.ask_bytes:,} are")

    def check_pairs(self, pairs: int) -> None:
        """Refuses a question whose joins look at more pairs of rows than there is time for."""
        most = PAIRS_A_ROW * self._limits.ask_rows
        if pairs > most:
            raise _hit("rows", f"pairs {pairs:,} rows in joins without equality", f"{most:,} are")

    def refuse_outgrown(self, error: BaseException | None) -> None:
        """Refuses a question that failed as one instant alone takes more than its share."""
        while error is not None and not isinstance(error, OutgrownError):
            error = error.__cause__
        if error is not None:
            fault = "pairs more rows at one instant than there is memory for"
            raise _hit("bytes", fault, f"{self._limits.ask_bytes:,} bytes are")

    def check(self) -> None:
        """Refuses a question that holds more, or has taken longer, than it may."""
        self.check_amount("holds", *self._holds)
        if time.monotonic() > self._ends:
            raise _hit("seconds", "takes longer", f"{self._limits.ask_seconds:g} seconds are")


def _hit(bound: str, fault: str, most: str) -> RequestError:
    message = f"the question {fault}; {most} the most (`millpond serve --ask-{bound}`)"
    return RequestError(413, f"{message}: ask for less, or register it as a query", bound=bound)


class _Trial(Engine):
    """An engine that looks at the bounds before each of its turns."""

    def __init__(self, settings: dict[str, Any], bounds: Bounds) -> None:
        self._bounds = bounds
        super().__init__(settings, keep_results=False)

    def run_through(self, now: int) -> None:
        """Works on all that is there; what would happen later, such as windows that run empty, is
        not asked for."""
        with self.lock, self.inputs.ahead() as coming:
            promise_all(self.inputs, now, coming)
        try:
            self.run_until_idle()
        except InputError as error:
            self._bounds.refuse_outgrown(error)
            raise

    def _turn(self, intake: Intake, is_idle: bool) -> bool:
        self._bounds.check()
        return super()._turn(intake, is_idle)


class _Content:
    """The content of a relation at a time, summed up as its changes come."""

    def __init__(self, nothing: pa.Table, now: int, bounds: Bounds) -> None:
        self._now, self._bounds = now, bounds
        self._sum = inside_table(nothing)
        self._changes = [self._sum]

    def add(self, changes: pa.Table) -> None:
        """Takes complete instants, in order of time."""
        past = pc.fill_null(pc.less_equal(changes.column(0), self._now), fill_value=True)
        self._changes.append(inside_table(changes.filter(past)))
        if sum(table.num_rows for table in self._changes) > self._sum.num_rows + STEP_ROWS:
            self.summed()

    def summed(self) -> pa.Table:
        """The rows there are, with values as they are within the engine."""
        self._sum = net_content(pa.concat_tables([self._sum, *self._changes]))
        self._changes = []
        self._bounds.holds(self._sum.num_rows, self._sum.nbytes)
        return self._sum


def _pairs(engine: Engine, node: Node) -> int:
    """How many pairs of rows the joins without keys of a plan look at, at most."""
    below = max((_pairs(engine, each) for each in node.inputs), default=0)
    if not isinstance(node, Join) or join_keys(node.condition, len(node.left.schema)).left:
        return below
    left, right = (_amount(engine, side)[0] for side in (node.left, node.right))
    return below * max(left, right) if below else left * right


def _amount(engine: Engine, plan: Node) -> tuple[int, int]:
    """How many rows and bytes there are of what a plan reads."""
    queues = [engine.inputs.streams[StreamId(name)].queue for name in _names(plan, StreamScan)]
    names = [name for name in _names(plan, RelationScan) if engine.catalog.get(name)]
    queues += [engine.inputs.relation(name).queue for name in names]
    pages = [page for queue in queues for page in queue.pages]
    return sum(page.rows for page in pages), sum(page.bytes for page in pages)


def _relation(plan: Node) -> Node:
    """The relation that a query is about: its answer now, not what is new in it."""
    if isinstance(plan, Istream | Rstream):
        return plan.input
    if isinstance(plan, Dstream):
        raise StateError("a Dstream tells what went; ask for the relation itself")
    if plan.is_stream:
        raise StateError("this is a stream; ask for a window on it, such as [RANGE 1 MINUTE]")
    return plan


def _names(plan: Node, kind: type[StreamScan] | type[RelationScan]) -> list[str]:
    nodes = plan.walk_into_subqueries()
    names = (node.name for node in nodes if isinstance(node, kind))
    return list(dict.fromkeys(name for name in names if name != ONE_ROW.name))


def _now(engine: Engine, plan: Node) -> int:
    """How far the inputs of a plan are; of one that compares with the time, how far any is."""
    streams = [engine.inputs.streams[StreamId(name)] for name in _names(plan, StreamScan)]
    if any(isinstance(node, TimeFilter) for node in plan.walk_into_subqueries()):
        streams = list(engine.inputs.streams.values())
    reached = [intake.largest for intake in streams if intake.largest is not None]
    relations = (engine.inputs.relation(name) for name in _names(plan, RelationScan))
    return max([*reached, *(each.last_change for each in relations)], default=BEGINNING)


def _refuse_what_is_gone(engine: Engine, plan: Node, now: int) -> None:
    for window, stream in _windows(plan):
        queue = engine.inputs.streams[StreamId(stream)].queue
        gone = queue.freed_until
        if gone < BEGINNING:
            continue  # all that ever came is there
        reason = _beyond(window, queue, now, gone)
        if reason:
            raise StateError(
                f"{stream}: {reason}; what came up to {gone} is not retained. Register a query "
                "with such a window, and it will be"
            )


_WINDOWS = (RangeWindow, HopWindow, RowsWindow, SessionWindow, UntilWindow)


def _windows(plan: Node) -> Iterator[tuple[Node | None, str]]:
    """The windows of a plan with the streams they are on; None where a stream has none."""
    windowed: set[int] = set()
    for node in plan.walk_into_subqueries():
        if isinstance(node, _WINDOWS):
            for below in node.walk():
                if isinstance(below, StreamScan):
                    windowed.add(id(below))
                    yield node, below.name
    for node in plan.walk_into_subqueries():
        if isinstance(node, StreamScan) and id(node) not in windowed:
            yield None, node.name


def _beyond(window: Node | None, queue: Queue, now: int, gone: int) -> str:
    """Why a window reaches beyond what is retained; empty if it does not."""
    match window:
        case HopWindow(length_ticks=ticks) if now - ticks > gone:
            return ""
        case HopWindow():
            return "the window reaches back further"
        case RangeWindow(length_ticks=int(ticks), slide_ticks=slide):
            if now - ticks - (slide or 0) > gone:
                return ""
            return "the window reaches back further"
        case RowsWindow(partition=(), rows=int(rows)):
            below = list(window.walk())
            plain = all(isinstance(node, RowsWindow | StreamScan) for node in below)
            slide = window.slide_rows or 0
            if plain and queue.waiting(gone, now) >= rows + slide:
                return ""
            return f"fewer than {rows} rows are retained for sure"
        case SessionWindow():
            return "a session may have begun before all that is retained"
        case RowsWindow():
            return "rows of a partition may be older than all that is retained"
    return "an unbounded window needs all that ever came"


def _tuples(engine: Engine, name: str) -> pa.Table:
    """The tuples that are retained, with their times and places."""
    queue = engine.inputs.streams[StreamId(name)].queue
    return concatenated(queue.between(BEGINNING - 1, FOREVER), queue.schema)


def _content(engine: Engine, name: str) -> pa.Table:
    intake = engine.inputs.relation(name)
    rows = intake.content()
    schema = arrow_schema(intake.entry.schema)
    data = rows.select(range(rows.num_columns - len(schema), rows.num_columns))
    times = rows["_w"].to_pylist() if "_w" in rows.column_names else [1] * rows.num_rows
    picked = [place for place, often in enumerate(times) for _ in range(often)]
    table = data.take(pa.array(picked, pa.int64())).rename_columns(schema.names)
    return outside_table(table, intake.entry.schema.types)


def _declare(trial: Engine, engine: Engine, name: str) -> None:
    """The same stream or relation, fed by hand."""
    entry = engine.catalog.get(name)
    if isinstance(entry, RelationEntry):
        pushed = replace(entry, source=Connector("push"), has_changes=False, on_conflict="ignore")
        trial.statements.declare(pushed)
    elif isinstance(entry, StreamEntry):
        trial.statements.declare(replace(entry, source=Connector("push"), constraints=()))
