"""Ranks and windows with bounds go on after a restart as if there had been none."""

from __future__ import annotations

from pathlib import Path

from millpond import Engine

SCRIPT = """
CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t;
CREATE QUERY top AS SELECT k, v FROM S [RANGE 6] ORDER BY v DESC LIMIT 3 WITH TIES;
CREATE QUERY best AS SELECT * FROM
  (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM S) T WHERE n <= 2;
CREATE QUERY windows AS SELECT window_end, k, sum(v) AS s FROM S [HOP 4 SLIDE 3]
  GROUP BY window_end, k EMIT FINAL;
CREATE QUERY sessions AS SELECT v, window_start, window_end, count(*) AS n
  FROM S [SESSION 3 PARTITION BY v] GROUP BY v, window_start, window_end;
CREATE QUERY so_far AS SELECT k, sum(v) OVER (PARTITION BY k ORDER BY t) AS s,
  max(v) OVER (ORDER BY t RANGE 2 PRECEDING) AS m FROM S;
CREATE QUERY told AS SELECT k, max_by(v, t), last(v), string_agg(CAST(v AS STRING), ',')
  FROM S [RANGE 6] GROUP BY k;
CREATE QUERY in_sessions AS RELATION SELECT * FROM S [SESSION 3 PARTITION BY v];
CREATE QUERY ended AS SELECT v, window_start, count(*) AS n
  FROM S [SESSION 3 PARTITION BY v] GROUP BY v, window_start, window_end EMIT FINAL;
CREATE QUERY rising AS SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k
  MEASURES FIRST(A.v) AS f, sum(B.v) AS s PATTERN (A B+) WITHIN 4 DEFINE B AS B.v > PREV(B.v));
"""
QUERIES = ("rising", "top", "best", "windows", "sessions", "so_far", "told", "in_sessions", "ended")


def answers(store: Path | None, restarts: bool) -> dict[str, list[dict[str, object]]]:
    engine = Engine(store=store)
    engine.execute(SCRIPT)
    for t in range(12):
        engine.push("S", [(t, i % 3, (i * 7 + t * 5) % 11) for i in range(5)])
        engine.run_until_idle()
        if restarts and t % 4 == 3:
            engine.close()
            engine = Engine(store=store)
    engine.finish()
    found = {query: engine.results(query).to_pylist() for query in QUERIES}
    engine.close()
    return found


def test_ranks_go_on_after_restarts(tmp_path: Path) -> None:
    expected = answers(None, restarts=False)
    assert all(len(rows) > 10 for rows in expected.values())
    assert answers(tmp_path / "store", restarts=True) == expected
