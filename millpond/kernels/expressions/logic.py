"""Three truth values, and what depends on them: an operand that is not needed cannot fail."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.expressions.faults import Faults, first_of, only
from millpond.kernels.expressions.operand import Operand, Text, Value, both, repeated
from millpond.kernels.groups import Bools


def all_of(*operands: Operand) -> Operand:
    """AND: false wins, then NULL; what stands after a false is not looked at."""
    answer = operands[0]
    for operand in operands[1:]:
        looking = None if operand.faults is None else ~_false(answer)
        faults = first_of(answer.faults, only(looking, operand.faults))
        answer = Operand(answer.data & operand.data, _known(answer, operand, _false), faults)
    return answer


def any_of(*operands: Operand) -> Operand:
    """OR: true wins, then NULL; what stands after a true is not looked at."""
    answer = operands[0]
    for operand in operands[1:]:
        looking = None if operand.faults is None else ~answer.true
        faults = first_of(answer.faults, only(looking, operand.faults))
        answer = Operand(answer.data | operand.data, _known(answer, operand, _true), faults)
    return answer


def negation(operand: Operand) -> Operand:
    """NOT."""
    return Operand(~operand.data, operand.valid, operand.faults)


def is_null(value: Value) -> Operand:
    """Whether the value is NULL."""
    mask = value.valid
    answer = np.zeros(len(value.data), np.bool_) if mask is None else ~mask
    return Operand(answer, None, value.faults)


def case(*parts: Value) -> Value:
    """The value after the first true condition, else the last value or NULL."""
    pairs, rest = len(parts) // 2, len(parts) % 2
    answer = parts[-1] if rest else null_like(parts[1])
    for pair in reversed(range(pairs)):
        condition = parts[2 * pair]
        answer = choose(condition, parts[2 * pair + 1], answer)  # type: ignore[arg-type]
    return answer


def coalesce(*values: Value) -> Value:
    """The first value that is not NULL."""
    answer = values[-1]
    for value in reversed(values[:-1]):
        mask = value.valid
        taken = None if mask is None else Operand(mask, None, value.faults)
        answer = value if taken is None else choose(taken, value, answer)
    return answer


def choose(condition: Operand, then: Value, otherwise: Value) -> Value:
    """The one value where the condition is true, the other elsewhere."""
    taken = condition.true
    faults = first_of(condition.faults, _chosen_faults(taken, then.faults, otherwise.faults))
    if isinstance(then, Text) and isinstance(otherwise, Text):
        return Text(_chosen_text(taken, then.data, otherwise.data), faults)
    mask = None
    if then.valid is not None or otherwise.valid is not None:
        mask = np.where(taken, _mask(then), _mask(otherwise))
    return Operand(np.where(taken, then.data, otherwise.data), mask, faults)


def null_like(value: Value) -> Value:
    """NULL, of the value's type."""
    if isinstance(value, Text):
        return Text(pa.nulls(1, value.data.type))
    return Operand(np.zeros(1, value.data.dtype), np.zeros(1, np.bool_))


def _chosen_faults(taken: Bools, then: Faults | None, otherwise: Faults | None) -> Faults | None:
    if then is None and otherwise is None:
        return None
    none = np.zeros(1, np.uint8)
    return np.where(taken, none if then is None else then, none if otherwise is None else otherwise)


def _chosen_text(taken: Bools, then: pa.Array, otherwise: pa.Array) -> pa.Array:
    rows = max(len(taken), len(then), len(otherwise)) if len(taken) else 0
    if len(taken) == 1:
        chosen = then if taken[0] else otherwise
        return chosen if len(chosen) == rows else repeated(chosen, rows)
    left, right = (text if len(text) == rows else text[0] for text in (then, otherwise))
    return pc.if_else(pa.array(taken), left, right)


def _mask(value: Value) -> Bools | np.bool_:
    mask = value.valid
    return np.True_ if mask is None else mask


def _true(operand: Operand) -> Bools:
    return operand.true


def _false(operand: Operand) -> Bools:
    return ~operand.data if operand.valid is None else ~operand.data & operand.valid


def _known(a: Operand, b: Operand, decides: Callable[[Operand], Bools]) -> Bools | None:
    """Where the answer is not NULL: where both are known, or one of them decides."""
    mask = both(a.valid, b.valid)
    return None if mask is None else mask | decides(a) | decides(b)
