"""Running operators: each turns what its fragments read in a step into a page of output."""

from __future__ import annotations

from millpond.planning.physical import (
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    MomentsOperator,
    Operator,
    OutputOperator,
    RowsWindowOperator,
    SnapshotsOperator,
    TotalsOperator,
)
from millpond.spark.operators.join import RunningJoin
from millpond.spark.operators.keyed import RunningAggregate, RunningCount, RunningRowsWindow
from millpond.spark.operators.linear import RunningLinear
from millpond.spark.operators.match import RunningMatch
from millpond.spark.operators.running import RunningOperator
from millpond.spark.operators.snapshots import RunningSnapshots
from millpond.spark.operators.streams import (
    RunningArrivals,
    RunningDifference,
    RunningMoments,
    RunningOutput,
    RunningTotals,
)
from millpond.spark.surroundings import Surroundings

_RUNNING: dict[type[Operator], type[RunningOperator]] = {
    LinearOperator: RunningLinear,
    MatchOperator: RunningMatch,
    AggregateOperator: RunningAggregate,
    CountOperator: RunningCount,
    RowsWindowOperator: RunningRowsWindow,
    JoinOperator: RunningJoin,
    DifferenceOperator: RunningDifference,
    ArrivalsOperator: RunningArrivals,
    MomentsOperator: RunningMoments,
    TotalsOperator: RunningTotals,
    SnapshotsOperator: RunningSnapshots,
    OutputOperator: RunningOutput,
}


def start(identity: str, operator: Operator, around: Surroundings, cursor: int) -> RunningOperator:
    """A running instance of a physical operator."""
    return _RUNNING[type(operator)](identity, operator, around, cursor)
