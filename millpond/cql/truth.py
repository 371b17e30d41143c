"""What a condition can be, as far as its constants tell."""

from millpond.cql.expressions import Call, Expression, Literal


def can_be_true(condition: Expression) -> bool:
    """Whether a condition is not false or NULL for every row, for all that one sees of it."""
    match condition:
        case Literal():
            return condition.value is True
        case Call(function="and"):
            return all(map(can_be_true, condition.arguments))
        case Call(function="or"):
            return any(map(can_be_true, condition.arguments))
        case Call(function="not"):
            return can_be_false(condition.arguments[0])
    return True


def can_be_false(condition: Expression) -> bool:
    """Whether a condition is not true or NULL for every row, for all that one sees of it."""
    match condition:
        case Literal():
            return condition.value is False
        case Call(function="and"):
            return any(map(can_be_false, condition.arguments))
        case Call(function="or"):
            return all(map(can_be_false, condition.arguments))
        case Call(function="not"):
            return can_be_true(condition.arguments[0])
    return True
