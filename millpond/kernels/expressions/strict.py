"""Functions that are NULL where an argument is NULL, and then look at no further argument."""

from collections.abc import Callable

import numpy as np

from millpond.kernels.expressions.faults import Fault, Faults, fault_where, first_of, only
from millpond.kernels.expressions.operand import Array, Operand, Value, both
from millpond.kernels.groups import Bools


def met(*arguments: Value) -> Faults | None:
    """The faults of the arguments, from left to right: after a NULL none is looked at."""
    if all(argument.faults is None for argument in arguments):
        return None
    faults, looking = None, None
    for argument in arguments:
        faults = first_of(faults, only(looking, argument.faults))
        looking = both(looking, argument.valid)
    return faults


def valid(*arguments: Value) -> Bools | None:
    """Where no argument is NULL."""
    mask = None
    for argument in arguments:
        mask = both(mask, argument.valid)
    return mask


def plain(function: Callable[..., Array]) -> Callable[..., Operand]:
    """A function of arrays as one of operands."""

    def apply(*arguments: Operand) -> Operand:
        data = function(*(argument.data for argument in arguments))
        return Operand(data, valid(*arguments), met(*arguments))

    return apply


def failing(
    function: Callable[..., tuple[Array, Bools | None]], fault: Fault
) -> Callable[..., Operand]:
    """The same for a function that also says where it fails, None being nowhere."""

    def apply(*arguments: Operand) -> Operand:
        data, fails = function(*(argument.data for argument in arguments))
        mask, faults = valid(*arguments), met(*arguments)
        if fails is not None:
            faults = first_of(faults, fault_where(fails if mask is None else fails & mask, fault))
        return Operand(data, mask, faults)

    return apply


def partial(function: Callable[..., tuple[Array, Bools]]) -> Callable[..., Operand]:
    """The same for a function that also says where it has a value, being NULL elsewhere."""

    def apply(*arguments: Operand) -> Operand:
        data, defined = function(*(argument.data for argument in arguments))
        mask = valid(*arguments)
        return Operand(data, defined if mask is None else defined & mask, met(*arguments))

    return apply


def nothing_fails(fails: Bools) -> Bools | None:
    """The rows, or None if there are none."""
    return fails if np.any(fails) else None
