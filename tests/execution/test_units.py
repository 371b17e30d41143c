"""Units change as far as nobody concerned is at work, and never read each other in a circle."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from millpond.execution.operators.running import RunningOperator
from millpond.execution.units import Unit, Units
from millpond.identities import OperatorId, QueueId


@dataclass(eq=False)
class Member:
    """What units look at of an operator: its name, and the queues it reads."""

    name: str
    reads: tuple[str, ...] = ()
    identity: OperatorId = field(init=False)
    subscriptions: list[tuple[Any, None]] = field(init=False)

    def __post_init__(self) -> None:
        self.identity = OperatorId(self.name)
        self.subscriptions = [(SimpleNamespace(name=QueueId(name)), None) for name in self.reads]


def started(*members: Member) -> tuple[Units, dict[OperatorId, RunningOperator]]:
    units = Units({})
    running = {each.identity: cast("RunningOperator", each) for each in members}
    for each in running.values():
        units.add(each)
    return units, running


def shown(units: Units) -> list[list[str]]:
    return sorted(sorted(unit.identities) for unit in units)


def test_units_that_would_read_in_a_circle_wait_for_those_at_work() -> None:
    some = Member("op1", ("stream:s",)), Member("op2", ("op6",))
    units, running = started(*some, Member("op5", ("op1",)), Member("op6", ("stream:s",)))

    def want(*groups: tuple[str, ...]) -> None:
        units.want(tuple(running[each] for each in group) for group in groups)

    want(("op5", "op6"))
    assert units.change(lambda unit: False)
    at_work = units.of["op5"]
    want(("op1", "op2"), ("op5",), ("op6",))
    assert not units.change(lambda unit: unit is at_work)
    assert shown(units) == [["op1"], ["op2"], ["op5", "op6"]]
    assert all(map(units.is_held, units))  # nobody begins anything, so that it is soon over
    assert units.change(lambda unit: False)
    assert shown(units) == [["op1", "op2"], ["op5"], ["op6"]]


def test_those_that_are_no_circle_need_not_wait() -> None:
    units, running = started(*(Member(f"op{i}", ("stream:s",)) for i in range(6)))
    pairs = [("op0", "op1"), ("op2", "op3"), ("op4", "op5")]
    units.want(tuple(running[each] for each in pair) for pair in pairs)
    busy: set[Unit] = {units.of["op2"]}
    assert units.change(busy.__contains__)
    assert shown(units) == [["op0", "op1"], ["op2"], ["op3"], ["op4", "op5"]]
    assert units.change(lambda unit: False)
    assert shown(units) == [["op0", "op1"], ["op2", "op3"], ["op4", "op5"]]


def test_who_is_above_a_unit_could_read_it_in_a_circle_only() -> None:
    some = Member("op1", ("stream:s",)), Member("op2", ("op3",)), Member("op3", ("op4",))
    units, running = started(*some, Member("op4", ("stream:s",)), Member("op5", ("op1",)))
    assert not units.are_above([running["op3"]], running["op1"])
    units.want([(running["op1"], running["op2"])])
    assert units.change(lambda unit: False)
    assert units.are_above([running["op3"]], running["op1"])  # for op2 reads it
    assert units.are_above([running["op5"], running["op4"]], running["op1"])
    assert not units.are_above([running["op5"], running["op2"]], running["op1"])
