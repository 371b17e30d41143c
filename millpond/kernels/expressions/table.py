"""The second column of the function table: each function of CQL on Arrow arrays.

``millpond/spark/expressions.py`` is the first. Both give the same bits for the same input.
"""

from collections.abc import Callable

from millpond.cql.expressions import Call, UserCall
from millpond.kernels.expressions import (
    arithmetic,
    arrays,
    attempts,
    bounds,
    casts,
    comparisons,
    dates,
    decimals,
    exponentials,
    json_values,
    logic,
    nested,
    padding,
    patterns,
    powers,
    regular,
    rounding,
    text,
    trigonometry,
    user_functions,
    zones,
)
from millpond.kernels.expressions.faults import Fault
from millpond.kernels.expressions.operand import Value
from millpond.kernels.expressions.strict import failing, partial, plain

Function = Callable[..., Value]

_OVERFLOW = Fault.ARITHMETIC_OVERFLOW

FUNCTIONS: dict[str, Function] = {
    "+": failing(arithmetic.add, _OVERFLOW),
    "-": failing(arithmetic.subtract, _OVERFLOW),
    "*": failing(arithmetic.multiply, _OVERFLOW),
    "/": partial(arithmetic.divide),
    "%": partial(arithmetic.remainder),
    "neg": failing(arithmetic.negate, _OVERFLOW),
    "=": comparisons.equal,
    "<>": comparisons.unequal,
    "<": comparisons.less,
    "<=": comparisons.less_or_equal,
    ">": comparisons.greater,
    ">=": comparisons.greater_or_equal,
    "is_not_distinct": comparisons.not_distinct,
    "and": logic.all_of,
    "or": logic.any_of,
    "not": logic.negation,
    "is_null": logic.is_null,
    "in": comparisons.one_of,
    "case": logic.case,
    "coalesce": logic.coalesce,
    "nullif": comparisons.null_if,
    "greatest": comparisons.greatest,
    "least": comparisons.least,
    "abs": failing(arithmetic.absolute, _OVERFLOW),
    "ceil": failing(arithmetic.ceiling, _OVERFLOW),
    "floor": failing(arithmetic.floor, _OVERFLOW),
    "sqrt": partial(arithmetic.root),
    "exp": plain(exponentials.exp),
    "ln": partial(exponentials.ln),
    "log10": partial(exponentials.log10),
    "power": plain(powers.power),
    "sign": failing(arithmetic.sign, Fault.CAST_OVERFLOW),
    "upper": text.upper,
    "lower": text.lower,
    "length": text.length,
    "trim": text.trim,
    "ltrim": text.trim_left,
    "rtrim": text.trim_right,
    "substring": text.substring,
    "concat": text.concat,
    "replace": text.replace,
    "strpos": text.position,
    "left": text.left,
    "right": text.right,
    "lpad": padding.pad_left,
    "rpad": padding.pad_right,
    "reverse": text.reverse,
    "md5": text.md5,
    "sha1": text.sha1,
    "sha256": text.sha256,
    "starts_with": text.starts_with,
    "ends_with": text.ends_with,
    "contains": text.contains,
    "split_part": text.split_part,
    "sha512": text.sha512,
    "crc32": text.crc32,
    "hex": text.hexadecimal,
    "unhex": text.of_hexadecimal,
    "base64": text.base64_text,
    "unbase64": text.of_base64,
    "octet_length": text.octet_length,
    "div": arithmetic.whole_quotient,
    **trigonometry.FUNCTIONS,
    **dates.FUNCTIONS,
}

FORMS: dict[str, Function] = {"attempt": attempts.attempt, "succeeds": attempts.succeeds}
"""What the planner puts around calls that can fail."""

OF_CALL: dict[str, Callable[[Call], Function | None]] = {
    "[]": arrays.element,
    "array": arrays.array,
    "field": nested.field,
    "map": nested.map_of,
    "map_keys": nested.map_keys,
    "map_values": nested.map_values,
    "struct": nested.struct,
    "array_contains": arrays.contains,
    "bound": bounds.bound,
    "cardinality": arrays.cardinality,
    "cast": casts.cast,
    "date_trunc": dates.truncate,
    "json_value": json_values.json_value,
    "like": patterns.like,
    "regexp_like": regular.regular,
    "regexp_extract": regular.regular,
    "regexp_replace": regular.regular,
    "round": rounding.round_half_up,
    "local_time": zones.zoned,
    "zoned_time": zones.zoned,
    "zoned_text": zones.zoned,
}
"""Functions that depend on more of the call than its arguments' values."""


def function_of(call: Call) -> Function | None:
    """The function that a call stands for; None if only Spark has it."""
    if isinstance(call, UserCall):
        return user_functions.call_of(call)
    exact = decimals.arithmetic(call)
    if exact is not None:
        return exact
    build = OF_CALL.get(call.function)
    if build is not None:
        return build(call)
    return FUNCTIONS.get(call.function) or FORMS.get(call.function)
