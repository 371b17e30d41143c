"""What other systems write, and what to write instead: said where a text is not understood."""

from collections.abc import Sequence
from itertools import pairwise

INSTEAD = {
    "CROSS APPLY": "write FROM a, LATERAL (SELECT …) b",
    "OUTER APPLY": "write FROM a LEFT JOIN LATERAL (SELECT …) b ON TRUE",
    "ON CONFLICT": "say it once where the relation is made: PRIMARY KEY ON CONFLICT REPLACE",
    "TOP": "write ORDER BY x DESC LIMIT n",
    "MINUS": "write EXCEPT",
    "TABLESAMPLE": "write SAMPLE(10) behind the stream",
    "SIMILAR": "write regexp_like(x, '^a|b$')",
    "RLIKE": "write regexp_like(x, '^a|b$')",
    "REGEXP": "write regexp_like(x, '^a|b$')",
    "GLOB": "write regexp_like(x, '^a|b$')",
    "~": "write regexp_like(x, '^a|b$')",
    "PARTITION BY": "say it once, and first: [PARTITION BY a ROWS 10], OVER (PARTITION BY a ORDER "
    "BY b)",
    "STEP": "write [RANGE 1 HOUR SLIDE 5 MINUTES]",
    "SLIDING": "write [RANGE 5 MINUTES]",
    "TUMBLING": "a window stands in brackets behind the stream: S [TUMBLE 10 SECONDS]",
    "HOPPING": "a window stands in brackets behind the stream: S [HOP 10 SECONDS SLIDE 2 SECONDS]",
    "GAP": "write [SESSION 10 MINUTES PARTITION BY a]",
    "SYSTEM_TIME": "a stream meets a relation as it is then by [NOW]: FROM S [NOW] JOIN R ON …",
    "EMIT": "leave EMIT CHANGES out: a relation tells its changes, and EMIT FINAL what is final",
    "CUMULATE": "[TUMBLE 10 SECONDS] without EMIT FINAL tells what each window holds so far",
    "WITHIN": "a window stands in brackets behind the stream: S [RANGE 5 SECONDS]",
    "KEEP": "write max_by(x, y): the x of the largest y",
    "SINK": "a query names its sink: CREATE QUERY q AS SELECT … INTO csv('out.csv')",
    "INDEX": "there are no indexes: joins and groups keep what they need by key",
    "FUNCTION": "functions are registered from Python: engine.register_function(name, …)",
    "WATERMARK": "write TIMESTAMP BY t DELAY 5 SECONDS behind the columns",
    "DROP TABLE": "there are no tables: DROP STREAM, DROP RELATION or DROP VIEW",
    "ALTER TABLE": "there are no tables; what may be changed of a stream ALTER STREAM changes",
    "TEMPORARY": "leave TEMPORARY out: a view costs nothing that no query reads",
    "CONTINUOUS": "every query is continuous: CREATE QUERY name AS SELECT …",
    "REGISTER": "write CREATE QUERY name AS SELECT …",
    "DESCRIBE": "write SHOW name",
    "UPSERT": "write INSERT, into a relation with PRIMARY KEY ON CONFLICT REPLACE",
    "REPLACE INTO": "write INSERT, into a relation with PRIMARY KEY ON CONFLICT REPLACE",
}
"""By the word at which a text is not understood, or the one before it, or two that follow one
another there."""
TRY_CAST = "CAST gives NULL for a string that cannot be read: CAST(s AS INT)"
NUMBERED = dict.fromkeys(
    ("nth_value", "percent_rank", "cume_dist"),
    "number the rows, and compute with that: ROW_NUMBER() OVER (ORDER BY x), count(*) OVER ()",
)
"""Functions of rows in order that other systems have."""
FROM_WINDOW = "write the window in parentheses: sum(x) OVER (PARTITION BY a ORDER BY b)"


def advice(words: Sequence[str], around: Sequence[str] = ()) -> str:
    """What to write instead of one of these words, behind a semicolon; empty if nothing is known.
    The first of them decides; pairs of words are looked for as well.

    >>> advice(["TOP", "3"])
    '; write ORDER BY x DESC LIMIT n'
    >>> advice(["CROSS"], ["S", "CROSS", "APPLY"])
    '; write FROM a, LATERAL (SELECT …) b'
    """
    known = [*map(" ".join, pairwise(around)), *words]
    found = (INSTEAD[word.upper()] for word in known if word.upper() in INSTEAD)
    return "".join(f"; {each}" for each in list(found)[:1])
