"""TOLERATE (FALSE NEGATIVES …): the plan of a query that puts out rows of what is kept of a stream.

Each row of its answer has one tuple of the stream, so it is there iff that is kept: no row is
wrong, and for each that is there 1 / rate are in the exact answer in the mean. That is its last
column. Of equal rows that count once one is there unless all are missed, so fewer are missing.
Subqueries, and the right sides of EXCEPT and INTERSECT, read all tuples. Where FROM has no stream
of which some could be dropped, those of value IN (SELECT … FROM stream) are: a row is there unless
all of its partners are missed.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from millpond.catalog import Catalog, StreamEntry, Tolerance
from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    Istream,
    Join,
    Project,
    RelationScan,
    Rstream,
    SetOperation,
)
from millpond.cql.check.kept_input import KeptInput, NoBoundError, kept_input
from millpond.cql.check.kept_sums import is_kept
from millpond.cql.check.told_apart import conjuncts, keys_of, subqueries_in
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    OuterColumn,
    children,
    with_children,
)
from millpond.cql.node import Node
from millpond.cql.outer_columns import outer_columns
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import Tolerating
from millpond.schema import Field, Type

STANDS_FOR = "stands_for"
"""The column that says for how many rows of the exact answer a row stands in the mean."""
_ROWS = (
    "FALSE NEGATIVES and POSITIVES are of rows, as SELECT [DISTINCT] columns FROM one stream [, "
    "what its tuples meet one row of at most] [WHERE …] [EXCEPT | INTERSECT what is not sampled]"
)
_ALL = (
    "of {operation} ALL how many copies of a row stay depends on how many there are of it, which a "
    "sample does not tell; write {operation}"
)
_LATER = (
    "{row} comes later, when it is no news in the exact answer; write RELATION before the query"
)
_NEWS = (
    "in a stream a row is no news if an equal one leaves as it comes, but it would be if that one "
    "was missed; write RELATION before the query, or put out {columns}"
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
    parts = _Rows.of(plan, said)
    found, partners = _sampled(parts.rows, said, catalog)
    if plan.is_stream and partners is not None:
        raise _refusal(_LATER.format(row="a row whose partner was missed"), said)
    if isinstance(plan, Istream | Dstream) and not _is_news(parts.rows, found, catalog):
        raise _refusal(_NEWS.format(columns=_telling(found, catalog)), said)
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
    sampled = parts.rows if partners is None else partners.rows
    rows = _weighed(sampled, found, tolerance.kept)
    made = parts.over(rows if partners is None else partners.joined(parts.rows, rows))
    wrapped = replace(plan, input=made) if isinstance(plan, Istream | Dstream | Rstream) else made
    return wrapped, tolerance


def _sampled(
    rows: Project, said: Tolerating, catalog: Catalog
) -> tuple[KeptInput, "_Partners | None"]:
    """What is sampled: what FROM has, or a subquery that has partners of it."""
    try:
        return kept_input(rows.input, catalog, of_rows=True), None
    except NoBoundError as no_bound:
        found = next(_partners(rows, catalog), None)
        if found is None:
            raise StatementError(f"TOLERATE: {no_bound}", said.offset) from None
        return found


@dataclass(frozen=True)
class _Partners:
    """A condition that a value is in a subquery, apart from all else that a query says."""

    value: Expression
    rows: Project
    """Those of the subquery."""
    others: Node
    """What FROM has, with the other conditions."""

    def joined(self, rows: Project, weighed: Project) -> Project:
        """The rows that have a partner, with the least weight of these behind them."""
        partners = _different(weighed)
        width = len(self.others.schema)
        key, weight = (
            Column(width + at, each.type, each.name)
            for at, each in enumerate(partners.schema.fields)
        )
        alike = Call("=", (self.value, key), Type.BOOLEAN)
        below = Join(self.others, partners, "inner", alike)
        return Project(below, (*rows.expressions, weight), (*rows.names, STANDS_FOR))


def _partners(rows: Project, catalog: Catalog) -> Iterator[tuple[KeptInput, _Partners]]:
    node, conditions = rows.input, list[Expression]()
    while isinstance(node, Filter):
        conditions += conjuncts(node.predicate)
        node = node.input
    for each in conditions:
        inner = _one_projection(each.subquery) if isinstance(each, InSubquery) else None
        if not isinstance(each, InSubquery) or inner is None or any(outer_columns(each)):
            continue
        others = node
        for other in conditions:
            others = others if other is each else Filter(others, other)
        with suppress(NoBoundError):
            found = kept_input(inner.input, catalog, of_rows=True)
            yield found, _Partners(each.value, inner, others)


def _one_projection(node: Node) -> Project | None:
    """A projection, also where another one, of casts, stands above it."""
    if not isinstance(node, Project) or not isinstance(node.input, Project):
        return node if isinstance(node, Project) else None
    below = node.input
    computed = tuple(_over(each, below.expressions) for each in node.expressions)
    return _one_projection(Project(below.input, computed, node.names))


def _over(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    """An expression over columns, over what these are computed of."""
    if isinstance(expression, Column):
        return columns[expression.position]
    return with_children(expression, tuple(_over(each, columns) for each in children(expression)))


@dataclass(frozen=True)
class _Rows:
    """A query of rows, taken apart: those of tuples of a stream, and what is done with them."""

    rows: Project
    operations: tuple[SetOperation, ...]
    """From the innermost on."""
    is_distinct: bool

    @staticmethod
    def of(plan: Node, said: Tolerating) -> "_Rows":
        """The parts; refused if it is not of rows, or if rows could be wrong."""
        operations = tuple(_operations(_unwrapped(plan)))[::-1]
        for each in operations:
            _refuse_operation(each, said)
        top = operations[0].left if operations else _unwrapped(plan)
        is_distinct = isinstance(top, Distinct) or bool(operations)
        rows = top.input if isinstance(top, Distinct) else top
        if not isinstance(rows, Project) or has_numbers(top):
            raise _refusal(f"{_ROWS}; for counts and sums write SAMPLE AT LEAST or ERROR", said)
        if is_distinct and plan.is_stream:
            word = operations[-1].label().upper() if operations else "DISTINCT"
            raise _refusal(_LATER.format(row=f"a row of {word} that was missed"), said)
        if said.shortest is not None:
            word = "WINDOW AT LEAST is of counts, sums and other numbers, which have bounds then"
            raise _refusal(f"{word}; of rows write FALSE NEGATIVES alone", said)
        if said.error:
            raise _refusal("ERROR is of numbers; of rows write FALSE NEGATIVES, and", said)
        if STANDS_FOR in map(str.lower, rows.names):
            raise _refusal(f'a column "{STANDS_FOR}" would be there twice; call it otherwise', said)
        return _Rows(rows, operations, is_distinct)

    def over(self, rows: Project) -> Node:
        """All that is done, with other rows, whose last column is their weight."""
        made: Node = _different(rows) if self.is_distinct else rows
        for each in self.operations:
            made = Filter(made, _is_left(each))
        return made


def _operations(node: Node) -> Iterator[SetOperation]:
    """The set operations above the leftmost rows, from the outermost on."""
    while isinstance(node, SetOperation):
        yield node
        node = node.left


def _refuse_operation(operation: SetOperation, said: Tolerating) -> None:
    word = operation.operation.upper()
    if operation.all:
        raise _refusal(_ALL.format(operation=word), said)
    if word == "UNION":
        raise _refusal(
            "of a UNION one side would be sampled and the other not; ask in a query each", said
        )


def _is_left(operation: SetOperation) -> Expression:
    """Whether a row stays: whether the right side has one like it."""
    fields = operation.right.schema.fields
    pairs = (
        (Column(at, each.type, each.name), OuterColumn(at, each.type, each.name))
        for at, each in enumerate(fields)
    )
    same = tuple(Call("is_not_distinct", pair, Type.BOOLEAN) for pair in pairs)
    alike = same[0] if len(same) == 1 else Call("and", same, Type.BOOLEAN)
    exists = Exists(Filter(operation.right, alike))
    is_except = operation.operation == "except"
    return Call("not", (exists,), Type.BOOLEAN) if is_except else exists


def _weighed(rows: Project, found: KeptInput, kept: str) -> Project:
    """The rows of what is kept, with their weights behind them. Columns are where they have been
    before what they are computed of is looked at: subqueries name them by their places."""
    own = Filter(found.over(kept), is_kept(found.own.stop))
    fields = [field for side in found.sides for field in side.node.schema.fields]
    columns = (Column(at, each.type, each.name) for at, each in enumerate(fields))
    weight = Column(found.own.stop + 1, Type.DOUBLE, "weight")
    names = (*(f"c{at}" for at in range(len(fields))), "weight")
    below: Node = Project(own, (*map(found.moved, columns), weight), names)
    for each in found.conditions:
        below = Filter(below, each)
    last = Column(len(fields), Type.DOUBLE, "weight")
    return Project(below, (*rows.expressions, last), (*rows.names, STANDS_FOR))


def _different(rows: Project) -> Node:
    """Different rows, each with the least weight of its copies: it was at least as likely to be
    there as the likeliest of them."""
    *fields, last = rows.schema.fields
    keys = tuple(Column(at, each.type, each.name) for at, each in enumerate(fields))
    least = AggregateCall("min", Column(len(keys), last.type, last.name), last.type)
    return Aggregate(rows, keys, (least,), rows.names)


# -- streams -------------------------------------------------------------------------------------


def _is_news(rows: Project, found: KeptInput, catalog: Catalog) -> bool:
    """Whether no row comes as an equal one leaves that another tuple has."""
    places = {each.position for each in rows.expressions if isinstance(each, Column)}
    shown = {place - found.own.start for place in places.intersection(found.own)}
    if any(key <= shown for key in keys_of(found.scan, catalog)):
        return True
    others = (each.node for each in found.sides if each is not found.sampled)
    stays = all(isinstance(each, RelationScan) and each.is_static for each in others)
    if not stays or any(map(subqueries_in, (*found.conditions, *rows.expressions))):
        return False
    return getattr(found.window, "length_ticks", 0) is None or _time(found, catalog) in shown


def _time(found: KeptInput, catalog: Catalog) -> int | None:
    """The column of the stream that has its time: tuples of one time come and leave together."""
    entry = catalog.get(found.scan.name)
    return entry.timestamp_column if isinstance(entry, StreamEntry) else None


def _telling(found: KeptInput, catalog: Catalog) -> str:
    """Which columns would tell tuples apart."""
    fields: tuple[Field, ...] = found.scan.schema.fields
    time = _time(found, catalog)
    is_alone = len(found.sides) == 1 and not any(map(subqueries_in, found.conditions))
    unique = f"columns that are UNIQUE in {found.scan.name}"
    return f"{fields[time].name} or {unique}" if time is not None and is_alone else unique


def _refusal(reason: str, said: Tolerating) -> StatementError:
    return StatementError(f"TOLERATE: {reason}; or leave TOLERATE out", said.offset)
