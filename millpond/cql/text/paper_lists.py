"""SELECT Istream(a, b) FROM, as the papers write it: the same as SELECT ISTREAM a, b FROM."""

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from millpond.cql.text.from_clause import TO_STREAM

_QUERIES = (TokenType.SELECT, TokenType.WITH)


def without_paper_parentheses(tokens: list[Token]) -> list[Token]:
    """The tokens of a query without the parentheses around whole select lists."""
    left_out = set[int]()
    for index in range(len(tokens) - 3):
        if _opens_list(tokens[index : index + 4]):
            close = _closing(tokens, index + 2)
            if tokens[close + 1 : close + 2] and tokens[close + 1].token_type is TokenType.FROM:
                left_out |= {index + 2, close}
    return [token for index, token in enumerate(tokens) if index not in left_out]


def _opens_list(four: Sequence[Token]) -> bool:
    """Whether this is SELECT Istream ( and no subquery."""
    select, word, bracket, first = four
    return (
        select.token_type is TokenType.SELECT
        and word.token_type is TokenType.VAR
        and word.text.upper() in TO_STREAM
        and bracket.token_type is TokenType.L_PAREN
        and first.token_type not in _QUERIES
    )


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Where a parenthesis is closed."""
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return index
    return len(tokens)
