"""The sums from which answers over what a drop point keeps are made, each computed once.

w is the weight of a tuple, 1 / rate; where w > 1 it could have been dropped. A row of dropped ones
says for how many it stands. docs/precision.md ("Rows of several rates") has the formulas.
"""

from dataclasses import replace

from millpond.approximation.intervals.cut import CUT
from millpond.cql.coercion import cast
from millpond.cql.expressions import AggregateCall, Call, Column, Expression, Literal
from millpond.errors import MillpondError
from millpond.schema import Type

_ONE = Literal(1, Type.BIGINT)
_NONE = Literal(0, Type.BIGINT)
SIDES = ("estimate", "low", "high", "certain_low", "certain_high")


def when(*tests: Expression | None, value: Expression) -> Expression:
    """A value where all tests hold, each looked at only if those before it do; else NULL."""
    for test in reversed(tests):
        if test is not None:
            value = Call("case", (test, value), value.type)
    return value


def _compare(function: str, left: Expression, right: Expression) -> Call:
    return Call(function, (left, right), Type.BOOLEAN)


def is_kept(dropped: int) -> Expression:
    """Whether a row of a kept stream is a tuple of the stream, by the place of its column."""
    return _compare("=", Column(dropped, Type.BIGINT, "dropped"), _NONE)


def is_of_different(call: AggregateCall) -> bool:
    """Whether an aggregate counts different values."""
    return call.function == "approx_count_distinct" or (call.function == "count" and call.distinct)


class Bounded:
    """An answer and its bounds, over the sums: exact while nothing was dropped."""

    def __init__(
        self,
        exact: Expression,
        dropped: Expression,
        kind: str,
        risk: float,
        sums: tuple[Expression, ...],
    ) -> None:
        self._exact, self._dropped, self._kind = exact, dropped, kind
        self._risk, self._sums = risk, sums

    def after(self, keys: int) -> tuple[Expression, ...]:
        """The five columns, over sums that stand behind so many keys."""
        return tuple(_shifted(self._side(side), keys) for side in SIDES)

    def _side(self, side: str) -> Expression:
        is_sampled = _compare(">", self._dropped, _NONE)
        return Call("case", (is_sampled, self._bound(side), self._exact), self._exact.type)

    def _bound(self, side: str) -> Expression:
        said = Literal(self._kind, Type.STRING), Literal(side, Type.STRING)
        risk = Literal(self._risk, Type.DOUBLE)
        return Call("bound", (*said, risk, *self._sums), self._exact.type)


class Ranked(Bounded):
    """A percentile and its bounds, over landmarks, which have the exact one too."""

    def __init__(self, kind: str, risk: float, sums: tuple[Expression, ...]) -> None:
        super().__init__(Literal(0.0, Type.DOUBLE), _NONE, kind, risk, sums)

    def _side(self, side: str) -> Expression:
        return self._bound(side)


class Plain(Bounded):
    """An answer whose bounds are expressions."""

    def __init__(self, *sides: Expression) -> None:
        self._sides = sides

    def after(self, keys: int) -> tuple[Expression, ...]:
        """The five columns, over sums that stand behind so many keys."""
        return tuple(_shifted(side, keys) for side in self._sides)


def _shifted(expression: Expression, by: int) -> Expression:
    if isinstance(expression, Column):
        return replace(expression, position=expression.position + by)
    if isinstance(expression, Call):
        arguments = tuple(_shifted(each, by) for each in expression.arguments)
        return replace(expression, arguments=arguments)
    return expression


