"""MATCH_RECOGNIZE ( … ) behind an input of FROM."""

from typing import ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millpond.cql.row_patterns import Absence, Either, InTurn, Occurrence, Repeated, RowPattern
from millpond.cql.text.from_clause import FromParser
from millpond.cql.text.places import StatementError

ALL_ROWS = (
    "ALL ROWS PER MATCH is not supported: a match is one row when it is decided; have the rows "
    "you need as MEASURES, FIRST(A.x) AS a, LAST(B.x) AS b, or join the stream with the match"
)
_REFUSED = {
    "SUBSET": "SUBSET is not supported; write the aggregate of each variable, count(A.*) + "
    "count(B.*), or use one variable for both: C AS a OR b",
    "PERMUTE": "PERMUTE is not supported; write the orders out: (A B | B A)",
}
_ANCHORS = "^ and $ are not supported: a partition of a stream has no end; leave them out"
_BACKWARDS = "rows are in order of the stream's time alone; write ORDER BY ts, or leave it out"
_WHEN = ("FINAL", "RUNNING")
_OF_ROWS = ("first", "last", "count", "sum", "avg", "min", "max")
_EXCLUDED = (
    "{- … -} is not supported, for a match is one row; leave the variable out of the MEASURES"
)
_TIMES = {TokenType.STAR: (0, None), TokenType.PLUS: (1, None), TokenType.PLACEHOLDER: (0, 1)}
MOST_TIMES = 1_000


class Measure(exp.Expression):
    """expression AS name."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": True}


class Defined(exp.Expression):
    """variable AS condition."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "condition": True}


class SkipTo(exp.Expression):
    """AFTER MATCH SKIP …; ``variable`` of TO FIRST and TO LAST."""

    arg_types: ClassVar[dict[str, bool]] = {"to": True, "variable": False}


