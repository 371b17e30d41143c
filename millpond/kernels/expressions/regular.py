"""Functions by regular expressions, as operands have them."""

from collections.abc import Callable

from millpond.cql.expressions import Call
from millpond.cql.regular_expressions import function_of
from millpond.kernels.expressions.operand import Operand, Text, Value, of_array
from millpond.kernels.expressions.strict import met
from millpond.schema import Type


def regular(call: Call) -> Callable[..., Value]:
    """What a call makes of its text; the pattern is known from the call."""
    function = function_of(call)

    def apply(text: Text, *_: Value) -> Value:
        found = function(text.data)
        if call.type is not Type.BOOLEAN:
            return Text(found, text.faults)
        answer = of_array(found, Type.BOOLEAN)
        return Operand(answer.data, answer.valid, met(text))

    return apply
