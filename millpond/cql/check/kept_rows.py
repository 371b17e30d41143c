"""TOLERATE (FALSE NEGATIVES …): the plan of a query that puts out rows of what is kept of a stream.

Each row of its answer has one tuple of the stream, so it is there iff that is kept: no row is
wrong, and for each that is there 1 / rate are in the exact answer in the mean. That is its last
column. Of equal rows that count once one is there unless all are missed, so fewer are missing.
"""

from dataclasses import replace

from millpond.catalog import Catalog, Tolerance
from millpond.cql.algebra import Aggregate, Distinct, Dstream, Filter, Istream, Project, Rstream
from millpond.cql.check.kept_input import NoBoundError, kept_input
from millpond.cql.check.kept_sums import is_kept
from millpond.cql.expressions import AggregateCall, Column
from millpond.cql.node import Node
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import Tolerating
from millpond.schema import Type

STANDS_FOR = "stands_for"
"""The column that says for how many rows of the exact answer a row stands in the mean."""
_ROWS = (
    "FALSE NEGATIVES and POSITIVES are of rows, as SELECT [DISTINCT] columns FROM one stream [, "
    "what its tuples meet one row of at most] [WHERE …]"
)


def has_numbers(plan: Node) -> bool:
    """Whether the answers of a query are numbers: aggregates."""
    top = _unwrapped(plan)
    below = top.input if isinstance(top, Project) else top
    return isinstance(below.input if isinstance(below, Filter) else below, Aggregate)


def _unwrapped(plan: Node) -> Node:
    return plan.input if isinstance(plan, Istream | Dstream | Rstream) else plan


def tolerant_rows(plan: Node, said: Tolerating, catalog: Catalog) -> tuple[Node, Tolerance]:
    """The plan over what is kept, and what the query tolerates."""
    top = _unwrapped(plan)
    rows = top.input if isinstance(top, Distinct) else top
    if not isinstance(rows, Project) or has_numbers(plan):
        raise _refusal(f"{_ROWS}; for counts and sums write SAMPLE AT LEAST or ERROR", said)
    if isinstance(top, Distinct) and plan.is_stream:
        raise _refusal(
            "a row of a DISTINCT that was missed comes later, when it is no news in the exact "
            "answer; write RELATION before the query",
            said,
        )
    if said.error:
        raise _refusal("ERROR is of numbers; of rows write FALSE NEGATIVES, and", said)
    if STANDS_FOR in map(str.lower, rows.names):
        raise _refusal(f'a column "{STANDS_FOR}" would be there twice; call it otherwise', said)
    try:
        found = kept_input(rows.input, catalog)
    except NoBoundError as no_bound:
        raise StatementError(f"TOLERATE: {no_bound}", said.offset) from None
    shed_by = found.shed_by(said.shed_by)
    tolerance = Tolerance(
        said.least_percent,
        said.confidence_percent,
        found.scan.name,
        ranged=shed_by,
        grain_ticks=found.grain(isinstance(plan, Rstream)),
        false_negatives=said.false_negatives,
        false_positives=said.false_positives,
        shed_by=shed_by,
        shed_name=said.shed_by.text if said.shed_by else "",
    )
    below: Node = Filter(found.over(tolerance.kept), is_kept(found.own.stop))
    for each in found.conditions:
        below = Filter(below, found.moved(each))
    weight = Column(found.own.stop + 1, Type.DOUBLE, "weight")
    every = Project(below, (*map(found.moved, rows.expressions), weight), (*rows.names, STANDS_FOR))
    made = _different(every) if isinstance(top, Distinct) else every
    wrapped = replace(plan, input=made) if isinstance(plan, Istream | Dstream | Rstream) else made
    return wrapped, tolerance


def _different(rows: Project) -> Node:
    """Different rows, each with the least weight of its copies: it was at least as likely to be
    there as the likeliest of them."""
    *fields, last = rows.schema.fields
    keys = tuple(Column(at, each.type, each.name) for at, each in enumerate(fields))
    least = AggregateCall("min", Column(len(keys), last.type, last.name), last.type)
    return Aggregate(rows, keys, (least,), rows.names)


def _refusal(reason: str, said: Tolerating) -> StatementError:
    return StatementError(f"TOLERATE: {reason}; or leave TOLERATE out", said.offset)
