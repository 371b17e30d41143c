"""Which functions of the user a plan calls; workers load this, so nothing here reads CQL."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from millpond.cql.node import Node, follows_from_inputs
from millpond.functions.user_function import UserFunction


def needed_functions(plan: Node) -> list[UserFunction]:
    """The functions of the user that a plan calls, each once."""
    found = {function.name: function for function in _needed(plan)}
    return [found[name] for name in sorted(found)]


@follows_from_inputs
def _needed(node: Node) -> frozenset[UserFunction]:
    return frozenset(functions_of(node)).union(*map(_needed, (*node.inputs, *node.subqueries)))


def functions_in(operator: Any) -> list[UserFunction]:
    """The functions of the user that an operator calls: it holds nodes down to what it reads."""
    values = [getattr(operator, field.name) for field in fields(operator)]
    nodes = [value for value in values if isinstance(value, Node)]
    below = [called for node in nodes for called in needed_functions(node)]
    return below + [called for value in values for called in _called(value)]


def functions_of(node: Node) -> list[UserFunction]:
    """The functions of the user that a node of a plan calls itself."""
    return [called for field in fields(node) for called in _called(getattr(node, field.name))]


def _called(value: Any) -> Iterator[UserFunction]:
    """The functions called in an expression or in what holds some, plans below aside."""
    if isinstance(value, UserFunction):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _called(item)
    elif is_dataclass(value) and not isinstance(value, Node):
        for field in fields(value):
            yield from _called(getattr(value, field.name))
