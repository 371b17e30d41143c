"""The FROM clause of CQL: its items, windows in brackets, SAMPLE, joins, Istream( … )."""

from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from millpond.cql.text.durations import microseconds
from millpond.cql.text.places import StatementError

TO_STREAM = ("ISTREAM", "DSTREAM", "RSTREAM")
AROUND = (*TO_STREAM, "RELATION")
"""What stands around a query in parentheses."""
OUTRIGHT = ("RELATION", "STREAM")
"""What stands before a query, as in AS RELATION SELECT."""
FUNCTIONS = ("TUMBLE", "HOP", "SESSION")
"""The windows with bounds, which are table functions too."""
SET_OPERATIONS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
RECURSIVE = (
    "WITH RECURSIVE is not supported: a fixed point is not kept up to date as its inputs change; "
    "leave out RECURSIVE and name each level: WITH a AS (…), b AS (SELECT … FROM a, …)"
)
ROWS_OR_RANGE = (
    "a window is cut by ROWS or by RANGE, not both; intersect two: FROM (SELECT * FROM S [RANGE 1 "
    "HOUR] INTERSECT ALL SELECT * FROM S [PARTITION BY a ROWS 10]) T"
)
MATCH_IS_FIRST = (
    "MATCH_RECOGNIZE stands right behind a stream, and its alias and window behind it: FROM S "
    "MATCH_RECOGNIZE (…) AS M"
)
_CLAUSES = {
    "TABLESAMPLE": "use SAMPLE(percent)",
    "PIVOT": "give each column its aggregate: sum(a) FILTER (WHERE b = 1) AS b1",
    "UNPIVOT": "use UNION ALL",
}
_ITEMS = {
    "LATERAL": "LATERAL stands before a subquery in parentheses: FROM a, LATERAL (SELECT …) b",
    "UNNEST": "UNNEST is not supported in continuous queries; ask for elements by their place, "
    "a[1], or push a tuple for each element",
    "VALUES": "VALUES is not supported in continuous queries; put constants into a relation: "
    "INSERT INTO R VALUES (1), (2)",
}


class Window(exp.Expression):
    """A window specification; ``kind`` is NOW, UNBOUNDED, RANGE, ROWS, UNTIL, TUMBLE, HOP or
    SESSION.

    ``time`` is the column that a table function says is the stream's time.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "length": False,
        "slide": False,
        "offset": False,
        "partition": False,
        "where": False,
        "time": False,
        "until": False,
    }


class Length(exp.Expression):
    """A number with an optional unit of time."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": False}


class IntervalLiteral(exp.Expression):
    """INTERVAL '5' MINUTE; ``this`` is its microseconds."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class ToStream(exp.Expression):
    """Istream, Dstream or Rstream; around a query (``this``) or as a word after SELECT.

    Also RELATION and STREAM before a query, which say outright what it is.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "kind": True}


class Final(exp.Expression):
    """EMIT FINAL."""

    arg_types: ClassVar[dict[str, bool]] = {}


class Named(exp.Expression):
    """One name of WITH: name [(column, …)] AS (query)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": True, "columns": False}


class WithNames(exp.Expression):
    """WITH name AS (query), … before a query."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class FromItem(exp.Expression):
    """One input of FROM: a name, subquery, stream or parenthesised join, and what is put on it."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "alias": False,
        "columns": False,
        "window": False,
        "sample": False,
        "lateral": False,
    }


class JoinedItems(exp.Expression):
    """Two inputs of FROM joined; ``kind`` as in the algebra, "cross" without a condition."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "kind": True,
        "on": False,
        "using": False,
        "natural": False,
    }


def all_of(item: FromItem) -> exp.Select:
    """SELECT * FROM item."""
    start = item.meta["start"]
    star = exp.Star()
    star.meta["start"] = start
    select = exp.Select(expressions=[star], from_=exp.From(this=item))
    select.meta["start"] = start
    return select