class MatchRecognizeText(exp.Expression):
    """The clause behind an input; ``pattern`` is a RowPattern, ``places`` where its variables
    stand."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "partition": False,
        "order": False,
        "measures": False,
        "skip": False,
        "pattern": True,
        "places": False,
        "within": False,
        "defined": False,
    }


class MatchRecognizeParser(FromParser):
    """Parses MATCH_RECOGNIZE."""

    def _match_recognize(self, body: exp.Expr) -> exp.Expr:
        """The input with the clause behind it, if there is one."""
        if not self._at_call("MATCH_RECOGNIZE"):
            return body
        token = self._curr
        self._advance(2)
        clause = MatchRecognizeText(this=body).update_positions(token)
        if self._partition_by():
            clause.set("partition", self._parse_csv(self._parse_column))
        if self._match(TokenType.ORDER_BY):
            clause.set("order", self._column_in_order())
        has_measures = self._match_text_seq("MEASURES")
        clause.set("measures", self._parse_csv(self._measure) if has_measures else [])
        self._one_row()
        clause.set("skip", self._skip_to())
        self._pattern_of(clause)
        clause.set("defined", self._definitions())
        self._expect(TokenType.R_PAREN, ")")
        return clause

    def _column_in_order(self) -> exp.Expr:
        column = self._column()
        if self._match_text_seq("DESC") or self._match(TokenType.COMMA):
            raise StatementError(_BACKWARDS, self._prev.start)
        self._match_text_seq("ASC")
        return column

    def _measure(self) -> Measure:
        if self._at_when():
            self._advance()
        this = self._written() or self.raise_error("expected an expression")
        self._expect(TokenType.ALIAS, "AS and a name")
        alias = self._name() or self.raise_error("expected a name after AS")
        return Measure(this=this, alias=alias)

    def _at_when(self) -> bool:
        """Whether FINAL or RUNNING stands before a function of rows; of a whole match both are the
        same."""
        is_word = self._curr.text.upper() in _WHEN
        return is_word and self._next.text.lower() in _OF_ROWS

    def _one_row(self) -> None:
        if self._match_text_seq("ALL", "ROWS"):
            raise StatementError(ALL_ROWS, self._prev.start)
        if self._match_text_seq("ONE") and not self._match_text_seq("ROW", "PER", "MATCH"):
            self.raise_error("expected ONE ROW PER MATCH")

    def _skip_to(self) -> SkipTo | None:
        token = self._curr
        if not self._match_text_seq("AFTER"):
            return None
        if not self._match_text_seq("MATCH", "SKIP"):
            self.raise_error("expected AFTER MATCH SKIP")
        if self._match_text_seq("PAST", "LAST", "ROW"):
            return SkipTo(to="past").update_positions(token)
        if self._match_text_seq("TO", "NEXT", "ROW"):
            return SkipTo(to="next").update_positions(token)
        if not self._match_text_seq("TO"):
            self.raise_error("expected PAST LAST ROW, TO NEXT ROW, TO FIRST a or TO LAST a")
        to = "first" if self._match_text_seq("FIRST") else "last"
        self._match_text_seq("LAST")
        variable = self._name() or self.raise_error("expected a variable of the pattern")
        return SkipTo(to=to, variable=variable).update_positions(token)

    def _definitions(self) -> list[Defined]:
        self._refuse_word()
        if not self._match_text_seq("DEFINE"):
            return []
        return self._parse_csv(self._defined)

    def _defined(self) -> Defined:
        variable = self._name() or self.raise_error("expected a variable of the pattern")
        self._expect(TokenType.ALIAS, "AS and a condition")
        condition = self._written() or self.raise_error("expected a condition")
        return Defined(this=variable, condition=condition)

    # -- the pattern -------------------------------------------------------------------------

    def _pattern_of(self, clause: MatchRecognizeText) -> None:
        self._refuse_word()
        if not self._match_text_seq("PATTERN"):
            self.raise_error("expected PATTERN (A B+ …)")
        self._expect(TokenType.L_PAREN, "(")
        self._places: list[exp.Identifier] = []
        clause.set("pattern", self._either())
        clause.set("places", self._places)
        self._expect(TokenType.R_PAREN, ")")
        if self._match_text_seq("WITHIN"):
            clause.set("within", self._length())

    def _refuse_word(self) -> None:
        word = self._curr.text.upper()
        if word in _REFUSED:
            raise StatementError(_REFUSED[word], self._curr.start)

    def _either(self) -> RowPattern:
        parts = [self._in_turn()]
        while self._match(TokenType.PIPE):
            parts.append(self._in_turn())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _in_turn(self) -> RowPattern:
        parts: list[RowPattern] = []
        while not self._match_set((TokenType.PIPE, TokenType.R_PAREN), advance=False):
            parts.append(self._repeated())
        if not parts:
            self.raise_error("expected a variable of the pattern")
        return parts[0] if len(parts) == 1 else InTurn(tuple(parts))

    def _repeated(self) -> RowPattern:
        part = self._one()
        for token, (least, most) in _TIMES.items():
            if self._match(token):
                return Repeated(part, least, most, self._is_reluctant())
        self._refuse_excluded()
        if self._match(TokenType.L_BRACE):
            least, top = self._times()
            return Repeated(part, least, top, self._is_reluctant())
        return part

    def _is_reluctant(self) -> bool:
        return bool(self._match(TokenType.PLACEHOLDER))

    def _times(self) -> tuple[int, int | None]:
        """{n}, {n,}, {n,m} or {,m}."""
        token = self._curr
        least = self._count()
        most: int | None = least
        if self._match(TokenType.COMMA):
            most = self._count()
        elif least is None:
            self.raise_error("expected a number: A{2,4}")
        self._expect(TokenType.R_BRACE, "}")
        if most is not None and (most < (least or 0) or most == 0):
            raise StatementError(
                "a repetition ends at 1 or more, and not below its begin", token.start
            )
        return least or 0, most

    def _count(self) -> int | None:
        if self._curr.token_type is not TokenType.NUMBER:
            return None
        text, start = self._curr.text, self._curr.start
        self._advance()
        if not text.isdigit() or int(text) > MOST_TIMES:
            raise StatementError(f"a repetition takes whole numbers up to {MOST_TIMES:,}", start)
        return int(text)

    def _one(self) -> RowPattern:
        """A variable, NOT and a variable, or a pattern in parentheses."""
        self._refuse_in_pattern()
        if self._match(TokenType.L_PAREN):
            inner = self._either()
            self._expect(TokenType.R_PAREN, ")")
            return inner
        is_absent = self._match(TokenType.NOT)
        name = self._name() or self.raise_error("expected a variable of the pattern")
        self._places.append(name)
        return Absence(name.name.upper()) if is_absent else Occurrence(name.name.upper())

    def _refuse_in_pattern(self) -> None:
        self._refuse_word()
        start = self._curr.start
        if self._match_set((TokenType.CARET, TokenType.DOLLAR, TokenType.PARAMETER), advance=False):
            raise StatementError(_ANCHORS, start)
        self._refuse_excluded()

    def _refuse_excluded(self) -> None:
        start = self._curr.start
        if self._curr.token_type is TokenType.L_BRACE and self._next.token_type is TokenType.DASH:
            raise StatementError(_EXCLUDED, start)
