"""CQL's expressions and SELECT, as a sqlglot parser made strict.

sqlglot parses generously; this subclass keeps the grammar CQL documents, marks every node with
the offset of its first token, and refuses the rest of SQL by name. All functions parse as plain
calls: ``functions.py`` decides which exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import Dialect, exp
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from millpond.cql.text.constructors import LISTED
from millpond.cql.text.durations import microseconds
from millpond.cql.text.elsewhere import FROM_WINDOW, NUMBERED, TRY_CAST, advice
from millpond.cql.text.from_clause import Final, FromParser, IntervalLiteral, WithNames
from millpond.cql.text.grouping_sets import MOST_SETS, GroupingSets, all_sets
from millpond.cql.text.match_recognize import MatchRecognizeParser
from millpond.cql.text.paper_lists import without_paper_parentheses
from millpond.cql.text.places import StatementError
from millpond.cql.text.ranking import (
    FrameBound,
    FrameText,
    Limit,
    Order,
    Ranking,
    Sorting,
    filtered,
    is_over,
)
from millpond.cql.text.tokens import CqlTokenizer
from millpond.cql.text.type_names import TypeReader

T = TypeVar("T")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?")

_USE = {
    "OFFSET": "rank the rows with ROW_NUMBER() OVER (ORDER BY …) in a subquery",
    "QUALIFY": "have the rank in a subquery, and WHERE around it",
    "SORT BY": "a continuous result has no order",
    "CLUSTER BY": "a continuous result has no order",
    "DISTRIBUTE BY": "a continuous result has no order",
    "OVER": "it goes with ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, "
    "count, sum, avg, min and max; for other functions put a window in brackets after the stream "
    "in FROM and use GROUP BY",
    "WITHIN": "use percentile(x, fraction), or string_agg(x, ', '), in order of time and arrival",
    "a list of values in parentheses": "rows of values are compared by = and <> and looked for by "
    "IN; for others write a > 1 OR (a = 1 AND b > 2)",
    "^": "write power(x, y)",
    "a rank or a function OVER inside an expression or condition": "have it as a column of a "
    "subquery in FROM, and WHERE around it",
    "GROUP BY ALL": "name the columns, or their positions: GROUP BY 1, 2",
    "a set operation BY NAME": "name the columns in the same order on both sides",
    "VALUES": "a query reads streams and relations; put constants into a relation with INSERT",
}


WITH_IS_FIRST = (
    "WITH stands before the whole query or a query in FROM: WITH a AS (SELECT …) SELECT … FROM a"
)

_NO_ORDER_INSIDE = (
    "ORDER BY in an aggregate function is not supported: its rows go by time and arrival, or by "
    "their values where FROM is not one stream; max_by(x, y) is the x of the largest y"
)
INTO_FROM = "put the query into FROM: SELECT * FROM (…) T ORDER BY … LIMIT n"


def unsupported(words: str, offset: int | None) -> StatementError:
    """The error that names SQL which CQL does not have, and what to write instead."""
    advice = f"; {_USE[words]}" if words in _USE else ""
    return StatementError(f"{words} is not supported in continuous queries{advice}", offset)


def _refuse(parser: CqlParser) -> NoReturn:
    token = parser._curr
    raise unsupported(" ".join(token.text.upper().split()), token.start)


_REFUSED_MODIFIERS = (
    TokenType.SORT_BY,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.OFFSET,
    TokenType.QUALIFY,
)


class CqlParser(MatchRecognizeParser):
    """Parses a query or an expression from CQL tokens."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CAST": lambda self: self._cast(),
        "EXTRACT": lambda self: self._extract(),
        "TRY_CAST": lambda self: self._refuse_call("TRY_CAST", TRY_CAST),
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": lambda self: self._parse_case()
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        TokenType.WHERE: lambda self: ("where", self._clause(exp.Where)),
        TokenType.GROUP_BY: lambda self: ("group", self._group()),
        TokenType.HAVING: lambda self: ("having", self._clause(exp.Having)),
        TokenType.ORDER_BY: lambda self: ("order", self._order()),
        TokenType.LIMIT: lambda self: ("limit", self._limit()),
        TokenType.FETCH: lambda self: ("limit", self._fetch()),
        TokenType.FINAL: lambda self: ("final", self._final()),
        **dict.fromkeys(_REFUSED_MODIFIERS, _refuse),
    }
    QUERY_MODIFIER_TOKENS: ClassVar[set[TokenType]] = set(QUERY_MODIFIER_PARSERS)
    TABLE_ALIAS_TOKENS: ClassVar[Any] = FromParser.TABLE_ALIAS_TOKENS - {TokenType.FINAL}
    AMBIGUOUS_ALIAS_TOKENS: ClassVar[Any] = ()
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {}

    def query(self, tokens: list[Token], text: str) -> exp.Expr:
        """The syntax tree of a query."""
        rule = self._outright_or_query
        return self._whole(rule, without_paper_parentheses(tokens), text)

    def _outright_or_query(self) -> exp.Expr | None:
        return self._outright() or self._query()

    def condition(self, tokens: list[Token], text: str) -> exp.Expr:
        """The syntax tree of one expression."""
        return self._whole(self._parse_disjunction, tokens, text)

    def _whole(self, rule: Callable[[], Any], tokens: list[Token], text: str) -> exp.Expr:
        trees = self._parse(lambda _: rule(), tokens, text)
        if not trees or trees[0] is None:
            self.raise_error("expected a query")
        tree: exp.Expr = trees[0]
        return tree

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Turns sqlglot's wording into a fault at the offending token."""
        place = token or self._curr
        if message.startswith("Required "):
            message = "something is missing"
        elif message.startswith("Expecting "):
            message = f"expected {message.removeprefix('Expecting ')}"
        elif message.startswith("Invalid expression"):
            raise StatementError(f"unexpected {place.text!r}{self._advice()}", place.start)
        found = f" before {place.text!r}" if place else " at the end of the statement"
        offset = place.start if place else len(self.sql)
        raise StatementError(message + found + self._advice(), offset)

    def _refuse_call(self, name: str, instead: str) -> NoReturn:
        """A function that is not called as others are."""
        raise StatementError(f"{name} is not supported; {instead}", self._prev.start)

    def _advice(self) -> str:
        """What to write instead of what other systems write here."""
        near = [t for t in (self._prev, self._curr) if t and t.token_type is not TokenType.STRING]
        around = [t.text for t in (self._prev, self._curr, self._next) if t]
        return advice([t.text for t in near], around)

    def _query(self) -> exp.Expr | None:
        token = self._curr
        if self._match(TokenType.WITH):
            names = self._with_names()
            query = self._outright() or self._query() or self.raise_error("expected a query")
            return WithNames(this=query, expressions=names).update_positions(token)
        if to_stream := self._to_stream():
            if self._curr.token_type in self.QUERY_MODIFIER_TOKENS:
                raise StatementError(INTO_FROM, self._curr.start)
            return to_stream
        if bare := self._bare():
            return self._parse_set_operations(bare)
        return self._parse_ddl_select()

    def _parse_with(self, skip_with_token: bool = False) -> None:
        if self._match(TokenType.WITH, advance=False):
            raise StatementError(WITH_IS_FIRST, self._curr.start)

    def _parse_hint(self) -> exp.Expr | None:  # type: ignore[override]
        """Hints are not part of CQL; at their place stands the operator of SELECT ISTREAM."""
        return self._to_stream_word()

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token = self._curr
        if self._match(TokenType.VALUES, advance=False):
            _refuse(self)
        if kwargs.get("parse_set_operation") is False and (bare := self._bare()):
            return bare  # on the right of a set operation
        if self._match(TokenType.FROM, advance=False):
            self.raise_error("expected SELECT")
        this = super()._parse_select_query(*args, **kwargs)
        return this if this is None or "start" in this.meta else this.update_positions(token)

    def _parse_expression(self) -> exp.Expr | None:
        """An item of a SELECT list."""
        this = self._written()
        return None if this is None else self._parse_alias(this)

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        alias = self._alias(explicit)
        return this if alias is None else self.expression(exp.Alias(this=this, alias=alias))

    def _parse_csv(
        self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA
    ) -> list[T]:
        first = parse_method()
        items = [] if first is None else [first]
        while self._match(sep):
            item = parse_method()
            if item is None or not items:
                self.raise_error("something is missing")
            items.append(item)
        return items

    def _clause(self, kind: type[exp.Expr]) -> exp.Expr:
        """WHERE or HAVING."""
        self._advance()
        return self.expression(kind(this=self._written()))

    def _final(self) -> exp.Expr:
        """EMIT FINAL."""
        self._advance()
        return Final().update_positions(self._prev)

    def _order(self) -> Order:
        """ORDER BY e [ASC | DESC] [NULLS FIRST | LAST], …"""
        self._advance()
        token = self._prev
        keys = self._parse_csv(self._sort_key)
        if not keys:
            self.raise_error("something is missing")
        return Order(expressions=keys).update_positions(token)

    def _sort_key(self) -> Sorting | None:
        this = self._written()
        if this is None:
            return None
        key = Sorting(this=this).update_positions(this)
        key.set("descending", bool(self._match_texts(("ASC", "DESC"))) and self._said("DESC"))
        key.set("nulls_first", not key.args["descending"])
        if self._match_text_seq("NULLS"):
            if not self._match_texts(("FIRST", "LAST")):
                self.raise_error("expected FIRST or LAST")
            key.set("nulls_first", self._said("FIRST"))
        return key

    def _said(self, word: str) -> bool:
        """Whether that was the last word."""
        return bool(self._prev.text.upper() == word)

    def _limit(self) -> Limit:
        """LIMIT n [WITH TIES]"""
        self._advance()
        number = self._parse_number() or self.raise_error("expected a number of rows")
        ties = self._match(TokenType.WITH) and (
            self._match_text_seq("TIES") or self.raise_error("expected TIES")
        )
        return Limit(this=number, ties=bool(ties)).update_positions(number)

    def _fetch(self) -> Limit:
        """FETCH FIRST n ROWS ONLY | WITH TIES"""
        self._advance()
        self._match_texts(("FIRST", "NEXT"))
        number = self._parse_number() or self.raise_error("expected a number of rows")
        self._match_texts(("ROW", "ROWS"))
        ties = self._match(TokenType.WITH)
        if not self._match_text_seq("TIES" if ties else "ONLY"):
            self.raise_error("expected ONLY or WITH TIES")
        return Limit(this=number, ties=bool(ties)).update_positions(number)

    def _over(self, call: exp.Expr) -> Ranking:
        """OVER ([PARTITION BY e, …] [ORDER BY e, …] [frame]) behind a function."""
        self._advance()
        if not self._match(TokenType.L_PAREN):
            raise StatementError(f"windows have no names; {FROM_WINDOW}", self._prev.start)
        made = Ranking(kind=call.name.lower(), partition=[], arguments=call.expressions)
        if self._match(TokenType.PARTITION_BY):
            made.set("partition", self._parse_csv(self._written))
        if self._match(TokenType.ORDER_BY, advance=False):
            made.set("order", self._order())
        elif made.is_rank:
            self.raise_error("expected ORDER BY, and what a rank goes by,")
        if self._match_texts(("ROWS", "RANGE", "GROUPS"), advance=False):
            made.set("frame", self._frame())
        self._match_r_paren()
        return made.update_positions(call)

    def _frame(self) -> FrameText:
        """ROWS | RANGE BETWEEN bound AND bound; a single bound ends with the row itself."""
        token = self._curr
        unit = token.text.upper()
        if unit == "GROUPS":
            message = "a frame of GROUPS is not supported; write ROWS or RANGE BETWEEN … AND …"
            raise StatementError(message, token.start)
        self._advance()
        if self._match(TokenType.BETWEEN):
            start = self._frame_bound()
            self._expect(TokenType.AND, "AND, and where the frame ends")
            end = self._frame_bound()
        else:
            start = self._frame_bound()
            end = FrameBound(this=exp.Literal.number(0), side="FOLLOWING")
        if self._match_text_seq("EXCLUDE", advance=False):
            message = "EXCLUDE is not supported in a frame; subtract what the row adds itself"
            raise StatementError(message, self._curr.start)
        return FrameText(unit=unit, start=start, end=end).update_positions(token)

    def _frame_bound(self) -> FrameBound:
        """UNBOUNDED | n | INTERVAL … before PRECEDING or FOLLOWING, or CURRENT ROW."""
        token = self._curr
        if self._match_text_seq("CURRENT", "ROW"):
            made = FrameBound(this=exp.Literal.number(0), side="FOLLOWING")
            return made.update_positions(token)
        length = None if self._match_text_seq("UNBOUNDED") else self._length()
        if not self._match_texts(("PRECEDING", "FOLLOWING")):
            self.raise_error("expected PRECEDING or FOLLOWING")
        return FrameBound(this=length, side=self._prev.text.upper()).update_positions(token)

    def _group(self) -> exp.Expr:
        token = self._curr
        self._advance()
        if self._match(TokenType.ALL, advance=False):
            raise unsupported("GROUP BY ALL", self._curr.start)
        elements = self._parse_csv(lambda: self._grouping_sets() or self._written())
        if not elements:
            self.raise_error("something is missing")
        if not any(isinstance(each, GroupingSets) for each in elements):
            return self.expression(exp.Group(expressions=elements), token)
        sets = all_sets(elements)
        if len(sets) > MOST_SETS:
            message = f"GROUP BY makes {len(sets):,} grouping sets; at most {MOST_SETS} are allowed"
            raise StatementError(message, token.start)
        return self.expression(exp.Group(grouping_sets=sets), token)

    def _grouping_sets(self) -> GroupingSets | None:
        """ROLLUP (…), CUBE (…) or GROUPING SETS (…)."""
        token = self._curr
        kind = token.text.upper() if token.token_type is TokenType.VAR else ""
        is_one = kind in ("ROLLUP", "CUBE") and self._next.token_type is TokenType.L_PAREN
        if not is_one and not self._match_text_seq("GROUPING", "SETS", advance=False):
            return None
        self._advance(1 if is_one else 2)
        self._expect(TokenType.L_PAREN, "(")
        items = self._parse_csv(self._grouping_item)
        self._expect(TokenType.R_PAREN, ")")
        return GroupingSets(kind=kind, expressions=items).update_positions(token)

    def _grouping_item(self) -> exp.Expr | None:
        """(a, b), a, or ROLLUP and the like inside of GROUPING SETS."""
        if nested := self._grouping_sets():
            return nested
        if not self._match(TokenType.L_PAREN):
            return self._written()
        keys = self._parse_csv(self._written)
        self._expect(TokenType.R_PAREN, ")")
        return exp.Tuple(expressions=keys)

    def _parse_factor(self, parse_mod: bool = True) -> exp.Expr | None:
        """Also DIV, which is no reserved word: a name may follow that is called so."""
        this = super()._parse_factor(parse_mod=parse_mod)
        while this is not None and self._is_div():
            token = self._curr
            self._advance()
            call = exp.Anonymous(this="div", expressions=[this, self._divisor()])
            this = self.expression(call, token)
            while self._curr and (kind := _FACTORS.get(self._curr.token_type)):
                self._advance()
                this = self.expression(kind(this=this, expression=self._divisor()))
        return this

    def _divisor(self) -> exp.Expr:
        return self._parse_unary() or self.raise_error("something is missing")

    def _is_div(self) -> bool:
        ends = (TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM)
        is_word = self._curr is not None and self._curr.text.upper() == "DIV"
        return is_word and self._next is not None and self._next.token_type not in ends

    def _parse_unary(self) -> exp.Expr | None:
        token = self._curr
        this = self._at_time_zone(self._operand(token) or super()._parse_unary())
        if this is not None and "start" not in this.meta:
            this.update_positions(token)
        return this

    def _at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
        """x AT TIME ZONE 'Europe/Berlin'"""
        if this is None or not self._match_text_seq("AT", "TIME", "ZONE"):
            return this
        token = self._prev
        zone = self._parse_string() or self.raise_error("expected a time zone in quotes")
        return exp.AtTimeZone(this=this, zone=zone).update_positions(token)

    def _operand(self, token: Token) -> exp.Expr | None:
        """What can nest is recognised here, by fewer calls than sqlglot's, to nest deeper."""
        if token.token_type is TokenType.INTERVAL:
            return self._interval()
        if token.token_type is TokenType.L_PAREN:
            return self._parse_column_ops(self._parse_paren())
        if token.token_type is TokenType.CASE:
            self._advance()
            return self._parse_case()
        if self._next.token_type is TokenType.L_PAREN and token.text.upper() == "STRUCT":
            return self._parse_column_ops(self._struct(token))
        if self._next.token_type is TokenType.L_PAREN and token.token_type in self.FUNC_TOKENS:
            return self._parse_column_ops(_predicate(self._parse_function_call()))
        return self._typed_literal()

    def _interval(self) -> IntervalLiteral:
        """INTERVAL '5' MINUTE, INTERVAL 5 MINUTE, INTERVAL '1 day 2 hours'."""
        token = self._curr
        self._advance()
        amount = self._curr
        if amount.token_type not in (TokenType.STRING, TokenType.NUMBER):
            self.raise_error("expected a length of time, as in INTERVAL '5' MINUTE,")
        self._advance()
        is_number = _PLAIN_NUMBER.fullmatch(amount.text.strip()) is not None
        unit = self._name() if is_number else None
        if is_number and unit is None:
            self.raise_error("expected a unit of time")
        found = microseconds(amount.text, None if unit is None else unit.name, amount.start)
        return IntervalLiteral(this=found).update_positions(token)

    def _parse_column(self) -> exp.Expr | None:
        return _of_two_parts(super()._parse_column())

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        return _of_two_parts(super()._parse_column_ops(this))

    def _struct(self, token: Token) -> exp.Struct:
        """STRUCT(e AS a, …), or STRUCT(a, …) of columns, whose names it takes."""
        self._advance(2)
        fields = self._parse_csv(self._named_part)
        self._expect(TokenType.R_PAREN, ")")
        return exp.Struct(expressions=fields).update_positions(token)

    def _named_part(self) -> exp.Expr | None:
        value = self._parse_disjunction()
        if value is None or not self._match(TokenType.ALIAS):
            return value
        name = self._parse_id_var() or self.raise_error("expected the name of a field")
        return exp.Alias(this=value, alias=name)

    def _parse_paren(self) -> exp.Expr | None:
        """A subquery, an expression in parentheses, or a list (which the analysis refuses)."""
        token = self._curr
        if not self._match(TokenType.L_PAREN):
            return None
        query = self._parse_select()
        this = query or self._parse_disjunction()
        if this is None:
            self.raise_error("something is missing")
        if isinstance(this, exp.Subquery):
            query = this = self._parse_set_operations(this) or this
        if self._match(TokenType.COMMA):
            this = exp.Tuple(expressions=[this, *self._parse_csv(self._parse_disjunction)])
        self._match_r_paren()
        made = exp.Subquery(this=this) if query is not None else exp.Paren(this=this)
        return made.update_positions(token)

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        self._expect(TokenType.L_PAREN, "(")
        query = self._parse_select()
        if query is not None:
            found = exp.In(this=this, query=exp.Subquery(this=query))
        else:
            found = self._in_list(this)
        self._match_r_paren()
        return self.expression(found)

    def _in_list(self, this: exp.Expr | None) -> exp.In:
        items = self._parse_csv(self._parse_disjunction)
        if not items:
            self.raise_error("something is missing")
        if isinstance(items[0], exp.Subquery) and len(items) == 1:
            query = self._parse_set_operations(items[0])
            return exp.In(this=this, query=exp.Subquery(this=query))
        return exp.In(this=this, expressions=items)

    def _typed_literal(self) -> exp.Expr | None:
        """DATE '2024-01-31', TIMESTAMP '2024-01-31 12:00:00', DECIMAL '12.50' and X'CAFE'."""
        if self._next.token_type is not TokenType.STRING or self._curr.text.upper() not in (
            "DATE",
            "TIMESTAMP",
            "DECIMAL",
            "X",
        ):
            return None
        self._advance()
        word = self._prev.text.upper()
        if word == "X":
            made = exp.HexString(this=self._curr.text).update_positions(self._prev)
            self._advance()
            return self._parse_column_ops(made)
        to = exp.Var(this=DECIMAL_LITERAL if word == "DECIMAL" else word)
        to.update_positions(self._prev)
        return self._parse_column_ops(exp.Cast(this=self._parse_string(), to=to))

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        return self._parse_csv(self._parse_lambda)

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """A function's argument: an expression, DISTINCT expressions, or a subquery."""
        token = self._curr
        if self._match(TokenType.DISTINCT):
            items = self._parse_csv(self._parse_disjunction)
            return exp.Distinct(expressions=items).update_positions(token)
        self._match(TokenType.ALL)
        argument = self._parse_select() or self._parse_disjunction()
        if self._match(TokenType.ORDER_BY, advance=False):
            raise StatementError(_NO_ORDER_INSIDE, self._curr.start)
        return argument

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        if self._match(TokenType.OVER, advance=False) and is_over(this):
            return self._over(this)
        if self._next.token_type is TokenType.L_PAREN and self._match_text_seq("FILTER"):
            found = this = self._filter(this)
            if self._match(TokenType.OVER, advance=False) and is_over(found.this):
                return self._over(filtered(found))
        if isinstance(this, exp.Anonymous) and this.name.lower() in NUMBERED:
            message = f"{this.name.lower()} is not supported; {NUMBERED[this.name.lower()]}"
            raise StatementError(message, this)
        if self._match_texts(("OVER", "WITHIN"), advance=False):
            _refuse(self)
        return this

    def _filter(self, call: exp.Expr | None) -> exp.Filter:
        """What stands behind FILTER."""
        token = self._prev
        self._expect(TokenType.L_PAREN, "(")
        self._expect(TokenType.WHERE, "WHERE")
        condition = self._parse_disjunction() or self.raise_error("something is missing")
        self._expect(TokenType.R_PAREN, ")")
        return exp.Filter(this=call, expression=condition).update_positions(token)

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low = self._parse_bitwise()
        self._expect(TokenType.AND, "AND")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_case(self) -> exp.Expr | None:
        token = self._prev
        operand = self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            self._expect(TokenType.THEN, "THEN")
            value = self._parse_disjunction()
            branches.append(self.expression(exp.If(this=condition, true=value)))
        if not branches:
            self.raise_error("expected WHEN")
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        self._expect(TokenType.END, "END")
        case = exp.Case(this=operand, ifs=branches, default=default)
        return self.expression(case, token)

    def _parse_dcolon(self) -> exp.Expr | None:
        return self._type_name()

    def _type_name(self) -> exp.Expr:
        """A type as written, such as VARCHAR(20); ``type_names.named_type`` gives it a meaning."""
        token = self._curr
        if token.token_type is not TokenType.VAR:
            self.raise_error("expected a type")
        reader = TypeReader(self._tokens, self._index)
        text = reader.read()
        self._advance(reader.index - self._index)
        return exp.Var(this=text).update_positions(token)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """ARRAY[e, …], MAP[k, v, …], and elements behind an expression: e[1]."""
        while this is not None and self._match(TokenType.L_BRACKET):
            token = self._prev
            kind = next((kind for word, kind in LISTED.items() if _is_word(this, word)), None)
            if kind is not None:
                made: exp.Expr = kind(expressions=self._parse_csv(self._parse_disjunction))
                made.update_positions(this)
            else:
                place = self._parse_disjunction() or self.raise_error(
                    "expected a place, as in a[1],"
                )
                made = exp.Bracket(this=this, expressions=[place]).update_positions(token)
            self._expect(TokenType.R_BRACKET, "]")
            this = made
        return this

    def _cast(self) -> exp.Expr:
        value = self._parse_disjunction()
        self._expect(TokenType.ALIAS, "AS")
        cast = self.expression(exp.Cast(this=value, to=self._type_name()))
        self._at_r_paren()
        return cast

    def _extract(self) -> exp.Expr:
        part = self._curr
        self._advance()
        self._expect(TokenType.FROM, "FROM")
        operand = self._parse_disjunction()
        self._at_r_paren()
        call = exp.Anonymous(this=part.text, expressions=[operand] if operand else [])
        return self.expression(call, part)

    def _at_r_paren(self) -> None:
        if not self._match(TokenType.R_PAREN, advance=False):
            self.raise_error("expected )")


