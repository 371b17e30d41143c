"""The same questions put to DuckDB: what was said, or what a relation holds, after some events.

Of streams each row has its time in front: that of the last event it is made of, or of the end of
its window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

Rows = Counter[tuple[Any, ...]]
"""How often each row is there."""

RELATIONS = frozenset({"q4", "q6", "q9", "q15", "q16", "q17", "q18", "q19"})
"""The queries that are relations: asked what they hold, again and again."""

_HOPS = """
SELECT *, time_bucket(INTERVAL '2 seconds', dateTime) + (5 - k) * INTERVAL '2 seconds' AS ends
FROM bid, range(5) AS hops(k)
"""
_TUMBLES = """
SELECT *, time_bucket(INTERVAL '10 seconds', {time}) + INTERVAL '10 seconds' AS ends FROM
"""
_BY_TIME = _TUMBLES.format(time="dateTime")
_WON = """
SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime, B.extra AS bid_extra, B.number
FROM auction AS A JOIN (SELECT *, row_number() OVER () AS number FROM bid) AS B
ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
"""
_LEVELS = ("", "price < 10000", "price BETWEEN 10000 AND 999999", "price >= 1000000")


def _levels(what: str) -> str:
    """An aggregate of all bids and of those of each level of price."""
    filters = (f" FILTER (WHERE {level})" if level else "" for level in _LEVELS)
    return ", ".join(f"{what}{each}" for each in filters)


_COUNTED = ", ".join(
    map(_levels, ("count(*)", "count(DISTINCT bidder)", "count(DISTINCT auction)"))
)
_DAY = "strftime(dateTime, '%Y-%m-%d')"
_ID = r"nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"
"""DuckDB has an empty text where nothing matches."""

QUERIES = {
    "q0": "SELECT dateTime, auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT dateTime, auction, bidder, 0.908::DOUBLE * price, dateTime, extra FROM bid",
    "q2": "SELECT dateTime, auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
SELECT greatest(A.dateTime, P.dateTime), P.name, P.city, P.state, A.id
FROM auction AS A JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')
""",
    "q4": f"""
SELECT category, avg(final)
FROM (SELECT id, category, max(price) AS final FROM ({_WON}) GROUP BY ALL) GROUP BY category
""",
    "q5": f"""
WITH counts AS (SELECT ends, auction, count(*) AS num FROM ({_HOPS}) GROUP BY ends, auction)
SELECT ends, auction, num FROM counts AS c
WHERE num >= (SELECT max(num) FROM counts AS d WHERE d.ends = c.ends)
""",
    "q6": f"""
SELECT seller,
  avg(price) OVER (PARTITION BY seller ORDER BY bid_dateTime ROWS 10 PRECEDING)
FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY price DESC, bid_dateTime) AS place
  FROM ({_WON})
) WHERE place = 1
""",
    "q7": f"""
WITH bids AS ({_BY_TIME} bid)
SELECT ends, auction, price, bidder, dateTime, extra FROM bids AS b
WHERE price = (SELECT max(price) FROM bids AS c WHERE c.ends = b.ends)
""",
    "q8": f"""
SELECT DISTINCT p.ends, p.id, p.name, p.ends - INTERVAL '10 seconds' AS starttime
FROM ({_BY_TIME} person) AS p JOIN ({_BY_TIME} auction) AS a ON p.id = a.seller AND p.ends = a.ends
""",
    "q9": f"""
SELECT * EXCLUDE (number, place) FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY price DESC, bid_dateTime, number) AS place
  FROM ({_WON})
) WHERE place = 1
""",
    "q10": f"""
SELECT dateTime, auction, bidder, price, dateTime, extra, {_DAY}, strftime(dateTime, '%H:%M')
FROM bid
""",
    "q11": """
WITH marked AS (
  SELECT bidder, dateTime,
    coalesce(dateTime >= lag(dateTime) OVER w + INTERVAL '10 seconds', true) AS begins
  FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)
), numbered AS (
  SELECT *, count(*) FILTER (WHERE begins) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
  FROM marked
)
SELECT max(dateTime) + INTERVAL '10 seconds', bidder, count(*), min(dateTime),
  max(dateTime) + INTERVAL '10 seconds'
FROM numbered GROUP BY bidder, session
""",
    "q12": f"""
SELECT ends, bidder, sum(weight)::BIGINT, ends - INTERVAL '10 seconds', ends
FROM ({_TUMBLES.format(time="came")} arrivals) GROUP BY ends, bidder
""",
    "q13": """
SELECT dateTime, auction, bidder, price, dateTime, value
FROM bid JOIN side_input ON auction % 10000 = key
""",
    "q14": """
SELECT dateTime, auction, bidder, 0.908::DOUBLE * price,
  CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
       WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END,
  dateTime, extra, length(extra) - length(replace(extra, 'c', ''))
FROM bid WHERE 0.908::DOUBLE * price > 1000000 AND 0.908::DOUBLE * price < 50000000
""",
    "q15": f"SELECT {_DAY}, {_COUNTED} FROM bid GROUP BY 1",
    "q16": f"""
SELECT channel, {_DAY}, max(strftime(dateTime, '%H:%M')), {_COUNTED} FROM bid GROUP BY 1, 2
""",
    "q17": f"""
SELECT auction, {_DAY}, {_levels("count(*)")},
  min(price), max(price), avg(price), sum(price)::BIGINT
FROM bid GROUP BY 1, 2
""",
    "q18": """
SELECT auction, bidder, price, channel, url, dateTime, extra FROM (
  SELECT *, row_number() OVER (PARTITION BY auction, bidder ORDER BY dateTime DESC, number) AS place
  FROM (SELECT *, row_number() OVER () AS number FROM bid)
) WHERE place = 1
""",
    "q19": """
SELECT * EXCLUDE (number) FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, number) AS place
  FROM (SELECT *, row_number() OVER () AS number FROM bid)
) WHERE place <= 10
""",
    "q20": """
SELECT greatest(A.dateTime, B.dateTime), auction, bidder, price, channel, url, B.dateTime, B.extra,
  itemName, description, initialBid, reserve, A.dateTime, expires, seller, category, A.extra
FROM bid AS B JOIN auction AS A ON B.auction = A.id WHERE A.category = 10
""",
    "q21": f"""
SELECT dateTime, auction, bidder, price, channel,
  CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
                      WHEN 'baidu' THEN '3' ELSE {_ID} END
FROM bid WHERE {_ID} IS NOT NULL OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
""",
    "q22": """
SELECT dateTime, auction, bidder, price, channel,
  split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6) FROM bid
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
