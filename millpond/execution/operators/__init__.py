"""Running operators: each turns what its fragments read in a step into a page of output."""

from millpond.execution.operators.join import RunningJoin
from millpond.execution.operators.keyed import (
    RunningAggregate,
    RunningCount,
    RunningOver,
    RunningRank,
    RunningRowPattern,
    RunningRowsWindow,
    RunningSessions,
)
from millpond.execution.operators.linear import RunningLinear
from millpond.execution.operators.match import RunningMatch
from millpond.execution.operators.running import RunningOperator
from millpond.execution.operators.snapshots import RunningSnapshots
from millpond.execution.operators.streams import (
    RunningArrivals,
    RunningDifference,
    RunningMoments,
    RunningOutput,
    RunningTotals,
)
from millpond.execution.operators.time_filter import RunningTimeFilter
from millpond.execution.surroundings import Surroundings
from millpond.identities import OperatorId
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
    OverOperator,
    RankOperator,
    RowPatternOperator,
    RowsWindowOperator,
    SessionOperator,
    SnapshotsOperator,
    TimeFilterOperator,
    TotalsOperator,
)

_RUNNING: dict[type[Operator], type[RunningOperator]] = {
    LinearOperator: RunningLinear,
    TimeFilterOperator: RunningTimeFilter,
    MatchOperator: RunningMatch,
    AggregateOperator: RunningAggregate,
    CountOperator: RunningCount,
    RowPatternOperator: RunningRowPattern,
    RowsWindowOperator: RunningRowsWindow,
    SessionOperator: RunningSessions,
    RankOperator: RunningRank,
    OverOperator: RunningOver,
    JoinOperator: RunningJoin,
    DifferenceOperator: RunningDifference,
    ArrivalsOperator: RunningArrivals,
    MomentsOperator: RunningMoments,
    TotalsOperator: RunningTotals,
    SnapshotsOperator: RunningSnapshots,
    OutputOperator: RunningOutput,
}


def start(
    identity: OperatorId, operator: Operator, around: Surroundings, cursor: int
) -> RunningOperator:
    """A running instance of a physical operator."""
    return _RUNNING[type(operator)](identity, operator, around, cursor)
