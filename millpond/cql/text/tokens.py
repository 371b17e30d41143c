"""The words of CQL: its tokenizer, and the limits checked before anything recurses."""

import re
from itertools import zip_longest
from typing import ClassVar

from sqlglot import Dialect, tokens
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from millpond.cql.text.places import StatementError

MAX_CHARACTERS = 100_000
MAX_NESTING = 40

_OPERATORS = {
    "==": TokenType.EQ,
    "::": TokenType.DCOLON,
    "||": TokenType.DPIPE,
    ">=": TokenType.GTE,
    "<=": TokenType.LTE,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "<=>": TokenType.NULLSAFE_EQ,
}
_WORDS = (
    "ALL AND ANTI ANY BETWEEN CASE CROSS DISTINCT ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH FROM "
    "FULL HAVING ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT NATURAL "
    "NOT NULL OFFSET ON OR OUTER OVER QUALIFY RIGHT SELECT SEMI SOME THEN TRUE UNION USING VALUES "
    "WHEN WHERE WITH"
)
_PHRASES = {
    "AS": TokenType.ALIAS,
    "CLUSTER BY": TokenType.CLUSTER_BY,
    "DISTRIBUTE BY": TokenType.DISTRIBUTE_BY,
    "EMIT FINAL": TokenType.FINAL,
    "GROUP BY": TokenType.GROUP_BY,
    "ORDER BY": TokenType.ORDER_BY,
    "PARTITION BY": TokenType.PARTITION_BY,
    "SORT BY": TokenType.SORT_BY,
}


class CqlTokenizer(tokens.Tokenizer):
    """SQL's lexical rules with few reserved words, so that most names need no quotes."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **_OPERATORS,
        **_PHRASES,
        **{word: TokenType[word] for word in _WORDS.split()},
    }
    COMMANDS: ClassVar[set[TokenType]] = set()
    NESTED_COMMENTS = False


class _Lexicon(Dialect):
    Tokenizer = CqlTokenizer


def tokenize(text: str) -> list[Token]:
    """The tokens of one statement, refused if too long, too deep or unbalanced."""
    if len(text) > MAX_CHARACTERS:
        raise StatementError(
            f"the statement has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed", 0
        )
    try:
        found = CqlTokenizer(_Lexicon).tokenize(text)
    except TokenError as error:
        raise _unclosed(text) from error
    _check_words(found)
    _check_nesting(found)
    return found


# Quoted texts and comments that are closed, then the beginning of one that is not.
_QUOTED = re.compile(
    r"""'(?:[^']|'')*+' | "(?:[^"]|"")*+" | --[^\n]* | /\*.*?\*/ | (?P<open>/\*|['"]) | .""",
    re.VERBOSE | re.DOTALL,
)


def _unclosed(text: str) -> StatementError:
    """Names the quote or comment that is never closed."""
    for piece in _QUOTED.finditer(text):
        if piece["open"]:
            return StatementError(f"{piece['open']} is never closed", piece.start())
    return StatementError("this cannot be read", 0)


_CLOSERS = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE)
_NAME = re.compile(r"[^\W\d][\w$]*")
_NUMBER = re.compile(r"[0-9]{1,100}(?:\.[0-9]{0,100})?(?:[eE][+-]?[0-9]{1,3})?")


def _check_words(found: list[Token]) -> None:
    """Refuses what sqlglot takes for a name or number and CQL does not."""
    for token, following in zip_longest(found, found[1:]):
        if token.token_type is TokenType.COLON and following is not None:
            raise StatementError(
                f":{following.text} is a parameter, whose value is to be given with the text: "
                f"engine.execute(text, parameters={{{following.text!r}: …}})",
                token.start,
            )
        if token.token_type is TokenType.UNKNOWN:
            raise StatementError(
                f'{token.text} means nothing here; names are quoted as "a"', token.start
            )
        if token.token_type is TokenType.VAR and not _NAME.fullmatch(token.text):
            raise StatementError(f"{token.text!r} is not a name", token.start)
        if token.token_type is TokenType.NUMBER and not _NUMBER.fullmatch(token.text):
            raise StatementError(f"{token.text[:40]!r} is not a number", token.start)


def _check_nesting(found: list[Token]) -> None:
    """Refuses unbalanced brackets, and nesting on which a recursive parser would overflow.

    Signs and NOT before a bracket are levels of their own.
    """
    opened: list[tuple[Token, int]] = []
    level = prefixes = before = 0
    for token in found:
        kind = token.token_type
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        level += (kind is TokenType.CASE) - (kind is TokenType.END)
        if kind in _CLOSERS:
            opened.append((token, level))
            level += 1 + before
        elif kind in _CLOSERS.values():
            if not opened or _CLOSERS[opened[-1][0].token_type] is not kind:
                raise StatementError(f"{token.text} closes nothing", token.start)
            level = opened.pop()[1]
        before = prefixes
        if level + prefixes > MAX_NESTING:
            raise StatementError(
                f"nested more than {MAX_NESTING} levels deep; use CREATE VIEW to name the parts",
                token.start,
            )
    if opened:
        last = opened[-1][0]
        raise StatementError(f"{last.text} is never closed", last.start)