def _of_two_parts(found: exp.Expr | None) -> exp.Expr | None:
    """Names with more parts are fields of the column that the first two name."""
    column = found
    while isinstance(column, exp.Bracket | exp.Dot):
        column = column.this
    if not isinstance(column, exp.Column) or not column.args.get("db"):
        return found
    fields = _with_fields(column.parts)
    if column is found:
        return fields
    column.replace(fields)
    return found


def _with_fields(parts: list[exp.Expr]) -> exp.Expr:
    """a.b.c.d as the fields c and d of the column a.b."""
    source, name, *fields = (part.copy() for part in parts)
    made: exp.Expr = exp.Column(this=name, table=source)
    for field in fields:
        made = exp.Dot(this=made, expression=field)
    return made


def _is_word(node: exp.Expr, word: str) -> bool:
    """Whether a node is a word that stands alone, as the name of a column does."""
    name = node.this if isinstance(node, exp.Column) else node
    is_name = isinstance(name, exp.Identifier) and not name.args.get("quoted")
    is_alone = not isinstance(node, exp.Column) or not node.table
    return is_name and is_alone and bool(name.name.upper() == word)


_FACTORS = {TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod}

DECIMAL_LITERAL = "DECIMAL''"
"""Stands for the type of DECIMAL '12.50', which has the digits that are written."""

_PREDICATES: dict[str, type[exp.Expression]] = {
    "EXISTS": exp.Exists,
    "ALL": exp.All,
    "ANY": exp.Any,
    "SOME": exp.Any,
}


def _predicate(call: exp.Expr | None) -> exp.Expr | None:
    """EXISTS, ALL or ANY of a subquery in more parentheses than needed, which parsed as a call."""
    if isinstance(call, exp.Anonymous) and call.name.upper() in _PREDICATES:
        arguments = call.expressions
        if len(arguments) == 1 and isinstance(arguments[0], exp.Subquery):
            made = _PREDICATES[call.name.upper()](this=arguments[0])
            return made.update_positions(call)
    return call


class Cql(Dialect):
    """The dialect that binds CQL's tokenizer to its parser."""

    Tokenizer = CqlTokenizer
    Parser = CqlParser


def parser() -> CqlParser:
    """A fresh parser."""
    return CqlParser(error_level=ErrorLevel.IMMEDIATE, dialect=Cql)
