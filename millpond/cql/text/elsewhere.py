"""What other systems write, and what to write instead: said where a text is not understood."""

from collections.abc import Sequence

INSTEAD = {
    "TOP": "write ORDER BY x DESC LIMIT n",
    "TABLESAMPLE": "write SAMPLE(10) behind the stream",
    "SIMILAR": "write regexp_like(x, '^a|b$')",
    "RLIKE": "write regexp_like(x, '^a|b$')",
    "SYSTEM_TIME": "a stream meets a relation as it is then by [NOW]: FROM S [NOW] JOIN R ON …",
    "EMIT": "leave EMIT CHANGES out: a relation tells its changes, and EMIT FINAL what is final",
    "CUMULATE": "[TUMBLE 10 SECONDS] without EMIT FINAL tells what each window holds so far",
    "WITHIN": "a window stands in brackets behind the stream: S [RANGE 5 SECONDS]",
    "KEEP": "write max_by(x, y): the x of the largest y",
    "SINK": "a query names its sink: CREATE QUERY q AS SELECT … INTO csv('out.csv')",
    "INDEX": "there are no indexes: joins and groups keep what they need by key",
    "FUNCTION": "functions are registered from Python: engine.register_function(name, …)",
    "WATERMARK": "write TIMESTAMP BY t DELAY 5 SECONDS behind the columns",
}
"""By the word at which a text is not understood, or the one before it."""
NUMBERED = dict.fromkeys(
    ("nth_value", "percent_rank", "cume_dist"),
    "number the rows, and compute with that: ROW_NUMBER() OVER (ORDER BY x), count(*) OVER ()",
)
"""Functions of rows in order that other systems have."""
FROM_WINDOW = "write the window in parentheses: sum(x) OVER (PARTITION BY a ORDER BY b)"


def advice(words: Sequence[str]) -> str:
    """What to write instead of one of these words, behind a semicolon; empty if nothing is known.

    >>> advice(["TOP", "3"])
    '; write ORDER BY x DESC LIMIT n'
    """
    found = (INSTEAD[word.upper()] for word in words if word.upper() in INSTEAD)
    return "".join(f"; {each}" for each in list(found)[:1])
