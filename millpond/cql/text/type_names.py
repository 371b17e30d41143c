"""Reads the name of a type, as columns and CAST have it: VARCHAR(20), DOUBLE PRECISION,
ARRAY<INT>, STRUCT<a INT, b STRING>; ``type_names.named_type`` gives it a meaning."""

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from millpond.cql.text.places import StatementError

MOST_NESTED = 8
"""How deep ARRAYs, STRUCTs and MAPs may be in each other."""

_SAID_FURTHER = {"DOUBLE": ("PRECISION",), "TIMESTAMP": ("WITH", "TIME", "ZONE")}
"""Words that may follow and mean nothing more."""
_NESTED = ("ARRAY", "MAP", "STRUCT", "ROW")
"""Types with others in brackets."""
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_WORD = re.compile(r"[^\W\d]\w*")


class TypeReader:
    """A position among the tokens of a statement, at the name of a type."""

    def __init__(self, tokens: Sequence[Token], index: int) -> None:
        self._tokens, self.index, self._depth = tokens, index, 0

    def read(self) -> str:
        """Steps over a type and returns it in one form of writing."""
        token = self._peek()
        if token is None or token.token_type not in _NAMES:
            raise self._fault("expected a type")
        self.index += 1
        found = self._behind(token.text)
        while self._accepts("ARRAY") or self._accepts("[", "]"):
            found = f"ARRAY<{found}>"
        return found

    def _behind(self, word: str) -> str:
        """What belongs to a type behind its first word."""
        if word.upper() in _NESTED and self._accepts("<"):
            return self._nested(word.upper(), ">")
        if word.upper() in ("ROW", "STRUCT") and self._accepts("("):
            return self._nested(word.upper(), ")")
        if self._accepts("("):
            return f"{word}({', '.join(self._numbers())})"
        self._accepts(*_SAID_FURTHER.get(word.upper(), ()))
        return word

    def _nested(self, word: str, end: str) -> str:
        """The types, or fields, up to a closing bracket."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._fault(f"types are at most {MOST_NESTED} deep in each other; too deep")
        read = self.read if word in ("ARRAY", "MAP") else self._field
        parts = [read()]
        while self._accepts(","):
            parts.append(read())
        self._depth -= 1
        self._expect(end)
        return f"{word}<{', '.join(parts)}>"

    def _field(self) -> str:
        """The name of a field, and its type."""
        token = self._peek()
        if token is None or not _WORD.fullmatch(token.text) or token.token_type is TokenType.STRING:
            raise self._fault("expected the name of a field")
        self.index += 1
        return f"{token.text} {self.read()}"

    def _numbers(self) -> list[str]:
        numbers = [self._number()]
        while self._accepts(","):
            numbers.append(self._number())
        self._expect(")")
        return numbers

    def _number(self) -> str:
        sign = "-" if self._accepts("-") else ""
        token = self._peek()
        if token is None or token.token_type is not TokenType.NUMBER:
            raise self._fault("expected a length")
        self.index += 1
        return sign + token.text

    def _peek(self, ahead: int = 0) -> Token | None:
        place = self.index + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _accepts(self, *words: str) -> bool:
        """Steps over words if they stand here."""
        found = [self._peek(ahead) for ahead in range(len(words))]
        if not all(
            token is not None
            and token.token_type is not TokenType.STRING
            and token.text.upper() == word
            for token, word in zip(found, words, strict=True)
        ):
            return False
        self.index += len(words)
        return True

    def _expect(self, word: str) -> None:
        if not self._accepts(word):
            raise self._fault(f"expected {word}")

    def _fault(self, message: str) -> StatementError:
        token = self._peek()
        if token is not None:
            return StatementError(f"{message} before {token.text!r}", token.start)
        last = self._tokens[-1]
        return StatementError(f"{message} at the end of the statement", last.end + 1)
