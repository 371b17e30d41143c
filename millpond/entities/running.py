"""The control tables of what runs: operators, queues, synopses, units and threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from millpond.catalog import QueryEntry, Tolerance
from millpond.entities.attributes import Read, integer, knob, number, text
from millpond.entities.catalogued import change_memory, quoted
from millpond.entities.control_tables import Kind
from millpond.entities.controlled import Controlled
from millpond.errors import StateError
from millpond.identities import OperatorId, QueueId

if TYPE_CHECKING:
    from millpond.execution.operators.running import RunningOperator
    from millpond.execution.statistics import Statistics
    from millpond.execution.units import Unit
    from millpond.sharing.partitioning import Thread
    from millpond.storage.queues import Queue


# -- operators -----------------------------------------------------------------------------


def _operators(view: Controlled) -> list[OperatorId]:
    return list(view.runtime.running) if view.has_runtime else []


def _measured(read: Callable[[Statistics], Any]) -> Read:
    return lambda view, name: read(view.runtime.statistics[OperatorId(name)])


def _running(view: Controlled, name: str) -> RunningOperator:
    return view.runtime.running[OperatorId(name)]


def _waiting(view: Controlled, name: str) -> int:
    running = _running(view, name)
    return running.waiting(running.claimed, running.horizon)


def _set_partition(view: Controlled, name: str, value: str) -> None:
    by_hand = view.runtime.partitions.by_hand.get(OperatorId(name), "")
    if value.strip():
        view.execute(f"ALTER PARTITION {quoted(value.strip())} ADD OPERATOR {name}")
    elif by_hand:
        view.execute(f"ALTER PARTITION {quoted(by_hand)} DROP OPERATOR {name}")


OPERATOR = Kind(
    "operator",
    "a part of the plan that reads queues and writes one",
    _operators,
    (
        text("does", "what it does", lambda e, o: _running(e, o).operator.label()),
        text(
            "queries",
            "the queries it works for",
            lambda e, o: ", ".join(e.runtime.picture.queries(OperatorId(o))),
        ),
        knob(
            "partition",
            "text",
            "the partition it is in; writing one puts it there by hand, nothing takes it out again",
            lambda e, o: e.runtime.partitions.of.get(OperatorId(o), ""),
            _set_partition,
        ),
        text("reads", "its queues", lambda e, o: ", ".join(_running(e, o).inputs)),
        number("load", "how busy it is", _measured(lambda m: m.busy.per_second())),
        number(
            "rows_in_per_second",
            "rows read of late",
            _measured(lambda m: m.inputs.per_second()),
            "rows/s",
        ),
        number(
            "rows_out_per_second",
            "rows put out of late",
            _measured(lambda m: m.outputs.per_second()),
            "rows/s",
        ),
        integer("waiting_rows", "rows that wait for it", _waiting, "rows"),
        number("selectivity", "rows out for one in", _measured(lambda m: m.selectivity)),
        number("cost_seconds", "time for one more tuple", _measured(lambda m: m.cost_seconds), "s"),
        number(
            "step_seconds", "the fixed part of a step", _measured(lambda m: m.step_seconds), "s"
        ),
        integer("rows_in", "rows read so far", _measured(lambda m: m.tally.rows_in)),
        integer("rows_out", "rows put out so far", _measured(lambda m: m.tally.rows_out)),
        integer("driver_steps", "steps in the driver", _measured(lambda m: m.tally.driver_steps)),
        integer(
            "executor_steps",
            "steps on Spark's executors",
            _measured(lambda m: m.tally.executor_steps),
        ),
        number("seconds", "time spent so far", _measured(lambda m: m.tally.seconds), "s"),
        number(
            "output_row_bytes",
            "bytes of a row put out",
            _measured(lambda m: m.output_bytes),
            "bytes",
        ),
    ),
    activity="seconds",
)


# -- queues --------------------------------------------------------------------------------


def _queues(view: Controlled) -> list[str]:
    return list(view.ground.inputs.queues)


def _queue(view: Controlled, name: str) -> Queue:
    return view.ground.inputs.queues[QueueId(name)]


def _has_queue(view: Controlled, name: str) -> bool:
    """Whether tuples wait behind an operator before all its readers take them."""
    queue = QueueId(name)
    if not isinstance(queue, OperatorId) or queue not in view.graph.operators:
        return True
    unit = view.runtime.units.of.get(queue)
    readers = view.graph.readers(queue)
    return unit is None or not readers or any(r not in unit.identities for r in readers)


def _place_queue(view: Controlled, name: str, value: bool) -> None:
    if name not in view.graph.operators:
        raise StateError(f"{name}: behind an input there always is a queue")
    view.execute(f"ALTER PLAN {'' if value else 'NO '}QUEUE AFTER {name}")


def _readers(view: Controlled, name: str) -> str:
    return ", ".join(view.graph.readers(QueueId(name)))


def _backlog(part: str) -> Read:
    def read(view: Controlled, name: str) -> int:
        return int(getattr(view.runtime.backlog.of(QueueId(name)), part)) if view.has_runtime else 0

    return read


def _retained_bytes(view: Controlled, name: str) -> int:
    return max(0, _queue(view, name).bytes - int(_backlog("bytes")(view, name)))


def _behind_seconds(view: Controlled, name: str) -> float:
    """How long the oldest page has waited for the slowest reader that could work on it.

    What waits for time, as another input of the reader is not that far, is not behind.
    """
    if not view.has_runtime or not view.runtime.backlog.of(QueueId(name)).rows:
        return 0.0
    queue, running = _queue(view, name), view.runtime.running
    readers = [running[each] for each in view.graph.readers(queue.name) if each in running]
    claimed = [r.claimed for r in readers if queue.waiting(r.claimed, r.horizon)]
    oldest = queue.oldest_arrival(min(claimed)) if claimed else math.inf
    return max(0.0, time.monotonic() - oldest) if oldest < math.inf else 0.0


QUEUE = Kind(
    "queue",
    "pages between a producer and its readers",
    _queues,
    (
        knob(
            "present",
            "boolean",
            "whether a queue stands behind this operator; behind inputs there always is one",
            _has_queue,
            _place_queue,
        ),
        text("readers", "the operators that read it", _readers),
        integer("backlog_rows", "rows that wait", _backlog("rows"), "rows"),
        integer("backlog_bytes", "bytes that wait", _backlog("bytes"), "bytes"),
        number("behind_seconds", "for how long the oldest waits", _behind_seconds, "s"),
        number(
            "rate",
            "rows that come in a second, of late",
            lambda e, q: _queue(e, q).arrivals.per_second(),
            "rows/s",
        ),
        integer(
            "count", "rows that have passed", lambda e, q: int(_queue(e, q).course.total), "rows"
        ),
        integer("retained_bytes", "what windows still need", _retained_bytes, "bytes"),
        integer(
            "spilled_bytes",
            "what is on disk only",
            lambda e, q: _queue(e, q).spilled_bytes,
            "bytes",
        ),
    ),
    activity="count",
)


# -- synopses ------------------------------------------------------------------------------


def _synopses(view: Controlled) -> list[str]:
    states = [name for name in _operators(view) if _running(view, name).state is not None]
    return states + [name for name, said in _windows(view).items() if name == said.kept.lower()]


def _windows(view: Controlled) -> dict[str, Tolerance]:
    """The windows that may be shortened, by the names of what is kept."""
    kept = view.ground.inputs.kept.values()
    found = ((str(name), said) for names in kept for name, said in names.items())
    return {name: said for name, said in found if said.shortest_ticks is not None}


def _of(view: Controlled, name: str) -> str:
    said = _windows(view).get(name)
    if said is None:
        return _running(view, name).operator.label()
    return f"windows over {said.stream}, which may be shortened"


def _deltas(reference: Any) -> Iterator[tuple[int, int]]:
    """Rows and bytes of the files that a state's reference names."""
    match reference:
        case dict():
            for value in reference.values():
                yield from _deltas(value)
        case [str(), int(rows), int(bytes_), *_]:
            yield rows, bytes_
        case list() | tuple():
            for value in reference:
                yield from _deltas(value)


