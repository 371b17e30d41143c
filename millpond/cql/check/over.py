"""Functions OVER rows in order: what they are of, and which rows they look at."""

from sqlglot import exp

from millpond.cql.aggregates import AGGREGATES
from millpond.cql.algebra import OverCall
from millpond.cql.expressions import Column, Frame, SortKey
from millpond.cql.text.durations import microseconds
from millpond.cql.text.from_clause import Length
from millpond.cql.text.lengths import number_of
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.text.ranking import FrameBound, FrameText, Ranking
from millpond.schema import Type

MOST = 2**31 - 1
_STEPS = ("lag", "lead")
_WITHOUT_FRAME = (*_STEPS, "ntile")
_IN_ORDER = (*_WITHOUT_FRAME, "first_value", "last_value")
_FORMS = {"lag": "lag(x) or lag(x, n)", "lead": "lead(x) or lead(x, n)", "ntile": "ntile(n)"}
_GROUP = "; use GROUP BY in a subquery, and join with it"
_NO_DEFAULT = "; have it in a subquery, and coalesce(x, 0) around it"
WHOLE = Frame("rows", None, None)
UP_TO_HERE = Frame("range", None, 0)


def valued(ranking: Ranking) -> list[exp.Expr]:
    """The argument that a function has a value of in each row, if there is one."""
    arguments = ranking.args.get("arguments") or []
    if any(isinstance(each, exp.Distinct) for each in arguments):
        raise StatementError(f"{ranking.args['kind']} OVER does not take DISTINCT{_GROUP}", ranking)
    is_star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    return [] if is_star or ranking.args["kind"] == "ntile" else arguments[:1]


def over_call(ranking: Ranking, argument: Column | None, order: tuple[SortKey, ...]) -> OverCall:
    """A function OVER rows that are in order by these keys, checked."""
    name = ranking.args["kind"]
    number = _number(ranking, name)
    if not order and name in _IN_ORDER:
        raise StatementError(f"{name} needs an order: OVER (ORDER BY x)", ranking)
    frame = _frame(ranking, name, order)
    if argument is None:
        return OverCall(name, None, frame, Type.BIGINT, number)
    return OverCall(name, argument, frame, _type(name, argument, ranking), number)


def _type(name: str, argument: Column, ranking: Ranking) -> Type:
    if name not in AGGREGATES:
        return argument.type
    aggregate = AGGREGATES[name]
    given = aggregate.argument(argument.type)
    if given is None:
        raise StatementError(f"{name} needs {aggregate.wanted}, not {argument.type}", ranking)
    return aggregate.result(given)


def _number(ranking: Ranking, name: str) -> int:
    """How far lag and lead go, how many parts ntile makes; refuses other arguments."""
    arguments = ranking.args.get("arguments") or []
    is_star = any(isinstance(each, exp.Star) for each in arguments)
    most = 2 if name in _STEPS else 1
    if not 1 <= len(arguments) <= most or (is_star and name != "count"):
        form = _FORMS.get(name, "count(*) or count(x)" if name == "count" else f"{name}(x)")
        default = _NO_DEFAULT if name in _STEPS and len(arguments) == 3 else ""
        raise StatementError(f"{name} is called as {form}{default}", ranking)
    if name == "ntile":
        return _counted(arguments[0], name, 1)
    if name in _STEPS:
        return _counted(arguments[1], name, 0) if len(arguments) == 2 else 1
    return 0


def _counted(node: exp.Expr, name: str, least: int) -> int:
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdigit() or not least <= int(text) <= MOST:
        raise StatementError(f"{name} takes a whole number from {least} to {MOST:,}", node)
    return int(text)


# -- frames ----------------------------------------------------------------------------------


def _frame(ranking: Ranking, name: str, order: tuple[SortKey, ...]) -> Frame:
    text = ranking.args.get("frame")
    if text is None:
        return UP_TO_HERE if order else WHOLE
    if name in _WITHOUT_FRAME:
        raise StatementError(f"{name} looks at the whole partition; leave the frame out", text)
    if not order:
        raise StatementError("a frame needs an order: OVER (ORDER BY x ROWS 5 PRECEDING)", text)
    unit = text.args["unit"].lower()
    start = _offset(text.args["start"], unit, order)
    end = _offset(text.args["end"], unit, order)
    _check_sides(text, start, end)
    return Frame(unit, start, end)


def _check_sides(text: FrameText, start: int | None, end: int | None) -> None:
    first, last = text.args["start"], text.args["end"]
    if first.this is None and first.args["side"] == "FOLLOWING":
        raise StatementError("a frame cannot begin with the end of the partition", first)
    if last.this is None and last.args["side"] == "PRECEDING":
        raise StatementError("a frame cannot end with the begin of the partition", last)
    if start is not None and end is not None and start > end:
        raise StatementError("a frame cannot end before it begins", text)


def _offset(bound: FrameBound, unit: str, order: tuple[SortKey, ...]) -> int | None:
    """Where a frame begins or ends, seen from a row; None: with the partition."""
    if bound.this is None:
        return None
    sign = -1 if bound.args["side"] == "PRECEDING" else 1
    if not isinstance(bound.this, Length):
        return 0
    return sign * (_rows(bound.this) if unit == "rows" else _difference(bound.this, order))


def _rows(length: Length) -> int:
    number = number_of(length)
    if length.args.get("unit") is not None or not number.isdigit() or int(number) > MOST:
        raise StatementError(
            f"ROWS counts rows, up to {MOST:,}; for values or lengths of time use RANGE", length
        )
    return int(number)


def _difference(length: Length, order: tuple[SortKey, ...]) -> int:
    """How much the sort key may differ."""
    if len(order) > 1:
        raise StatementError("RANGE with a difference goes by one sort key", length)
    kind, number, unit = order[0].column.type, number_of(length), length.args.get("unit")
    if kind is Type.TIMESTAMP and unit is not None:
        found = microseconds(number, unit.name, offset_of(length) or 0)
    elif kind in (Type.INT, Type.BIGINT) and unit is None and number.isdigit():
        found = int(number)
    else:
        raise StatementError(_WANTED.get(kind, _NO_RANGE.format(kind)), length)
    if not 0 <= found < 2**62:
        raise StatementError("this difference is too large, or negative", length)
    return found


_WHOLE_DIFFERENCE = "the sort key is a whole number: RANGE 5 PRECEDING"
_WANTED = {
    Type.TIMESTAMP: "the sort key is a TIMESTAMP: RANGE INTERVAL '5' MINUTE PRECEDING",
    Type.INT: _WHOLE_DIFFERENCE,
    Type.BIGINT: _WHOLE_DIFFERENCE,
}
_NO_RANGE = (
    "RANGE with a difference goes by a whole number or a TIMESTAMP, not by {}; CAST the sort key, "
    "or use ROWS"
)
