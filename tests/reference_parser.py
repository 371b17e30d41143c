"""A recursive-descent parser for CQL queries, for the reference evaluator only.

It shares nothing with the engine's parser. Expressions are tuples whose first item names their
kind, such as ``("column", "S", "a")``; queries and FROM items are the dataclasses below.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from datetime import timedelta

from tests.reference_matches import MatchParser

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
      | (?P<string>'(?:[^']|'')*')
      | (?P<number>\d+\.\d*|\.\d+|\d+)
      | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<quoted>"[^"]+"|`[^`]+`)
      | (?P<symbol><=|>=|<>|!=|\|\||[-+*/%(),.\[\];=<>{}|?])""",
    re.VERBOSE,
)
AGGREGATES = (
    "count", "sum", "avg", "min", "max", "stddev", "variance", "percentile",
    "approx_count_distinct",
)  # fmt: skip
IN_ORDER = ("max_by", "min_by", "first", "last", "string_agg", "array_agg")
OWN_AGGREGATES = set()
"""Aggregates of the user that a test has."""
RANKINGS = ("row_number", "rank", "dense_rank")
TO_STREAM = ("istream", "dstream", "rstream")
OUTRIGHT = ("relation", "stream")
COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
UNIT_MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
RESERVED = frozenset(
    word
    for line in (
        "select from where group having union except intersect on join left right full inner cross",
        "semi anti outer as and or not in is like between exists case when then else end all any",
        "some distinct sample into by order limit over with",
    )
    for word in line.split()
)


@dataclass
class Window:
    """``kind`` is range, rows, hop, session or until; a range without ``length`` is unbounded."""

    kind: str
    length: int | None
    slide: int | None = None
    partition: tuple = ()
    where: tuple | None = None
    offset: int = 0
    until: tuple | None = None


@dataclass
class Table:
    """A FROM item; ``source`` is a name or a query."""

    source: object
    alias: str
    window: Window | None = None
    sampled: bool = False
    columns: tuple = ()
    lateral: bool = False


@dataclass
class Join:
    """``kind``: inner, left, right, full, semi, anti; without ``on`` it is the cross product."""

    kind: str
    left: object
    right: object
    on: tuple | None


@dataclass
class Select:
    """One SELECT; an item is (expression, alias or None)."""

    items: list
    distinct: bool
    source: object
    where: tuple | None
    group_by: list
    having: tuple | None
    order: list
    """(expression, whether it descends, whether NULLs come first)."""
    limit: int | None = None
    ties: bool = False
    is_grouped: bool = False


@dataclass
class SetOperation:
    """``operation`` is union, except or intersect."""

    operation: str
    all: bool
    left: object
    right: object


@dataclass
class ToStream:
    """Istream, Dstream or Rstream of a query; or it is said to be a relation or a stream."""

    kind: str
    query: object


def equal_rows(left, right):
    """(a, b) = (c, d)."""
    equal = [("compare", "=", a, b) for a, b in zip(left[1], right[1], strict=True)]
    return functools.reduce(lambda a, b: ("and", a, b), equal)


def joined(lists):
    """The items of some lists, in order."""
    return list(itertools.chain.from_iterable(lists))


def own_name(expression):
    """What a column is called without an alias."""
    if expression[:2] == ("call", "field"):
        return expression[2][1][1]
    return expression[2] if expression[0] == "column" else None


def without(expression, keys, missing):
    """An expression in a grouping set: keys that it lacks are NULL, except inside aggregates."""
    if not isinstance(expression, tuple) or expression[:1] in (("aggregate",), ("in_order",)):
        return expression
    if expression[:2] == ("call", "grouping"):
        bits = "".join(str(int(each not in keys)) for each in expression[2])
        return ("literal", int(bits, 2))
    if expression in missing and expression not in keys:
        return ("literal", None)
    return tuple(
        [without(e, keys, missing) for e in part]
        if isinstance(part, list)
        else without(part, keys, missing)
        for part in expression
    )