class KeptSums:
    """The sums of a query; ``dropped``: where the column of a kept stream stands that says for how
    many a row stands; ``passes``: whether a kept tuple passes WHERE, if there is one."""

    def __init__(
        self, dropped: int, passes: Expression | None, risk: float, is_cut: bool = False
    ) -> None:
        """``is_cut``: windows may be shortened, so that nothing is known by chance."""
        self._is_cut = is_cut
        self._calls: dict[AggregateCall, None] = {}
        self._dropped = Column(dropped, Type.BIGINT, "dropped")
        self._weight = Column(dropped + 1, Type.DOUBLE, "weight")
        self._is_kept = is_kept(dropped)
        self._is_drawn = _compare(">", self._weight, Literal(1.0, Type.DOUBLE))
        self._passes, self._risk = passes, risk

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregates."""
        return tuple(self._calls)

    def is_there(self, keys: int) -> Expression:
        """Whether a group has a row, or may have one."""
        tests = (_compare(">", each, _NONE) for each in (self._hits(_ONE), self._rest))
        return _shifted(Call("or", tuple(tests), Type.BOOLEAN), keys)

    def has_hit(self, value: Expression | None, keys: int) -> Expression:
        """Whether a kept tuple passes WHERE, and has a value that is not NULL."""
        return _shifted(_compare(">", self._hits(_ONE if value is None else value), _NONE), keys)

    @property
    def has_filter(self) -> bool:
        """Whether it is not known of dropped tuples if they pass WHERE."""
        return self._passes is not None

    # -- answers -----------------------------------------------------------------------------

    def count(self, argument: Expression | None) -> Bounded:
        """How many tuples there are, or values that are not NULL; without WHERE that is known."""
        value = _ONE if argument is None else argument
        hits = self._hits(value)
        if self._passes is None:
            total = Call("+", (hits, self._rest), Type.BIGINT)
            is_sampled = _compare(">", self._rest, _NONE)
            known = Call("case", (is_sampled, total, hits), Type.BIGINT)
            return Plain(*[known] * len(SIDES))
        return self._bounded(hits, "count", self._counts(value))

    def total(self, function: str, argument: Expression | None, type_: Type) -> Bounded:
        """The sum of a column, or its mean."""
        if argument is None:
            raise MillpondError(f"internal: {function} of nothing")
        exact = self._added(function, self._of_hits(argument), type_)
        kind = function if self._passes is None else f"{function}_of_hits"
        return self._bounded(exact, kind, self._sums(argument))

    def deviation(self, function: str, argument: Expression | None) -> Bounded:
        """The variance of a column, or its standard deviation."""
        if argument is None:
            raise MillpondError(f"internal: {function} of nothing")
        real = cast(argument, Type.DOUBLE)
        square = Call("*", (real, real), Type.DOUBLE)
        exact = self._added(function, self._of_hits(real), Type.DOUBLE)
        squares = (
            self._added("sum", self._of_hits(square)),
            self._added("sum", self._of_hits(square, is_drawn=False)),
            self._weighed(square, 0),
        )
        kind = function if self._passes is None else f"{function}_of_hits"
        return self._bounded(exact, kind, (*self._sums(argument), *squares))

    def percentile(self, argument: Expression | None, fraction: float) -> Bounded:
        """The percentile of a column at a fraction."""
        if argument is None:
            raise MillpondError("internal: percentile of nothing")
        real = cast(argument, Type.DOUBLE)
        ends = (self._added(end, when(self._is_drawn, value=real)) for end in ("min", "max"))
        landmarks = AggregateCall("landmarks", self._of_hits(real), Type.BINARY, False, fraction)
        kind = "percentile" if self._passes is None else "percentile_of_hits"
        sums = *self._counts(argument), *ends, self._column(landmarks)
        return Ranked(*self._said(kind), (*self._seen, *sums))

    def _bounded(self, exact: Expression, kind: str, sums: tuple[Expression, ...]) -> Bounded:
        return Bounded(exact, self._rest, *self._said(kind), (*self._seen, *sums))

    def _said(self, kind: str) -> tuple[str, float]:
        return CUT + kind if self._is_cut else kind, self._risk

    @property
    def _seen(self) -> tuple[Column, ...]:
        """The number of kept tuples, where a window may have been shortened."""
        is_kept = when(self._is_kept, value=_ONE)
        return (self._added("count", is_kept),) if self._is_cut else ()

    def _sums(self, argument: Expression) -> tuple[Expression, ...]:
        """The counts, sums and ends of the values of a column."""
        real = cast(argument, Type.DOUBLE)
        return (
            *self._counts(argument),
            self._added("sum", self._of_hits(real)),
            self._added("sum", self._of_hits(Call("abs", (real,), Type.DOUBLE))),
            self._added("sum", self._of_hits(real, is_drawn=False)),
            *(self._weighed(real, power) for power in (0, 1)),
            self._weighed(Call("*", (real, real), Type.DOUBLE), 1),
            *(self._added(end, when(self._is_drawn, value=real)) for end in ("min", "max")),
            *(self._added(end, real) for end in ("min", "max")),
        )

    def different(self, argument: Expression) -> Bounded:
        """How many different values there are, all rows of each of which were kept, or none."""
        seen = self._added("count", self._of_hits(argument), distinct=True)
        sure = self._added("count", self._of_hits(argument, is_drawn=False), distinct=True)
        sums = self._rest, seen, sure, *self._weights
        return self._bounded(seen, "distinct", sums)

    def extreme(self, function: str, argument: Expression | None) -> Bounded:
        """The least or largest value: known without WHERE, else bounded on one side."""
        if argument is None:
            raise MillpondError(f"internal: {function} of nothing")
        if self._passes is None:
            return Plain(*[self._added(function, argument)] * len(SIDES))
        seen = self._added(function, self._of_hits(argument))
        is_gone = _compare(">", self._dropped, _NONE)
        low, high = (self._added(end, when(is_gone, value=argument)) for end in ("min", "max"))
        below, above = ("coalesce", "greatest") if function == "max" else ("least", "coalesce")
        ends = Call(below, (seen, low), seen.type), Call(above, (seen, high), seen.type)
        return Plain(seen, *ends, *ends)

    # -- sums --------------------------------------------------------------------------------

    @property
    def _rest(self) -> Column:
        """How many were dropped."""
        return self._added("sum", self._dropped, Type.BIGINT)

    def _counts(self, value: Expression) -> tuple[Column, ...]:
        """What is counted of dropped tuples, of hits that have a value, and of all."""
        has_value = Call("not", (Call("is_null", (value,), Type.BOOLEAN),), Type.BOOLEAN)
        one = _ONE if value == _ONE else when(has_value, value=_ONE)
        drawn = self._added("count", self._of_hits(one, is_drawn=True))
        weighed = (self._weighed(one, power) for power in (0, 1))
        hits = self._hits(value)
        return self._rest, hits, drawn, *self._population, *weighed, *self._weights

    @property
    def _population(self) -> tuple[Column, ...]:
        """Of kept tuples that could have been dropped: their number, Σ w and Σ w (w - 1)."""
        number = when(self._is_kept, self._is_drawn, value=_ONE)
        weights = (when(self._is_kept, self._is_drawn, value=self._factor(p)) for p in (0, 1))
        return self._added("count", number), *(self._added("sum", each) for each in weights)

    @property
    def _weights(self) -> tuple[Column, ...]:
        """The least and largest weight of tuples that could have been dropped, or were."""
        weight = when(self._is_drawn, value=self._weight)
        return self._added("min", weight), self._added("max", weight)

    def _hits(self, value: Expression) -> Column:
        """How many kept tuples pass WHERE and have a value."""
        return self._added("count", self._of_hits(value))

    def _weighed(self, value: Expression, power: int) -> Column:
        """Σ w x, or Σ w (w - 1) x, over hits that could have been dropped."""
        product = Call("*", (self._factor(power), cast(value, Type.DOUBLE)), Type.DOUBLE)
        return self._added("sum", self._of_hits(product, is_drawn=True))

    def _factor(self, power: int) -> Expression:
        if not power:
            return self._weight
        less = Call("-", (self._weight, Literal(1.0, Type.DOUBLE)), Type.DOUBLE)
        return Call("*", (self._weight, less), Type.DOUBLE)

    def _of_hits(self, value: Expression, is_drawn: bool | None = None) -> Expression:
        """A value of kept tuples that pass WHERE; of those that could have been dropped, or not."""
        test: Expression | None = None
        if is_drawn is not None:
            test = self._is_drawn if is_drawn else Call("not", (self._is_drawn,), Type.BOOLEAN)
        is_hit = self._is_kept if self._passes is None else self._passes
        return when(is_hit, test, value=value)

    def _added(
        self,
        function: str,
        argument: Expression,
        type_: Type | None = None,
        distinct: bool = False,
    ) -> Column:
        """The column of an aggregate, without the keys."""
        known = Type.BIGINT if function == "count" else type_ or argument.type
        return self._column(AggregateCall(function, argument, known, distinct))

    def _column(self, call: AggregateCall) -> Column:
        """The same, of a call."""
        self._calls.setdefault(call)
        return Column(list(self._calls).index(call), call.type, str(call))