def _synopsis(place: int) -> Read:
    def read(view: Controlled, name: str) -> int:
        said = _windows(view).get(name)
        if said is not None:
            windows = view.ground.inputs.windows
            return windows.bytes(said) if place else windows.rows(said)
        state = _running(view, name).state
        return 0 if state is None else sum(each[place] for each in _deltas(state.present()))

    return read


def _change_memory(view: Controlled, name: str, value: int) -> None:
    """Has all queries over a window tolerate that it takes so many bytes."""
    if name not in _windows(view):
        raise StateError(f"memory: {name} is exact, so it is as it is")
    for entry in view.ground.catalog.of_kind(QueryEntry):
        if entry.tolerates is not None and entry.tolerates.kept.lower() == name:
            change_memory(view, entry.name, value)


SYNOPSIS = Kind(
    "synopsis",
    "what an operator remembers",
    _synopses,
    (
        text("of", "whose it is", _of),
        integer("rows", "rows of state", _synopsis(0), "rows"),
        knob(
            "memory",
            "integer",
            "bytes of state; written for a window that may be shortened, else it is as it is",
            _synopsis(1),
            _change_memory,
            unit="bytes",
        ),
    ),
    activity="memory",
)


# -- units and threads ---------------------------------------------------------------------


def _units(view: Controlled) -> list[str]:
    return [unit.identity for unit in view.runtime.units] if view.has_runtime else []


