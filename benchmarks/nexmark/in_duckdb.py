"""The same questions put to DuckDB, once, over all events: what each window has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

Rows = Counter[tuple[Any, ...]]
"""How often each row is there; of what windows say, the end of the window in front."""

_HOPS = """
SELECT *, time_bucket(INTERVAL '2 seconds', dateTime) + (5 - k) * INTERVAL '2 seconds' AS ends
FROM bid, range(5) AS hops(k)
"""
_TUMBLES = """
SELECT *, time_bucket(INTERVAL '10 seconds', dateTime) + INTERVAL '10 seconds' AS ends FROM
"""

QUERIES = {
    "q5": f"""
WITH counts AS (SELECT ends, auction, count(*) AS num FROM ({_HOPS}) GROUP BY ends, auction)
SELECT ends, auction, num FROM counts AS c
WHERE num >= (SELECT max(num) FROM counts AS d WHERE d.ends = c.ends)
""",
    "q7": f"""
WITH bids AS ({_TUMBLES} bid)
SELECT ends, auction, price, bidder, dateTime, extra FROM bids AS b
WHERE price = (SELECT max(price) FROM bids AS c WHERE c.ends = b.ends)
""",
    "q8": f"""
SELECT DISTINCT p.ends, p.id, p.name, p.ends - INTERVAL '10 seconds' AS starttime
FROM ({_TUMBLES} person) AS p JOIN ({_TUMBLES} auction) AS a ON p.id = a.seller AND p.ends = a.ends
""",
    "q19": """
SELECT auction, bidder, price, dateTime, extra, place FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, number) AS place
  FROM (SELECT *, row_number() OVER () AS number FROM bid)
) WHERE place <= 10
""",
}


def answer(query: str, tables: Mapping[str, pa.Table]) -> Rows:
    """What DuckDB answers."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for name, table in tables.items():
            connection.register(name, table)
        found: Rows = Counter(connection.execute(QUERIES[query]).fetchall())
        return found