def parse(text, tick_microseconds=1):
    """The syntax tree of one query."""
    parser = Parser(text, tick_microseconds)
    query = parser.whole_query()
    parser.accept(";")
    if parser.peek() != "":
        raise SyntaxError(f"unexpected {parser.peek()!r} in {text!r}")
    return query


class Parser(MatchParser):
    """Holds the tokens of one text and a position in them."""

    def __init__(self, text, tick_microseconds):
        self.tick_microseconds = tick_microseconds
        self.tokens = []
        self.position = 0
        self.named = {}  # what WITH names: (query, columns)
        place = 0
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise SyntaxError(f"cannot read {text[place : place + 20]!r}")
            if match.lastgroup != "space":
                self.tokens.append((match.lastgroup, match.group()))
            place = match.end()

    # Reading tokens. Words compare in lower case.

    def peek(self, ahead=0):
        place = self.position + ahead
        if place >= len(self.tokens):
            return ""
        kind, text = self.tokens[place]
        return text.lower() if kind == "word" else text

    def accept(self, *words):
        """Consumes the given words if they come next."""
        if all(self.peek(i) == word for i, word in enumerate(words)):
            self.position += len(words)
            return True
        return False

    def expect(self, *words):
        if not self.accept(*words):
            raise SyntaxError(f"expected {' '.join(words)}, found {self.peek()!r}")

    def name(self):
        kind, text = self.tokens[self.position]
        if kind == "quoted":
            text = text[1:-1]
        elif kind != "word" or text.lower() in RESERVED:
            raise SyntaxError(f"expected a name, found {text!r}")
        self.position += 1
        return text

    def integer(self):
        self.position += 1
        return int(self.tokens[self.position - 1][1])

    def comma_list(self, item):
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def parenthesised(self, item):
        self.expect("(")
        result = item()
        self.expect(")")
        return result

    # Queries. INTERSECT binds tighter than UNION and EXCEPT.

    def whole_query(self):
        outright = self.peek() if self.peek() in OUTRIGHT else None
        if outright:
            self.position += 1
        query = self.query()
        return ToStream(outright, query) if outright else query

    def query(self):
        if self.accept("with"):
            before = dict(self.named)
            self.comma_list(self.with_name)
            query = self.query()
            self.named = before
            return query
        left = self.intersection()
        while self.peek() in ("union", "except"):
            left = self.set_operation(left, self.intersection)
        return left

    def with_name(self):
        name = self.name().lower()
        columns = tuple(self.column_names()) if self.peek() == "(" else ()
        self.expect("as")
        self.named[name] = self.parenthesised(self.query), columns

    def column_names(self):
        return self.parenthesised(lambda: self.comma_list(self.name))

    def intersection(self):
        left = self.query_term()
        while self.peek() == "intersect":
            left = self.set_operation(left, self.query_term)
        return left

    def set_operation(self, left, right):
        operation = self.peek()
        self.position += 1
        keep_all = self.accept("all")
        if not keep_all:
            self.accept("distinct")
        return SetOperation(operation, keep_all, left, right())

    def query_term(self):
        if self.peek() in (*TO_STREAM, "relation"):
            kind = self.peek()
            self.position += 1
            return ToStream(kind, self.parenthesised(self.query))
        if self.peek() == "(":
            return self.parenthesised(self.query)
        if self.peek() != "select":
            return Select([(("star", None), None)], False, self.table(), None, [], None, [])
        return self.select()

    def select(self):
        self.expect("select")
        kind = self.peek() if self.peek() in TO_STREAM else None
        if kind:
            self.position += 1
        in_parentheses = kind is not None and self.is_paper_list()
        if in_parentheses:
            self.expect("(")
        distinct = self.accept("distinct")
        items = self.comma_list(self.select_item)
        if in_parentheses:
            self.expect(")")
        source = self.from_list() if self.accept("from") else None
        where = self.expression() if self.accept("where") else None
        is_grouped = self.accept("group", "by")
        elements = self.comma_list(self.grouping_element) if is_grouped else [[[]]]
        having = self.expression() if self.accept("having") else None
        order = self.order() if self.peek() == "order" else []
        limit = self.integer() if self.accept("limit") else None
        ties = limit is not None and self.accept("with", "ties")
        sets = [joined(parts) for parts in itertools.product(*elements)]
        every = [key for keys in sets for key in keys]
        query = None
        for keys in sets:
            missing = [key for key in every if key not in keys]
            of_set = [(without(e, keys, missing), a or own_name(e)) for e, a in items]
            kept = having and without(having, keys, missing)
            select = Select(
                of_set, distinct, source, where, keys, kept, order, limit, ties, is_grouped
            )
            query = select if query is None else SetOperation("union", True, query, select)
        assert len(sets) == 1 or not (distinct or order), "DISTINCT or ORDER BY of grouping sets"
        if self.accept("emit", "final"):
            return ToStream("final", query)
        return ToStream(kind, query) if kind else query

    def order(self):
        self.expect("order", "by")
        return self.comma_list(self.sort_key)

    def sort_key(self):
        expression = self.expression()
        descends = self.accept("desc")
        if not descends:
            self.accept("asc")
        if self.accept("nulls"):
            nulls_first = self.accept("first")
            return expression, descends, nulls_first or not self.accept("last")
        return expression, descends, not descends

    def ranking(self, function):
        """A rank and what stands behind OVER."""
        self.expect("(", ")")
        _, by, order, _ = self.over()
        return ("ranking", function, by, order)

    def over(self):
        """OVER (PARTITION BY … ORDER BY … frame)."""
        self.expect("over", "(")
        by = self.comma_list(self.expression) if self.accept("partition", "by") else []
        order = self.order() if self.peek() == "order" else []
        frame = ("range", None, 0) if order else ("rows", None, None)
        if self.peek() in ("rows", "range"):
            frame = self.frame()
        self.expect(")")
        return ("over", by, order, frame)

    def frame(self):
        unit = self.peek()
        self.position += 1
        if not self.accept("between"):
            return unit, self.frame_bound(), 0
        start = self.frame_bound()
        self.expect("and")
        return unit, start, self.frame_bound()

    def frame_bound(self):
        """None: the end of the partition; negative: before the row."""
        if self.accept("current", "row"):
            return 0
        if self.accept("unbounded"):
            self.position += 1
            return None
        if self.accept("interval"):
            amount = int(self.tokens[self.position][1].strip("'"))
            self.position += 1
            amount = timedelta(
                microseconds=amount * UNIT_MICROSECONDS[self.peek().removesuffix("s")]
            )
            self.position += 1
        else:
            amount = self.integer()
        return -amount if self.accept("preceding") or not self.accept("following") else amount

    def grouping_element(self):
        """The sets that one element of GROUP BY stands for."""
        if self.accept("grouping", "sets"):
            items = self.parenthesised(lambda: self.comma_list(self.grouping_item))
            return [keys for sets in items for keys in sets]
        word = self.peek()
        if word in ("rollup", "cube") and self.peek(1) == "(":
            self.position += 1
            items = self.parenthesised(lambda: self.comma_list(self.key_list))
            if word == "rollup":
                return [joined(items[:n]) for n in range(len(items) + 1)]
            choices = itertools.product([False, True], repeat=len(items))
            return [joined(itertools.compress(items, wanted)) for wanted in choices]
        return [[self.expression()]]

    def grouping_item(self):
        is_nested = self.peek() in ("rollup", "cube", "grouping")
        return self.grouping_element() if is_nested else [self.key_list()]

    def key_list(self):
        if not self.accept("("):
            return [self.expression()]
        keys = [] if self.peek() == ")" else self.comma_list(self.expression)
        self.expect(")")
        return keys

    def is_paper_list(self):
        """Whether the whole select list stands in parentheses, as in SELECT Istream(a, b) FROM."""
        depth, ahead = 0, 0
        while self.peek() == "(" and not self.starts_query(0):
            depth += {"(": 1, ")": -1}.get(self.peek(ahead), 0)
            ahead += 1
            if depth == 0:
                return self.peek(ahead) == "from"
        return False

    def select_item(self):
        if self.accept("*"):
            return ("star", None), None
        if self.peek(1) == "." and self.peek(2) == "*":
            qualifier = self.name()
            self.expect(".", "*")
            return ("star", qualifier), None
        expression = self.expression()
        return expression, self.alias()

    def alias(self):
        if self.accept("as"):
            return self.name()
        following = self.tokens[self.position : self.position + 1]
        is_emit = (self.peek(), self.peek(1)) == ("emit", "final")
        is_name = following and following[0][0] in ("word", "quoted")
        if is_name and self.peek() not in RESERVED and not is_emit:
            return self.name()
        return None

    # FROM.

    def from_list(self):
        left = self.joined()
        while self.accept(","):
            left = Join("inner", left, self.joined(), None)
        return left

    def joined(self):
        left = self.table()
        while True:
            kind = self.join_kind()
            if kind is None:
                return left
            right = self.table()
            on = self.expression() if self.accept("on") else None
            left = Join(kind, left, right, on)

    def join_kind(self):
        """Consumes the words before a joined table; None if there is no join."""
        for kind in ("semi", "anti"):
            if self.accept("left", kind, "join") or self.accept(kind, "join"):
                return kind
        for kind in ("left", "right", "full"):
            if self.accept(kind, "outer", "join") or self.accept(kind, "join"):
                return kind
        if self.accept("join") or self.accept("inner", "join") or self.accept("cross", "join"):
            return "inner"
        return None

    def table(self):
        if self.accept("table", "("):
            item = self.window_function()
            self.expect(")")
            item.alias = self.alias() or item.alias
            return item
        lateral = self.accept("lateral")
        source = self.match_recognize(self.table_source())
        alias = self.alias()
        window = self.window() if self.peek() == "[" else None
        sampled = self.accept("sample")
        if sampled:
            self.parenthesised(self.expression)
        alias = alias or self.alias() or (source if isinstance(source, str) else "")
        columns = ()
        if isinstance(source, str) and source.lower() in self.named:
            source, columns = self.named[source.lower()]
        return Table(source, alias, window, sampled, columns, lateral)

    def table_source(self):
        if self.peek() in (*TO_STREAM, "relation") and self.peek(1) == "(":
            return self.query_term()
        return self.parenthesised(self.query) if self.peek() == "(" else self.name()

    def window_function(self):
        """TUMBLE(TABLE S, DESCRIPTOR(t), length[, offset]), HOP with the slide before that, or
        SESSION(TABLE S PARTITION BY a, b, DESCRIPTOR(t), gap)."""
        kind = self.name().lower()
        self.expect("(", "table")
        source, partition = self.name(), []
        is_divided = self.accept("partition", "by")
        while is_divided and self.peek(1) != "descriptor":
            self.accept(",")
            partition.append(self.primary())
        self.expect(",", "descriptor")
        self.parenthesised(self.name)
        lengths = []
        while self.accept(","):
            lengths.append(self.interval())
        self.expect(")")
        if kind == "session":
            return Table(source, source, Window(kind, *lengths, partition=tuple(partition)))
        slide = lengths.pop(0) if kind == "hop" else lengths[0]
        return Table(source, source, Window("hop", lengths[0], slide, offset=sum(lengths[1:])))

    def interval(self):
        """INTERVAL '10' SECOND."""
        self.expect("interval")
        kind, text = self.tokens[self.position]
        self.tokens[self.position] = (kind, text.strip("'"))
        return self.duration()

    def window(self):
        self.expect("[")
        partition = ()
        if self.accept("partition", "by"):
            partition = tuple(self.comma_list(self.primary))
        window = self.window_size()
        window.partition = partition
        self.accept("preceding")
        if window.kind == "session" and self.accept("partition", "by"):
            window.partition = tuple(self.comma_list(self.primary))
        if self.accept("where"):
            window.where = self.expression()
        self.expect("]")
        return window

    def window_size(self):
        if self.accept("now"):
            return Window("range", 0)
        unbounded = [("unbounded",), ("range", "unbounded"), ("rows", "unbounded")]
        if any(self.accept(*words) for words in unbounded):
            return Window("range", None)
        if self.accept("until"):
            return Window("until", None, until=self.expression())
        if self.peek() in ("tumble", "hop"):
            return self.hop()
        kind = self.peek()
        self.position += 1
        measure = {"rows": self.integer}.get(kind, self.duration)
        window = Window(kind, measure())
        if self.accept("slide"):
            window.slide = measure()
        return window

    def hop(self):
        self.position += 1
        length = self.duration()
        slide = self.duration() if self.accept("slide") else length
        return Window("hop", length, slide, offset=self.duration() if self.accept("offset") else 0)

    def duration(self):
        """A bare integer counts ticks; with a unit it must be a whole number of ticks."""
        amount = self.integer()
        unit = UNIT_MICROSECONDS.get(self.peek().removesuffix("s"))
        if unit is None:
            return amount
        self.position += 1
        ticks, rest = divmod(amount * unit, self.tick_microseconds)
        if rest:
            raise SyntaxError("not a whole number of ticks")
        return ticks

    # Expressions, loosest binding first.

    def expression(self):
        left = self.conjunction()
        while self.accept("or"):
            left = ("or", left, self.conjunction())
        return left

    def conjunction(self):
        left = self.negation()
        while self.accept("and"):
            left = ("and", left, self.negation())
        return left

    def negation(self):
        if self.accept("not"):
            return ("not", self.negation())
        return self.predicate()

    def predicate(self):
        left = self.sum()
        if self.peek() in COMPARISONS:
            return self.comparison(left)
        if self.accept("is"):
            negated = self.accept("not")
            return self.maybe_not(negated, self.is_test(left))
        negated = self.peek() == "not" and self.peek(1) in ("in", "like", "between")
        if negated:
            self.expect("not")
        if self.accept("in"):
            return self.maybe_not(negated, self.membership(left))
        if self.accept("like"):
            return self.maybe_not(negated, ("like", left, self.sum()))
        if self.accept("between"):
            low = self.sum()
            self.expect("and")
            both = ("and", ("compare", ">=", left, low), ("compare", "<=", left, self.sum()))
            return self.maybe_not(negated, both)
        return left

    def maybe_not(self, negated, expression):
        return ("not", expression) if negated else expression

    def comparison(self, left):
        operator = self.peek().replace("!=", "<>")
        self.position += 1
        quantifier = {"all": "all", "any": "any", "some": "any"}.get(self.peek())
        if quantifier and self.peek(1) == "(":
            self.position += 1
            return ("quantified", left, operator, quantifier, self.parenthesised(self.query))
        right = self.sum()
        if left[0] == "row":
            equal = equal_rows(left, right)
            return equal if operator == "=" else ("not", equal)
        return ("compare", operator, left, right)

    def is_test(self, left):
        if self.accept("null"):
            return ("is null", left)
        if self.accept("distinct", "from"):
            return ("not", ("same", left, self.sum()))
        value = self.accept("true")
        if not value:
            self.expect("false")
        return ("same", left, ("literal", value))

    def membership(self, left):
        if self.starts_query(1) and left[0] == "row":
            return ("row_in", left[1], self.parenthesised(self.query))
        if left[0] == "row":
            rows = self.parenthesised(lambda: self.comma_list(self.expression))
            return functools.reduce(lambda a, b: ("or", a, b), [equal_rows(left, r) for r in rows])
        if self.starts_query(1):
            return ("quantified", left, "=", "any", self.parenthesised(self.query))
        return ("in list", left, self.parenthesised(lambda: self.comma_list(self.expression)))

    def starts_query(self, ahead):
        """Whether an opened parenthesis holds a query: SELECT or Istream( after more openings."""
        while self.peek(ahead) == "(":
            ahead += 1
        return self.peek(ahead) == "select" or (
            self.peek(ahead) in TO_STREAM and self.peek(ahead + 1) == "("
        )

    def sum(self):
        left = self.product()
        while self.peek() in ("+", "-", "||"):
            operator = self.peek()
            self.position += 1
            left = ("arithmetic", operator, left, self.product())
        return left

    def product(self):
        left = self.unary()
        while self.peek() in ("*", "/", "%", "div"):
            operator = self.peek()
            self.position += 1
            right = self.unary()
            is_div = operator == "div"
            left = (
                ("call", "div", [left, right]) if is_div else ("arithmetic", operator, left, right)
            )
        return left

    def unary(self):
        if self.accept("-"):
            return ("arithmetic", "-", ("literal", 0), self.unary())
        self.accept("+")
        value = self.parts(self.primary())
        if self.accept("at", "time", "zone"):
            return ("zoned", value, self.primary())
        return value

    def parts(self, value):
        """Elements, values of keys and fields behind an expression."""
        while self.peek() in ("[", "."):
            if self.accept("."):
                value = ("call", "field", [value, ("literal", self.name())])
            else:
                self.expect("[")
                value = ("call", "[]", [value, self.expression()])
                self.expect("]")
        return value

    def struct_part(self):
        """A field's name, and its value."""
        value = self.expression()
        self.expect("as")
        return [("literal", self.name()), value]

    def primary(self):
        kind, text = self.tokens[self.position]
        if kind == "string":
            self.position += 1
            return ("literal", text[1:-1].replace("''", "'"))
        if kind == "number":
            self.position += 1
            return ("literal", float(text) if "." in text else int(text))
        if text == "(":
            if self.starts_query(0):
                return ("scalar", self.parenthesised(self.query))
            parts = self.parenthesised(lambda: self.comma_list(self.expression))
            return parts[0] if len(parts) == 1 else ("row", parts)
        return self.word()

    def word(self):
        constants = {"null": None, "true": True, "false": False}
        if self.peek() in constants and self.peek(1) not in (".", "("):
            value = constants[self.peek()]
            self.position += 1
            return ("literal", value)
        if self.accept("case"):
            return self.case()
        if self.accept("array", "["):
            values = self.comma_list(self.expression)
            self.expect("]")
            return ("call", "array", values)
        if self.accept("map", "["):
            values = self.comma_list(self.expression)
            self.expect("]")
            return ("call", "map", values)
        if self.accept("struct", "("):
            parts = joined(self.comma_list(self.struct_part))
            self.expect(")")
            return ("call", "struct", parts)
        if self.accept("interval"):
            amount = self.tokens[self.position][1].strip("'")
            self.position += 1
            unit = UNIT_MICROSECONDS[self.name().lower().removesuffix("s")]
            return ("literal", timedelta(microseconds=int(amount) * unit))
        if self.accept("exists"):
            return ("exists", self.parenthesised(self.query))
        if self.peek() == "cast" and self.peek(1) == "(":
            self.position += 1
            return self.parenthesised(self.cast)
        if (
            self.peek() in ("date", "timestamp", "decimal")
            and self.tokens[self.position + 1][0] == "string"
        ):
            type_name = self.name().upper()
            return ("cast", self.primary(), type_name)
        following = self.tokens[self.position + 1 : self.position + 2]
        if self.peek() == "x" and following and following[0][0] == "string":
            self.position += 1
            return ("literal", bytes.fromhex(self.primary()[1]))
        if self.peek() in RANKINGS and self.peek(1) == "(":
            return self.ranking(self.name().lower())
        if self.peek(1) == "(":
            called = self.call()
            if self.peek() != "over":
                return called
            _, by, order, frame = self.over()
            if called[0] == "call":
                return ("ranking", called[1], by, order, called[2], frame)
            _, name, given, _, _, condition = called
            if condition:
                value = ("literal", True) if given is None else given
                given = ("case", [(condition, value)], ("literal", None))
            return ("ranking", name, by, order, [given], frame)
        name = self.name()
        return ("column", name, self.name()) if self.accept(".") else ("column", None, name)

    def cast(self):
        value = self.expression()
        self.expect("as")
        name = self.type_name()
        if value[0] != "zoned":
            return ("cast", value, name)
        if name == "TIMESTAMP":
            return ("call", "first_in", [("cast", value[1], name), value[2]])
        return ("cast", ("call", "shown_in", list(value[1:])), name)

    def type_name(self):
        name = self.name().upper()
        if name == "DECIMAL" and self.peek() == "(":
            digits = self.parenthesised(lambda: self.comma_list(self.expression))
            name += f"({', '.join(str(number) for _, number in digits)})"
        if name == "ARRAY" and self.accept("<"):
            name = f"ARRAY<{self.type_name()}>"
            self.expect(">")
        if name in ("STRUCT", "MAP") and self.accept("<"):
            read = self.type_name if name == "MAP" else lambda: f"{self.name()} {self.type_name()}"
            name = f"{name}<{', '.join(self.comma_list(read))}>"
            self.expect(">")
        return name

    def case(self):
        """CASE x WHEN v … means CASE WHEN x = v …"""
        subject = None if self.peek() == "when" else self.expression()
        branches = []
        while self.accept("when"):
            condition = self.expression()
            if subject is not None:
                condition = ("compare", "=", subject, condition)
            self.expect("then")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.accept("else") else ("literal", None)
        self.expect("end")
        return ("case", branches, otherwise)

    def call(self):
        name = self.peek()
        self.position += 1
        self.expect("(")
        if name in AGGREGATES:
            return self.aggregate(name)
        arguments = [] if self.peek() == ")" else self.comma_list(self.expression)
        self.expect(")")
        if name in IN_ORDER or name in OWN_AGGREGATES:
            return ("in_order", name, arguments, self.filter())
        *others, last = arguments or [None]
        if name == "date_format" and arguments[0][0] == "zoned":
            return ("call", name, [("call", "shown_in", list(arguments[0][1:])), arguments[1]])
        if last is None or last[0] != "zoned":
            return ("call", name, arguments)
        if name == "date_trunc":
            return ("call", "truncated_in", [*others, *last[1:]])
        return ("call", name, [*others, ("call", "shown_in", list(last[1:]))])

    def aggregate(self, name):
        if self.accept("*"):
            self.expect(")")
            return ("aggregate", name, None, False, None, self.filter())
        if self.peek(1) == "." and self.peek(2) == "*":
            variable = self.name()
            self.expect(".", "*", ")")
            return ("aggregate", name, ("star", variable), False, None, None)
        distinct = self.accept("distinct")
        arguments = self.comma_list(self.expression)
        self.expect(")")
        if name == "count" and len(arguments) > 1:
            arguments = [("row", arguments)]
        parameter = arguments[1] if len(arguments) > 1 else None
        return ("aggregate", name, arguments[0], distinct, parameter, self.filter())

    def filter(self):
        """FILTER (WHERE condition) behind an aggregate function."""
        if not self.accept("filter", "("):
            return None
        self.expect("where")
        condition = self.expression()
        self.expect(")")
        return condition
