"""Whether a query with a shorter window or a smaller sample has only rows that it has without.

Two plans of one query are walked side by side, from the reduced window or sample up. Below that
nothing differs. Above it rows are missing, and what may be is a matter of the operators: a join of
fewer rows has fewer, a difference may have more. Of an aggregate, which is another number over
fewer rows, it is known at most whether it can only be less, or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millpond.catalog import Catalog
from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    HopWindow,
    Istream,
    Join,
    Over,
    Project,
    RangeWindow,
    Rank,
    RelationScan,
    RowsWindow,
    Rstream,
    Sample,
    SessionWindow,
    SetOperation,
    WithTime,
)
from millpond.cql.check.taking_back import lasts
from millpond.cql.check.told_apart import (
    conjuncts,
    fixed_columns,
    keys_of,
    of_sides,
    own_subqueries,
    subqueries_in,
)
from millpond.cql.expressions import (
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Quantified,
    ScalarSubquery,
    walk,
)
from millpond.cql.node import Node
from millpond.cql.text.syntax import Reduction

FALLS, GROWS, EITHER = -1, 1, 0
"""What becomes of a number when rows are missing."""


class RefusedError(Exception):
    """Why a reduction is wrong where it is."""


@dataclass(frozen=True)
class Fewer:
    """What is known of a relation or stream in which rows are missing."""

    values: Mapping[int, int]
    """The columns whose values are others, and what becomes of them."""
    is_sample: bool = False
    """Whether rows, also those of a stream that they make, are missing by one draw for each, which
    depends on nothing."""


class Reducing:
    """Follows one reduction through the plan of a query."""

    def __init__(self, reduction: Reduction, catalog: Catalog) -> None:
        self._catalog = catalog
        self._samples = reduction.kind == "SAMPLE"
        self._is_pushed = reduction.target is not None
        self._less = "a smaller sample" if self._samples else "a shorter window"

    def refusal(self, before: Node, after: Node) -> str:
        """Why the second plan is no reduction of the first; nothing if it is one."""
        try:
            if self._fewer(before, after, ()) is None:
                return "that is what the query says already; leave this out"
        except RefusedError as refused:
            return str(refused)
        return ""

    def _fewer(self, before: Node, after: Node, equal: tuple[Expression, ...]) -> Fewer | None:
        """What of a part of the plan is fewer; None if nothing is. ``equal`` are conditions that
        its rows have to fulfil above."""
        if before == after:
            return None
        found = self._reduced_here(before, after)
        if found is not None:
            return found
        if type(before) is not type(after):
            raise RefusedError(_ANOTHER)
        match before, after:
            case (Filter(), Filter()):
                return self._filtered(before, after, equal)
            case (Project(), Project()):
                return self._projected(before, after)
            case (Aggregate(), Aggregate()):
                return self._aggregated(before, after)
            case (Join(), Join()):
                return self._joined(before, after, equal)
            case (SetOperation(), SetOperation()):
                return self._combined(before, after)
            case (Distinct(), Distinct()):
                raise RefusedError(self._of_duplicates("DISTINCT"))
        return self._of_one_input(before, after)

    # -- where something is reduced ----------------------------------------------------------

    def _reduced_here(self, before: Node, after: Node) -> Fewer | None:
        match before, after:
            case (Sample(), Sample()) if before.input == after.input:
                if after.percent > before.percent:
                    raise RefusedError(
                        f"it is a sample of {before.percent:g} PERCENT already; say less, or leave "
                        "this out"
                    )
                return Fewer({}, True)
            case (_, Sample()) if before == after.input:
                return Fewer({}, True)
            case (Sample(), _) if self._is_pushed:
                return self._pushed(before.input, after)
            case (RangeWindow() | RowsWindow(), RangeWindow() | RowsWindow()):
                return self._shorter(before, after) if before.input == after.input else None
        return None

    def _pushed(self, before: Node, after: Node) -> Fewer:
        """A sample that is taken below is one of what was sampled before, if each row of that
        stems from one tuple of the stream, and no two from the same."""
        found = self._fewer(before, after, ())
        if found is None or not found.is_sample or found.values:
            raise RefusedError(
                "a sample of what the subquery computes is not what it computes of a sample, "
                "unless each of its rows stems from one tuple, and each tuple makes one row; leave "
                "this out"
            )
        return found

    def _shorter(
        self, before: RangeWindow | RowsWindow, after: RangeWindow | RowsWindow
    ) -> Fewer | None:
        known = self._length(before), self._length(after)
        if isinstance(before, RangeWindow) and before.length_ticks is None:
            return Fewer({})
        if type(before) is not type(after):
            raise RefusedError(_ANOTHER)
        if known[1] > known[0]:
            raise RefusedError(
                f"{after.label()} is no shorter than {before.label()}; leave this out"
            )
        return None if known[0] == known[1] else Fewer({})

    def _length(self, window: RangeWindow | RowsWindow) -> float:
        length = window.length_ticks if isinstance(window, RangeWindow) else window.rows
        return length if isinstance(length, int) else float("inf")

    # -- what follows above ------------------------------------------------------------------

    def _of_one_input(self, before: Node, after: Node) -> Fewer | None:
        if len(before.inputs) != 1 or before.with_inputs(after.inputs) != after:
            raise RefusedError(_ANOTHER)
        below = self._fewer(before.inputs[0], after.inputs[0], ())
        if below is None:
            return None
        match before:
            case RowsWindow():
                raise RefusedError(
                    f"the last {before.rows} of fewer tuples reach further back, so that rows "
                    "would be there that the query does not have; have the window shorter instead"
                )
            case SessionWindow():
                raise RefusedError(
                    "sessions would come apart where tuples are missing; leave this out"
                )
            case Rank():
                return self._ranked(before, below)
            case Over():
                self._refuse_values(below, (*before.partition, *(k.column for k in before.order)))
                return Fewer({**below.values, len(before.input.schema): EITHER}, below.is_sample)
            case Rstream():
                return Fewer(below.values)
            case RangeWindow() | HopWindow() | WithTime() | Istream() | Dstream() | Sample():
                return below
        raise RefusedError(_ANOTHER)

    def _ranked(self, node: Rank, below: Fewer) -> Fewer:
        self._refuse_values(below, (*node.partition, *(key.column for key in node.order)))
        if node.limit is not None:
            raise RefusedError(_OF_RANKS)
        return Fewer({**below.values, len(node.input.schema): FALLS}, below.is_sample)

    def _projected(self, before: Project, after: Project) -> Fewer:
        below = self._fewer(before.input, after.input, ()) or Fewer({})
        values = {}
        for place, (old, new) in enumerate(zip(before.expressions, after.expressions, strict=True)):
            self._look_into(old, new)
            if isinstance(old, Column) and old.position in below.values:
                values[place] = below.values[old.position]
            elif old != new or self._reads(old, below):
                values[place] = EITHER
        hassubqueries_in = any(map(subqueries_in, before.expressions))
        return Fewer(values, below.is_sample and not hassubqueries_in)

    def _aggregated(self, before: Aggregate, after: Aggregate) -> Fewer | None:
        below = self._fewer(before.input, after.input, ())
        if below is None:
            raise RefusedError(_ANOTHER)
        self._refuse_values(below, before.keys)
        if not before.aggregates:
            raise RefusedError(self._of_duplicates("GROUP BY without an aggregate"))
        trends = {"count": FALLS, "max": FALLS, "min": GROWS}
        values = {
            len(before.keys) + place: EITHER
            if call.definition or any(self._reads(each, below) for each in call.arguments)
            else trends.get(call.function, EITHER)
            for place, call in enumerate(before.aggregates)
        }
        return Fewer(values)

    def _joined(self, before: Join, after: Join, equal: tuple[Expression, ...]) -> Fewer | None:
        if before.condition != after.condition or before.kind != after.kind:
            raise RefusedError(_ANOTHER)
        conditions = (*equal, *conjuncts(before.condition))
        width = len(before.left.schema)
        is_inner = before.kind in ("inner", "semi")  # else rows stay that do not fulfil it
        left_equal, right_equal = of_sides(conditions if is_inner else equal, width)
        left = self._fewer(before.left, after.left, left_equal)
        right = self._fewer(before.right, after.right, right_equal)
        self._refuse_want(before, left, right)
        values = dict(left.values) if left else {}
        if right is not None and before.kind not in ("semi", "anti"):
            values |= {width + place: trend for place, trend in right.values.items()}
        for each in conjuncts(before.condition):
            self._refuse_condition(each, Fewer(values))
        if self._samples:
            self._refuse_bias(before, left, right, conditions)
        sampled, other = (left, before.right) if right is None else (right, before.left)
        reduced = before.left if right is None else before.right
        is_once = _is_fixed(other) or not lasts(reduced)
        return Fewer(values, sampled is not None and sampled.is_sample and is_once)

    def _refuse_want(self, join: Join, left: Fewer | None, right: Fewer | None) -> None:
        """Refuses where rows come for want of a partner."""
        word = "an anti join" if join.kind == "anti" else f"a {join.kind} join"
        alone = {"left": (right,), "anti": (right,), "right": (left,), "full": (left, right)}
        if any(side is not None for side in alone.get(join.kind, ())):
            raise RefusedError(self._of_negation(f"{word} that keeps rows without a partner"))

    def _refuse_bias(
        self,
        join: Join,
        left: Fewer | None,
        right: Fewer | None,
        conditions: tuple[Expression, ...],
    ) -> None:
        """Refuses a sample of a side whose rows can meet more than one of the other."""
        if left is not None and right is not None:
            raise RefusedError(
                "both sides of the join would be samples, of which few pairs are left; name a part "
                "of the query and sample that"
            )
        if right is not None and join.kind == "semi":
            raise RefusedError(_BIASED)
        if join.kind in ("semi", "anti"):
            return
        width = len(join.left.schema)
        other, first = (join.right, width) if right is None else (join.left, 0)
        fixed = {
            place - first for place in fixed_columns(conditions, first, first + len(other.schema))
        }
        if not any(key <= fixed for key in keys_of(other, self._catalog)):
            raise RefusedError(_BIASED)

    def _combined(self, before: SetOperation, after: SetOperation) -> Fewer | None:
        if (before.operation, before.all) != (after.operation, after.all):
            raise RefusedError(_ANOTHER)
        left = self._fewer(before.left, after.left, ())
        right = self._fewer(before.right, after.right, ())
        if before.operation == "except" and right is not None:
            raise RefusedError(self._of_negation("the right side of EXCEPT"))
        if not before.all:
            raise RefusedError(self._of_duplicates(before.operation.upper()))
        sides = [each for each in (left, right) if each is not None]
        values = {place: EITHER for each in sides for place in each.values}
        if before.operation != "union" and values:
            raise RefusedError(_COMPARED)
        if before.operation != "union" and self._samples:
            raise RefusedError(_BIASED)
        return Fewer(values)

    # -- conditions --------------------------------------------------------------------------

    def _filtered(
        self, before: Filter, after: Filter, equal: tuple[Expression, ...]
    ) -> Fewer | None:
        old, new = conjuncts(before.predicate), conjuncts(after.predicate)
        below = self._fewer(before.input, after.input, (*equal, *old))
        if len(old) != len(new):
            raise RefusedError(_ANOTHER)
        for mine, other in zip(old, new, strict=True):
            self._compare(mine, other, below or Fewer({}), True)
        is_once = not any(map(subqueries_in, old)) or not lasts(before.input)
        found = below or Fewer({})
        return Fewer(found.values, found.is_sample and is_once)

    def _compare(self, old: Expression, new: Expression, below: Fewer, is_positive: bool) -> None:
        """Refuses a condition that can come to hold because rows are missing."""
        match old, new:
            case (Call(function="not"), Call(function="not")):
                return self._compare(old.arguments[0], new.arguments[0], below, not is_positive)
            case (Call(function="and" | "or"), Call()) if len(old.arguments) == len(new.arguments):
                for mine, other in zip(old.arguments, new.arguments, strict=True):
                    self._compare(mine, other, below, is_positive)
                return None
        if old == new:
            return self._refuse_condition(old, below, is_positive)
        match old, new:
            case (Exists() | InSubquery(), Exists() | InSubquery()) if type(old) is type(new):
                word = "EXISTS" if isinstance(old, Exists) else "IN"
                self._refuse_subquery(old, new, f"NOT {word}" if not is_positive else "")
            case (Quantified(), Quantified()):
                is_all = (old.quantifier == "all") == is_positive
                word = "ALL" if is_positive else "NOT … ANY"
                self._refuse_subquery(old, new, word if is_all else "")
            case _:
                self._look_into(old, new)
                raise RefusedError(_COMPARED)
        if below.values:
            raise RefusedError(_COMPARED)
        return None

    def _refuse_subquery(
        self,
        old: Exists | InSubquery | Quantified,
        new: Exists | InSubquery | Quantified,
        negation: str,
    ) -> None:
        found = self._fewer(old.subquery, new.subquery, ())
        if found is None:
            raise RefusedError(_ANOTHER)
        if negation:
            raise RefusedError(self._of_negation(f"the right side of {negation}"))
        if not isinstance(old, Exists) and found.values:
            raise RefusedError(_COMPARED)
        if self._samples:
            raise RefusedError(_BIASED)

    def _refuse_condition(
        self, condition: Expression, below: Fewer, is_positive: bool = True
    ) -> None:
        """Refuses one of values that are others, unless it can only cease to hold."""
        if not self._reads(condition, below):
            return
        ceases = {FALLS: (">", ">="), GROWS: ("<", "<=")}
        match condition:
            case Call(arguments=(Column() as value, Literal())) if is_positive:
                if condition.function in ceases.get(below.values.get(value.position, EITHER), ()):
                    return
            case Call(arguments=(Literal(), Column() as value)) if is_positive:
                turned = -below.values.get(value.position, EITHER)
                if condition.function in ceases.get(turned, ()):
                    return
        raise RefusedError(_COMPARED)

    def _refuse_values(self, below: Fewer, read: tuple[Expression, ...]) -> None:
        if any(self._reads(each, below) for each in read):
            raise RefusedError(_COMPARED)

    def _reads(self, expression: Expression, below: Fewer) -> bool:
        """Whether an expression depends on values that are others; a subquery may."""
        if not below.values:
            return False
        return any(
            (isinstance(each, Column) and each.position in below.values)
            or isinstance(each, Exists | InSubquery | Quantified | ScalarSubquery)
            for each in walk(expression)
        )

    def _look_into(self, old: Expression, new: Expression) -> None:
        """Refuses what is refused inside of subqueries that are values."""
        for mine, other in zip(walk(old), walk(new), strict=True):
            for a, b in zip(own_subqueries(mine), own_subqueries(other), strict=True):
                self._fewer(a, b, ())

    # -- words -------------------------------------------------------------------------------

    def _of_duplicates(self, word: str) -> str:
        return (
            f"under {word} {self._less} has rows leave and come again, so that there is more "
            "output and not less; leave this out"
        )

    def _of_negation(self, word: str) -> str:
        return (
            f"with {self._less} in {word} rows would come that the query does not have; leave "
            "this out"
        )


_ANOTHER = "it would be another query, not this one of fewer rows; leave this out"
_COMPARED = (
    "a value that is computed of fewer rows is compared, so that rows could come that the query "
    "does not have; leave this out"
)
_OF_RANKS = (
    "rows would come up in the ranking that others stood before, which the query does not have; "
    "leave this out"
)
_BIASED = (
    "a tuple can meet several in a join, which are all there or all missing: that is no sample of "
    "the pairs; it is one where the other side is told apart by what is joined (a PRIMARY KEY, "
    "UNIQUE, GROUP BY), or SAMPLE a stream that is made of the join: FROM (SELECT ISTREAM …) T "
    "SAMPLE(n)"
)


def _is_fixed(node: Node) -> bool:
    """Whether a relation never changes, so that a row which meets one of it does so once."""
    return all(isinstance(each, RelationScan) and each.is_static for each in _sources(node))


def _sources(node: Node) -> list[Node]:
    return [each for each in node.walk_into_subqueries() if not each.inputs]
