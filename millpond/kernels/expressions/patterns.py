"""LIKE: a pattern becomes a regular expression over the whole text."""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow.compute as pc

from millpond.cql.expressions import Call, Literal
from millpond.kernels.expressions.faults import Fault, fault_where, first_of
from millpond.kernels.expressions.operand import Operand, Text, of_array
from millpond.kernels.expressions.rows import by_row
from millpond.kernels.expressions.strict import met
from millpond.schema import Type

_WILD = {"%": ".*", "_": "."}


def like(call: Call) -> Callable[..., Operand]:
    """LIKE with the call's escape character."""
    mark = call.arguments[2] if len(call.arguments) > 2 else None
    escape = str(mark.value) if isinstance(mark, Literal) else "\\"
    return lambda text, pattern, *_: _like(text, pattern, escape)


def _like(text: Text, pattern: Text, escape: str) -> Operand:
    if len(pattern.data) == 1 and pattern.constant is not None:
        expression = regular_expression(pattern.constant, escape)
        if expression is not None:
            found = pc.match_substring_regex(text.data, rf"(?s)\A{expression}\z")
            answer = of_array(found, Type.BOOLEAN)
            return Operand(answer.data, answer.valid, met(text, pattern))
    answers = by_row(lambda value, by: _matches(value, by, escape), text, pattern)
    codes = np.array([2 if answer is None else answer for answer in answers], np.int8)
    own = fault_where(codes == _INVALID, Fault.INVALID_FORMAT)
    return Operand(codes == 1, codes != 2, first_of(met(text, pattern), own))


_INVALID = -1


def _matches(text: str, pattern: str, escape: str) -> int:
    compiled = _compiled(pattern, escape)
    return _INVALID if compiled is None else int(compiled.fullmatch(text) is not None)


@lru_cache(maxsize=1024)
def _compiled(pattern: str, escape: str) -> re.Pattern[str] | None:
    expression = regular_expression(pattern, escape)
    return None if expression is None else re.compile(expression, re.DOTALL)


def regular_expression(pattern: str, escape: str) -> str | None:
    r"""What a pattern means; None if it is invalid: only %, _ and the escape are escaped.

    >>> regular_expression("a%\\_", "\\")
    'a.*_'
    """
    parts, rest = [], iter(pattern)
    for character in rest:
        if character == escape:
            escaped = next(rest, "")
            if escaped not in ("%", "_", escape):
                return None
            parts.append(re.escape(escaped))
        else:
            parts.append(_WILD.get(character) or re.escape(character))
    return "".join(parts)