def _unit(view: Controlled, name: str) -> Unit:
    return view.runtime.units.of[OperatorId(name)]


UNIT = Kind(
    "unit",
    "operators without a queue between them: a virtual operator",
    _units,
    (
        text(
            "members",
            "its operators, upstream first",
            lambda e, u: ", ".join(m.identity for m in _unit(e, u).members),
        ),
        integer(
            "waiting_rows",
            "rows that wait for its members",
            lambda e, u: _unit(e, u).waiting(_unit(e, u).horizon),
            "rows",
        ),
        number(
            "load",
            "how busy it is",
            lambda e, u: sum(
                e.runtime.statistics[m.identity].busy.per_second() for m in _unit(e, u).members
            ),
        ),
    ),
    activity="load",
)


def _threads(view: Controlled) -> list[str]:
    if not view.has_runtime:
        return []
    return [f"thread{place}" for place in range(len(view.queries.partitioning.threads()))]


def _of_thread(read: Callable[[Thread], Any]) -> Read:
    """What the strategy in charge says of a thread, while there is one."""

    def read_thread(view: Controlled, name: str) -> Any:
        return read(view.queries.partitioning.threads()[_threads(view).index(name)])

    return read_thread


def _set_priority(view: Controlled, name: str, value: float) -> None:
    partition = _of_thread(lambda t: t.partition)(view, name)
    if not partition:
        raise StateError(
            f"{name} is of no partition: it has the time that the mode gives it; "
            "write CREATE PARTITION for what is to have more"
        )
    view.execute(f"ALTER PARTITION {quoted(partition)} PRIORITY {value!r}")


def _thread_load(view: Controlled, name: str) -> float:
    thread = view.queries.partitioning.threads()[_threads(view).index(name)]
    return sum(view.runtime.statistics[each].busy.per_second() for each in thread.operators)


THREAD = Kind(
    "thread",
    "operators that are scheduled together",
    _threads,
    (
        text("operators", "its operators", _of_thread(lambda t: ", ".join(t.operators))),
        text(
            "partition",
            "the partition that a user has made of them",
            _of_thread(lambda t: t.partition),
        ),
        text("strategy", "which of them is next", _of_thread(lambda t: t.strategy)),
        knob(
            "priority",
            "number",
            "its share of the processors; that of a partition can be set",
            _of_thread(lambda t: t.priority),
            _set_priority,
            above=0,
        ),
        text(
            "falls_behind",
            "why its strategy cannot keep up; empty if it can",
            _of_thread(lambda t: t.falls_behind),
        ),
        number("load", "how busy it is", _thread_load),
    ),
    activity="load",
)
