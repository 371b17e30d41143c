"""Reads the tokens of a statement from left to right."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millpond.cql.text.dialect import parser
from millpond.cql.text.elsewhere import advice
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import ConnectorCall, Duration, Name, Option
from millpond.cql.text.type_names import TypeReader

T = TypeVar("T")
_OPENERS = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSERS = (TokenType.R_PAREN, TokenType.R_BRACKET)
_PROMISES = ("ORDERED", "UNIQUE", "CLUSTERED", "REFERENCES", "FOREIGN", "PUNCTUATED")
_BEHIND = (
    "FROM",
    "WITH",
    "TIMESTAMP",
    "DELAY",
    "IDLE",
    "AHEAD",
    "SKEW",
    "CONSTRAINT",
    "ON",
    "",
    *_PROMISES,
)
"""What may come behind a length without a unit."""
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}


class Cursor:
    """A position among the tokens of one statement."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.index = 0

    @property
    def offset(self) -> int:
        """The offset of the current token, or of the end."""
        token = self.peek()
        return token.start if token else len(self.text)

    def peek(self, ahead: int = 0) -> Token | None:
        """The token ``ahead`` of the current one, or None at the end."""
        place = self.index + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The upper-case text of a token that is a word or symbol, else the empty string."""
        token = self.peek(ahead)
        if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        return " ".join(token.text.upper().split())

    def accept(self, *words: str) -> bool:
        """Steps over ``words`` if they stand here."""
        if all(self.word(i) == word for i, word in enumerate(words)):
            self.index += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Steps over ``words``, which must stand here."""
        for word in words:
            if not self.accept(word):
                raise self.fault(f"expected {word}")

    def choice(self, what: str, *words: str) -> str:
        """Steps over the one of ``words`` that stands here and returns it."""
        for word in words:
            if self.accept(word):
                return word
        raise self.fault(f"expected {what}")

    def fault(self, message: str) -> StatementError:
        """A fault at the current token."""
        token = self.peek()
        found = f" before {token.text!r}" if token else " at the end of the statement"
        instead = advice([token.text] if token else [], self._around())
        return StatementError(message + found + instead, self.offset)

    def _around(self) -> list[str]:
        """The words before, at and behind the current token."""
        return [token.text for token in self.tokens[max(self.index - 1, 0) : self.index + 2]]

    def refusal(self, message: str) -> StatementError:
        """An error at the current token that needs no mention of it."""
        return StatementError(message, self.offset)

    def end(self) -> None:
        """Checks that nothing follows."""
        ended = self.accept(";")
        while self.accept(";"):
            pass
        token = self.peek()
        if token and ended:
            raise self.refusal("one statement is expected here, this begins another")
        if token:
            before = self.tokens[self.index - 1 : self.index]
            near = [each.text for each in (*before, token)]
            raise self.refusal(f"unexpected {token.text!r}{advice(near, self._around())}")

    def name(self, what: str) -> Name:
        """An identifier."""
        token = self.peek()
        if token is None or token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            raise self.fault(f"expected {what}")
        self.index += 1
        return Name(token.text, token.start)

    def type_name(self) -> Name:
        """A type, with all that belongs to it."""
        offset, first = self.offset, self.index
        self.name("a type")
        reader = TypeReader(self.tokens, first)
        text = reader.read()
        self.index = reader.index
        return Name(text, offset)

    def number(self, what: str) -> str:
        """A number with an optional sign, as text."""
        sign = "-" if self.accept("-") else ""
        token = self.peek()
        if token is None or token.token_type is not TokenType.NUMBER:
            raise self.fault(f"expected {what}")
        self.index += 1
        return sign + token.text

    def duration(self, what: str) -> Duration:
        """A number with an optional unit."""
        offset = self.offset
        number = self.number(what)
        token = self.peek()
        has_unit = token and token.token_type is TokenType.VAR and self.word() not in _BEHIND
        return Duration(number, self.name("a unit of time") if has_unit else None, offset)

    def value(self) -> Any:
        """A constant of an option: string, number, TRUE, FALSE, NULL or a bare word."""
        token = self.peek()
        if token is None:
            raise self.fault("expected a value")
        if token.token_type is TokenType.NUMBER or self.word() == "-":
            text = self.number("a number")
            return int(text) if text.lstrip("-").isdigit() else float(text)
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR):
            self.index += 1
            return token.text
        return _CONSTANTS[self.choice("a value", *_CONSTANTS)]

    def several(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more of a kind, with commas between them."""
        found = [read()]
        while self.accept(","):
            found.append(read())
        return tuple(found)

    def connector(self, what: str) -> ConnectorCall:
        """name(argument, …, key = value, …)."""
        name = self.name(what)
        arguments: list[Any] = []
        options: list[Option] = []
        self.expect("(")
        while not self.accept(")"):
            if self.word(1) == "=":
                options.append(self.option(options))
            else:
                arguments.append(self.value())
            if self.word() != ")":
                self.expect(",")
        return ConnectorCall(name, tuple(arguments), tuple(options))

    def option(self, before: list[Option]) -> Option:
        """key = value; ``before`` are the options already given."""
        key = self.name("the name of an option")
        if key.text.lower() in [option.key for option in before]:
            raise StatementError(f'"{key.text}" is given twice', key.offset)
        self.expect("=")
        return Option(key.text.lower(), self.value(), key.offset)

    def options(self) -> tuple[Option, ...]:
        """(key = value, …)."""
        self.expect("(")
        found = [self.option([])]
        while self.accept(","):
            found.append(self.option(found))
        self.expect(")")
        return tuple(found)

    def query(self) -> tuple[exp.Expr, str]:
        """The query from here to INTO or to the end, with its text."""
        tokens = self._until("INTO")
        if not tokens:
            raise self.fault("expected a query")
        text = self.text[tokens[0].start : tokens[-1].end + 1]
        return parser().query(tokens, self._cut(tokens)), text

    def expression(self, *stops: str) -> exp.Expr:
        """The expression from here to one of ``stops`` or to the end."""
        tokens = self._until(*stops)
        if not tokens:
            raise self.fault("expected an expression")
        if len(tokens) == 1 and tokens[0].token_type in (TokenType.NUMBER, TokenType.STRING):
            return _constant(tokens[0])
        return parser().condition(tokens, self._cut(tokens))

    def _cut(self, tokens: list[Token]) -> str:
        """The text up to the last token, so that a missing part is reported where it belongs."""
        return self.text[: tokens[-1].end + 1]

    def _until(self, *stops: str) -> list[Token]:
        """The tokens up to a stop word outside brackets, or to the end."""
        start, depth = self.index, 0
        while (token := self.peek()) is not None:
            if token.token_type is TokenType.SEMICOLON:
                break
            if depth == 0 and (self.word() in stops or token.token_type in _CLOSERS):
                break
            depth += (token.token_type in _OPENERS) - (token.token_type in _CLOSERS)
            self.index += 1
        return self.tokens[start : self.index]


def _constant(token: Token) -> exp.Expr:
    """A single number or string, without the expense of a parser: INSERT has many."""
    is_string = token.token_type is TokenType.STRING
    return exp.Literal(this=token.text, is_string=is_string).update_positions(token)
