"""MATCH_RECOGNIZE for the reference evaluator: its syntax, and the stream it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests import reference_values as sql
from tests.row_matching import matches


@dataclass
class Matches:
    """``source`` MATCH_RECOGNIZE ( … ); ``define`` has the conditions of variables."""

    source: object
    partition: list
    measures: list
    skip: tuple
    pattern: tuple
    within: int | None
    define: dict


class MatchParser:
    """Parses it, as a part of the parser of queries."""

    def match_recognize(self, source):
        """The clause behind a source, if it is there."""
        if (self.peek(), self.peek(1)) != ("match_recognize", "("):
            return source
        self.expect("match_recognize", "(")
        partition = self.comma_list(self.primary) if self.accept("partition", "by") else []
        if self.accept("order", "by"):
            self.primary()
            self.accept("asc")
        measures = self.comma_list(self.measure) if self.accept("measures") else []
        self.accept("one", "row", "per", "match")
        skip = self.skip_to() if self.accept("after", "match", "skip") else ("past", None)
        self.expect("pattern")
        pattern = self.parenthesised(self.either)
        within = self.length_of_match() if self.accept("within") else None
        define = dict(self.comma_list(self.definition)) if self.accept("define") else {}
        self.expect(")")
        return Matches(source, partition, measures, skip, pattern, within, define)

    def measure(self):
        expression = self.expression()
        self.expect("as")
        return expression, self.name()

    def skip_to(self):
        if self.accept("past", "last", "row"):
            return "past", None
        if self.accept("to", "next", "row"):
            return "next", None
        self.expect("to")
        to = "first" if self.accept("first") else "last"
        self.accept("last")
        return to, self.name().upper()

    def length_of_match(self):
        return self.interval() if self.peek() == "interval" else self.duration()

    def definition(self):
        variable = self.name().upper()
        self.expect("as")
        return variable, self.expression()

    def either(self):
        parts = [self.turn()]
        while self.accept("|"):
            parts.append(self.turn())
        return ("either", parts) if len(parts) > 1 else parts[0]

    def turn(self):
        parts = []
        while self.peek() not in ("|", ")"):
            parts.append(self.repeated())
        return ("turn", parts)

    def repeated(self):
        if self.accept("not"):
            return ("absent", self.name().upper())
        is_nested = self.peek() == "("
        part = self.parenthesised(self.either) if is_nested else ("row", self.name().upper())
        for symbol, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.accept(symbol):
                return ("repeat", part, least, most, self.accept("?"))
        if not self.accept("{"):
            return part
        least = 0 if self.peek() == "," else self.integer()
        most = least
        if self.accept(","):
            most = None if self.peek() == "}" else self.integer()
        self.expect("}")
        return ("repeat", part, least, most, self.accept("?"))


class Trial(NamedTuple):
    """What an expression sees: the rows of a partition and those of the match so far."""

    rows: list
    path: tuple

    def of(self, variable):
        """The places of the rows of a variable, None for all."""
        return [index for index, name in self.path if variable in (None, name)]


class OfMatch:
    """Compiles expressions of DEFINE, where ``own`` is the variable, and of MEASURES.

    A part of a compiler. In DEFINE the last row of the path is the one that is tried.
    """

    own = None

    def variable(self, qualifier, is_last=False):
        if qualifier is None:
            return self.own if is_last else None
        return qualifier.upper()

    def column(self, qualifier, name):
        _, position = self.scope.find(None, name)
        variable = self.variable(qualifier, is_last=True)

        def value(e):
            places = e.of(variable)
            return e.rows[places[-1]][position] if places else None

        return value

    def call(self, name, arguments):
        if name != "prev":
            return super().call(name, arguments)
        kind, inner = "last", arguments[0]
        if inner[0] == "in_order":
            kind, inner = inner[1], inner[2][0]
        back = arguments[1][1] if len(arguments) > 1 else 1
        return self.placed(kind, inner, back)

    def in_order(self, name, arguments, condition):
        return self.placed(name, arguments[0], 0)

    def placed(self, kind, expression, back):
        """The value of an expression in a row before the first or last of a variable."""
        variable = self.variable(qualifier_of(expression), is_last=kind == "last")
        function = self.on_row(without_qualifiers(expression))

        def value(e):
            places = e.of(variable)
            place = (places[0 if kind == "first" else -1] - back) if places else -1
            return function(e.rows[place]) if place >= 0 else None

        return value

    def aggregate(self, name, argument, distinct, parameter, condition):
        if argument is None or argument[0] == "star":
            variable = argument and argument[1].upper()
            return lambda e: len(e.of(variable))
        variable = self.variable(qualifier_of(argument))
        function = self.on_row(without_qualifiers(argument))
        return lambda e: sql.aggregate(name, [function(e.rows[i]) for i in e.of(variable)])


def qualifier_of(expression):
    """The variable of which an expression names columns."""
    if isinstance(expression, (tuple, list)):
        if list(expression[:1]) == ["column"]:
            return expression[1]
        return next((q for part in expression if (q := qualifier_of(part)) is not None), None)
    return None


def without_qualifiers(expression):
    """The same over the columns of a row."""
    if isinstance(expression, list):
        return [without_qualifiers(part) for part in expression]
    if not isinstance(expression, tuple):
        return expression
    if expression[:1] == ("column",):
        return ("column", None, expression[2])
    return tuple(map(without_qualifiers, expression))


def is_of_own_row(expression, variable):
    """Whether a condition names columns of its own row alone."""
    if not isinstance(expression, (tuple, list)):
        return True
    if list(expression[:1]) == ["column"]:
        return expression[1] is None or expression[1].upper() == variable
    if list(expression[:2]) == ["call", "prev"] or list(expression[:1]) in (
        ["aggregate"],
        ["in_order"],
    ):
        return False
    return all(is_of_own_row(part, variable) for part in expression)


class Matched:
    """The stream of the matches in each partition of a stream."""

    is_stream = True
    ends = ()

    def __init__(self, stream, clause, compiler_of, row_compiler, skip, spend):
        """``compiler_of``: the compiler of a variable's condition, of measures for None."""
        self.stream, self.clause, self.skip, self.spend = stream, clause, skip, spend
        keys = [(c, c[2]) for c in clause.partition]
        self.columns = [("", name) for _, name in [*keys, *clause.measures]]
        self.partition = [row_compiler.on_row(without_qualifiers(c)) for c in clause.partition]
        conditions = clause.define.items()
        self.conditions = {v: compiler_of(v).compile(c) for v, c in conditions}
        self.own = [v for v, condition in conditions if is_of_own_row(condition, v)]
        self.measures = [compiler_of(None).compile(e) for e, _ in clause.measures]
        self.ordered = None

    def elements(self):
        if self.ordered is None:
            self.ordered = sorted(self.found(), key=lambda e: (e[0], sql.order_key(e[1])))
        return self.ordered

    def found(self):
        parts = {}
        for ts, row in self.stream.elements():
            key = tuple(value(row) for value in self.partition)
            parts.setdefault(key, []).append((ts, row))
        for key, part in parts.items():
            times, rows = [ts for ts, _ in part], [row for _, row in part]
            self.spend(len(rows) ** 2)
            for variable in self.own:  # asked of every row, so that they fail on any
                for index in range(len(rows)):
                    self.holds(variable, Trial(rows, ((index, variable),)))

            def stands(variable, path, index, rows=rows):
                self.spend(1)
                return self.holds(variable, Trial(rows, (*path, (index, variable))))

            clause = self.clause
            told = matches(clause.pattern, times, stands, clause.within, clause.skip)
            for when, path in told:
                yield when, (*key, *(measure(Trial(rows, path)) for measure in self.measures))

    def holds(self, variable, trial):
        """Whether a row stands for a variable; where failures stop nothing, it does not if it
        fails."""
        condition = self.conditions.get(variable, lambda e: True)
        return (sql.attempt(condition, trial) if self.skip else condition(trial)) is True

    def instants(self):
        return self.stream.instants() | {ts for ts, _ in self.elements()}

    def moves(self):
        return self.stream.moves()