class FromParser(Parser):
    """Parses what stands after FROM."""

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Refuses the text at the current token."""
        raise StatementError(message, None)

    def _expect(self, kind: TokenType, words: str) -> None:
        if not self._match(kind):
            self.raise_error(f"expected {words}")

    def _query(self) -> exp.Expr | None:
        raise NotImplementedError

    def _match_recognize(self, body: exp.Expr) -> exp.Expr:
        raise NotImplementedError

    def _parse_from(
        self, joins: bool = False, skip_from_token: bool = False, consume_pipe: bool = False
    ) -> exp.From | None:
        if not self._match(TokenType.FROM):
            return None
        token = self._prev
        this = self._joined()
        while self._match(TokenType.COMMA):
            this = JoinedItems(this=this, expression=self._joined(), kind="cross")
        return self.expression(exp.From(this=this), token)

    def _joined(self) -> exp.Expr:
        """An item and the joins that follow it."""
        this: exp.Expr = self._item()
        while join := self._join(this):
            this = join
        return this

    def _join(self, left: exp.Expr) -> JoinedItems | None:
        token, index = self._curr, self._index
        natural = self._match(TokenType.NATURAL)
        kind = self._join_kind()
        if not self._match(TokenType.JOIN):
            self._retreat(index)
            return None
        join = JoinedItems(this=left, expression=self._item(), kind=kind, natural=natural)
        join.update_positions(token)
        if natural or kind == "cross":
            return join
        if self._match(TokenType.USING):
            join.set("using", self._names())
        elif self._match(TokenType.ON):
            join.set("on", self._written() or self.raise_error("something is missing"))
        else:
            self.raise_error("expected ON or USING (or write CROSS JOIN)")
        return join

    def _written(self) -> exp.Expr | None:
        """An expression, marked with the offsets of its text."""
        first = self._curr
        this = self._parse_disjunction()
        if this is not None:
            this.meta["text"] = (first.start, self._prev.end + 1)
        return this

    def _join_kind(self) -> str:
        if self._match(TokenType.CROSS):
            return "cross"
        if self._match(TokenType.INNER):
            return "inner"
        side = self._match_set((TokenType.LEFT, TokenType.RIGHT, TokenType.FULL))
        word = self._prev.text.lower() if side else ""
        if word in ("left", "") and self._match_set((TokenType.SEMI, TokenType.ANTI)):
            return self._prev.text.lower()
        if word:
            self._match(TokenType.OUTER)
        return word or "inner"

    def _names(self) -> list[exp.Identifier]:
        self._expect(TokenType.L_PAREN, "(")
        names = self._parse_csv(self._name)
        self._expect(TokenType.R_PAREN, ")")
        return names

    def _name(self) -> exp.Identifier | None:
        if not self._match_set((TokenType.VAR, TokenType.IDENTIFIER)):
            return None
        token = self._prev
        quoted = token.token_type is TokenType.IDENTIFIER
        return exp.Identifier(this=token.text, quoted=quoted).update_positions(token)

    def _item(self) -> FromItem:
        """An item with its alias, window and SAMPLE, in any order."""
        token = self._curr
        is_lateral = token.text.upper() == "LATERAL" and self._next.token_type is TokenType.L_PAREN
        if is_lateral:
            self._advance()
        item = self._window_function()
        item = item or FromItem(this=self._match_recognize(self._item_body()))
        item.update_positions(token).set("lateral", is_lateral)
        while True:
            if self._match(TokenType.L_BRACKET, advance=False):
                self._set_once(item, "window", self._bracket)
            elif self._at_sample():
                first = self._curr.start
                self._set_once(item, "sample", self._sample)
                item.meta["sample_text"] = (first, self._prev.end + 1)
            elif item.args.get("alias") is None and (alias := self._alias()):
                self._refuse_clause(alias)
                item.set("alias", alias)
                if self._match(TokenType.L_PAREN, advance=False):
                    item.set("columns", self._names())
            elif self._at_call("MATCH_RECOGNIZE"):
                raise StatementError(MATCH_IS_FIRST, self._curr.start)
            else:
                item.meta["end"] = self._prev.end + 1
                return item

    def _refuse_clause(self, alias: exp.Identifier) -> None:
        """Names clauses of other dialects, which would read as an alias otherwise."""
        word = alias.name.upper()
        if word in _CLAUSES and self._match(TokenType.L_PAREN, advance=False):
            advice = f"; {_CLAUSES[word]}" if _CLAUSES[word] else ""
            raise StatementError(
                f"{word} is not supported in continuous queries{advice}", alias.meta["start"]
            )

    def _set_once(self, item: FromItem, part: str, rule: Any) -> None:
        if item.args.get(part) is not None:
            self.raise_error(f"a source has at most one {part}")
        item.set(part, rule())

    def _item_body(self) -> exp.Expr:
        if to_stream := self._to_stream():
            return to_stream
        if self._match(TokenType.L_PAREN):
            return self._parenthesised()
        word = self._curr.text.upper()
        if word in _ITEMS and self._curr.token_type is not TokenType.STRING:
            raise StatementError(_ITEMS[word], self._curr.start)
        name = self._name()
        if name is None:
            self.raise_error("expected the name of a stream, relation or view")
        if self._match_set((TokenType.DOT, TokenType.L_PAREN), advance=False):
            self.raise_error("names in FROM are plain names of streams, relations and views")
        return name

    def _parenthesised(self) -> exp.Expr:
        """A subquery, or a join in parentheses; decided without going back."""
        token = self._prev
        first = self._curr.token_type
        this: exp.Expr | None
        if first in (TokenType.SELECT, TokenType.WITH, TokenType.VALUES) or self._at_to_stream():
            this = self._query()
        else:
            this = self._joined()
            if isinstance(this, FromItem):
                this = self._combined(this)
        self._expect(TokenType.R_PAREN, ")")
        if this is None:
            self.raise_error("expected a query")
        if isinstance(this, (exp.Query, ToStream)) and not isinstance(this, exp.Subquery):
            this = exp.Subquery(this=this)
        return this.update_positions(token)

    def _combined(self, item: FromItem) -> exp.Expr | None:
        """What stands alone in parentheses: an item, or the first of a set operation."""
        is_bare = not any(item.args.get(part) for part in ("alias", "window", "sample"))
        if is_bare and isinstance(item.this, exp.Subquery):
            return self._parse_set_operations(item.this)
        if self._match_set(SET_OPERATIONS, advance=False) and item.args.get("alias") is None:
            return self._parse_set_operations(all_of(item))
        body: exp.Expr = item.this
        return body if is_bare else item

    def _bare(self) -> exp.Select | None:
        """A name that stands for all of it, as in A EXCEPT B."""
        if self._curr.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            return None
        token = self._curr
        item = FromItem(this=self._name()).update_positions(token)
        if self._match(TokenType.L_BRACKET, advance=False):
            item.set("window", self._bracket())
        item.meta["end"] = self._prev.end + 1
        ends = (*SET_OPERATIONS, TokenType.R_PAREN, TokenType.SEMICOLON)
        if self._curr and not self._match_set(ends, advance=False):
            self.raise_error("expected a query", token)
        return all_of(item)

    def _with_names(self) -> list[Named]:
        """The names of WITH, which is behind us."""
        if self._match_text_seq("RECURSIVE"):
            raise StatementError(RECURSIVE, self._prev.start)
        return self._parse_csv(self._named)

    def _named(self) -> Named | None:
        token = self._curr
        name = self._name() or self.raise_error("expected a name after WITH")
        has_columns = self._match(TokenType.L_PAREN, advance=False)
        columns = self._names() if has_columns else None
        self._expect(TokenType.ALIAS, "AS")
        self._expect(TokenType.L_PAREN, "(")
        query = self._query() or self.raise_error("expected a query")
        self._expect(TokenType.R_PAREN, ")")
        return Named(this=query, alias=name, columns=columns).update_positions(token)

    def _alias(self, explicit: bool = False) -> exp.Identifier | None:
        """[AS] name."""
        if self._match(TokenType.ALIAS):
            return self._name() or self.raise_error("expected a name after AS")
        return None if explicit else self._name()

    def _outright(self) -> ToStream | None:
        """RELATION or STREAM before a query."""
        token = self._curr
        if token.token_type is not TokenType.VAR or token.text.upper() not in OUTRIGHT:
            return None
        self._advance()
        query = self._query() or self.raise_error("expected a query")
        return ToStream(this=query, kind=token.text.upper()).update_positions(token)

    def _at_to_stream(self) -> bool:
        return (
            self._curr.token_type is TokenType.VAR
            and self._curr.text.upper() in AROUND
            and self._next.token_type is TokenType.L_PAREN
        )

    def _to_stream(self) -> ToStream | None:
        """Istream(query), Relation(query)."""
        if not self._at_to_stream():
            return None
        token = self._curr
        self._advance(2)
        query = self._query() or self.raise_error("expected a query")
        self._expect(TokenType.R_PAREN, ")")
        return ToStream(this=query, kind=token.text.upper()).update_positions(token)

    def _to_stream_word(self) -> ToStream | None:
        """ISTREAM after SELECT, unless it is plainly a column of that name."""
        ends = (TokenType.COMMA, TokenType.FROM, TokenType.DOT, TokenType.ALIAS)
        if (
            self._curr.token_type is not TokenType.VAR
            or self._curr.text.upper() not in TO_STREAM
            or self._next.token_type in ends
        ):
            return None
        self._advance()
        word = ToStream(kind=self._prev.text.upper())
        return word.update_positions(self._prev)

    def _at_sample(self) -> bool:
        if self._curr.token_type is TokenType.NUMBER:
            return self._next.token_type is TokenType.MOD
        return (
            self._match_text_seq("SAMPLE", advance=False)
            and self._next.token_type is TokenType.L_PAREN
        )

    def _sample(self) -> exp.Expr:
        """SAMPLE(10), or 10% SAMPLE."""
        if self._curr.token_type is TokenType.NUMBER:
            percent = self._parse_number() or self.raise_error("expected a percentage")
            self._advance()
            if not self._match_text_seq("SAMPLE"):
                self.raise_error("expected SAMPLE")
            return percent
        self._advance(2)
        token = self._curr
        negative = self._match(TokenType.DASH)
        number = self._parse_number() or self.raise_error("expected a percentage")
        self._expect(TokenType.R_PAREN, ")")
        return exp.Neg(this=number).update_positions(token) if negative else number

    def _bracket(self) -> Window:
        """A window in brackets."""
        token = self._curr
        self._advance()
        partition = self._parse_csv(self._parse_column) if self._partition_by() else None
        first = self._curr.start
        window = Window(kind=self._window_kind(), partition=partition).update_positions(token)
        window.meta["kind_text"] = (first, self._prev.end + 1)
        if window.args["kind"] == "UNTIL":
            window.set("until", self._written() or self.raise_error("something is missing"))
        elif window.args["kind"] not in ("NOW", "UNBOUNDED"):
            self._window_lengths(window)
        self._match_text_seq("PRECEDING")
        if window.args["kind"] == "SESSION" and partition is None and self._partition_by():
            window.set("partition", self._parse_csv(self._parse_column))
        if self._match(TokenType.WHERE):
            window.set("where", self._written() or self.raise_error("something is missing"))
        self._expect(TokenType.R_BRACKET, "]")
        return window

    # -- windows as table functions ---------------------------------------------------------

    def _at_call(self, *words: str) -> bool:
        """Whether one of the words comes next, and then a parenthesis."""
        is_word = self._curr.token_type is TokenType.VAR and self._curr.text.upper() in words
        return is_word and self._next.token_type is TokenType.L_PAREN

    def _window_function(self) -> FromItem | None:
        """TABLE(TUMBLE(TABLE S, DESCRIPTOR(time), length)), also without the outer TABLE."""
        in_table = self._at_call("TABLE")
        if in_table:
            self._advance(2)
        if not self._at_call(*FUNCTIONS):
            return self.raise_error("expected TUMBLE(, HOP( or SESSION(") if in_table else None
        item = self._function_of_window()
        self._expect(TokenType.R_PAREN, ")")
        if in_table:
            self._expect(TokenType.R_PAREN, ")")
        return item

    def _function_of_window(self) -> FromItem:
        window = Window(kind=self._curr.text.upper()).update_positions(self._curr)
        self._advance(2)
        if not self._at_call("TABLE"):
            self._match_text_seq("TABLE")
        item = FromItem(this=self._item_body(), window=window)
        if window.args["kind"] == "SESSION" and self._partition_by():
            window.set("partition", self._partition_of_function())
        self._expect(TokenType.COMMA, ", DESCRIPTOR(…)")
        if not self._match_text_seq("DESCRIPTOR"):
            self.raise_error("expected DESCRIPTOR(column), the time of the stream")
        window.set("time", self._names())
        for part in ("slide", "length") if window.args["kind"] == "HOP" else ("length",):
            self._expect(TokenType.COMMA, f", and the {part} of the window")
            window.set(part, self._length())
        if self._match(TokenType.COMMA):
            window.set("offset", self._length())
        return item

    def _partition_of_function(self) -> list[exp.Expr]:
        """The columns behind PARTITION BY, in parentheses or not, up to DESCRIPTOR."""
        if self._match(TokenType.L_PAREN):
            columns = self._parse_csv(self._parse_column)
            self._expect(TokenType.R_PAREN, ")")
            return columns
        columns = [self._column()]
        while self._next.text.upper() != "DESCRIPTOR" and self._match(TokenType.COMMA):
            columns.append(self._column())
        return columns

    def _column(self) -> exp.Expr:
        return self._parse_column() or self.raise_error("expected a column")

    def _partition_by(self) -> bool:
        return bool(self._match(TokenType.PARTITION_BY))

    def _window_kind(self) -> str:
        if not self._match_texts(("NOW", "UNBOUNDED", "RANGE", "ROWS", "UNTIL", *FUNCTIONS)):
            self.raise_error(
                "expected NOW, UNBOUNDED, RANGE, ROWS, UNTIL, TUMBLE, HOP, SESSION or PARTITION BY"
            )
        kind = self._prev.text.upper()
        is_unbounded = kind in ("RANGE", "ROWS") and self._match_text_seq("UNBOUNDED")
        return "UNBOUNDED" if is_unbounded else kind

    def _window_lengths(self, window: Window) -> None:
        window.set("length", self._length())
        self._match_text_seq("PRECEDING")
        if self._match_texts(("RANGE", "ROWS"), advance=False):
            raise StatementError(ROWS_OR_RANGE, self._curr.start)
        if self._match_text_seq("SLIDE"):
            window.set("slide", self._length())
        if self._match(TokenType.OFFSET):
            window.set("offset", self._length())

    def _length(self) -> Length:
        token = self._curr
        is_interval = self._match(TokenType.INTERVAL)
        if is_interval and self._curr.token_type is TokenType.STRING:
            return self._quoted_length(token)
        negative = self._match(TokenType.DASH)
        number = self._parse_number() or (self._parse_string() if is_interval else None)
        if number is None:
            self.raise_error("expected a number")
        unit = self._unit()
        if is_interval and unit is not None:
            microseconds(number.name, unit.name, token.start)
        return self._made_length(exp.Neg(this=number) if negative else number, unit, token)

    def _quoted_length(self, token: Token) -> Length:
        """What stands behind INTERVAL: '10' SECONDS, or '1 minute 30 seconds'."""
        text = self._curr
        self._advance()
        unit = self._unit()
        if unit is None and any(map(str.isalpha, text.text)):
            number = exp.Literal.number(microseconds(text.text, None, text.start))
            return self._made_length(number, exp.to_identifier("MICROSECONDS"), token)
        if unit is not None:
            microseconds(text.text, unit.name, text.start)
        return self._made_length(exp.Literal.string(text.text), unit, token)

    def _unit(self) -> exp.Expr | None:
        """A unit of time, if one is written."""
        others = ("SLIDE", "PRECEDING", "FOLLOWING", "RANGE", "ROWS", "DEFINE", "SUBSET")
        if self._curr.token_type is not TokenType.VAR or self._curr.text.upper() in others:
            return None
        return self._name()

    def _made_length(self, amount: exp.Expr, unit: exp.Expr | None, token: Token) -> Length:
        length = Length(this=amount, unit=unit).update_positions(token)
        length.meta["text"] = (token.start, self._prev.end + 1)
        return length
