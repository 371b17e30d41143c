"""What the stores of earlier formats in `tests/fixtures/stores` hold, and how they were made.

`python -m tests.old_stores NAME` of the version that is to be kept fills a store and packs it. What
the first version of format 5 understands is in all of them, and `MORE` in those of later ones.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from millpond import Engine

STORES = Path(__file__).parent / "fixtures" / "stores"

SCRIPT = """
    CREATE STREAM S (t BIGINT, k INT, x DOUBLE) TIMESTAMP BY t DELAY 2;
    CREATE STREAM B (t BIGINT, k INT, word STRING) TIMESTAMP BY t;
    CREATE RELATION R (k INT, name STRING);
    INSERT INTO R VALUES (1, 'one'), (2, 'two');
    CREATE VIEW Large AS SELECT k, x FROM S [RANGE 100] WHERE x > 2;
    CREATE QUERY totals AS SELECT k, count(*) AS n, sum(x) AS s FROM S [RANGE 20] GROUP BY k;
    CREATE QUERY extremes AS SELECT k, min(x) AS low, max(x) AS high FROM S [RANGE 9] GROUP BY k;
    CREATE QUERY last AS SELECT k, x FROM S [PARTITION BY k ROWS 2];
    CREATE QUERY named AS SELECT name, x FROM S [NOW], R WHERE S.k = R.k;
    CREATE QUERY pairs AS
      SELECT S.x, B.word FROM S [RANGE 30], B [RANGE 30] WHERE S.k = B.k;
    CREATE QUERY kinds AS SELECT DISTINCT k FROM Large;
    CREATE QUERY one AS SELECT x FROM S WHERE k = 1;
    CREATE QUERY two AS SELECT x FROM S WHERE k = 2;
    CREATE QUERY three AS SELECT x FROM S WHERE k = 3;
    CREATE QUERY safe ON ERROR SKIP AS SELECT 9223372036854775805 + k AS y FROM B;
    CREATE QUERY weighty AS SELECT avg(x) AS mean FROM Large;
    ALTER QUERY weighty SET WEIGHT 3;
"""

MORE = """
    CREATE STREAM C (t BIGINT, o INT, x INT) TIMESTAMP BY t
      ORDERED BY (o) WITHIN 3 ROWS ON VIOLATION COUNT;
    CREATE STREAM D (t BIGINT, o INT, y INT) TIMESTAMP BY t UNIQUE (y) ON VIOLATION COUNT;
    CREATE RELATION Keyed (k INT, name STRING, PRIMARY KEY (k) ON CONFLICT REPLACE);
    CREATE QUERY ordered AS SELECT C.x, D.y FROM C, D WHERE C.o = D.o;
    CREATE QUERY grouped AS SELECT o, count(*) AS n FROM C GROUP BY o;
    CREATE QUERY tumbled AS
      SELECT window_start, sum(x) AS s FROM C [TUMBLE 10] GROUP BY window_start, window_end
      EMIT FINAL;
    CREATE QUERY sessions AS
      SELECT o, window_start, window_end, count(*) AS n FROM C [SESSION 4 PARTITION BY o]
      GROUP BY o, window_start, window_end;
    CREATE QUERY running AS
      SELECT o, x, sum(x) OVER (PARTITION BY o ORDER BY x) AS s FROM C [RANGE 20];
    CREATE QUERY best AS SELECT o, x FROM C [RANGE 30] ORDER BY x DESC LIMIT 3;
    CREATE QUERY known AS SELECT x, name FROM C [NOW], Keyed K WHERE C.o = K.k;
"""

OTHERS = ("ordered", "grouped", "tumbled", "sessions", "running", "best", "known")

QUERIES = ("totals", "extremes", "last", "named", "pairs", "kinds", "one", "two", "three", "safe")

FIRST, LAST = range(1, 61), range(61, 121)
"""The moments that were there when the store was made, and those that come after."""


def feed(engine: Engine, moments: range) -> None:
    """Tuples of some moments, some of them late, and changes of the relation."""
    for t in moments:
        engine.push("S", [(t, t % 4, t / 8), (t - 1, (t * 7) % 4, t / 4)])
        if t % 10 == 0:
            engine.push("S", [(t - 9, 1, 0.5)])
            engine.push("R", [(t % 4, f"name {t}")])
        if t % 3 == 0:
            engine.push("B", [(t, t % 4, f"word {t}")])
        engine.advance("B", t)
    engine.run_until_idle()


def feed_more(engine: Engine, moments: range) -> None:
    """Tuples of the streams with constraints, some of which break them, and punctuations."""
    for t in moments:
        engine.push("C", [(t, t // 2 - t % 3, t % 11)])
        engine.push("D", [(t, t // 2, t if t % 25 else t - 1)])
        if t % 20 == 0:
            engine.push("Keyed", [(t // 2, f"name {t}"), (t // 4, f"other {t}")])
            engine.punctuate("D", f"o < {t // 2 - 4}")
        for name in ("C", "D"):
            engine.advance(name, t - 1)
    engine.run_until_idle()


def script_of(name: str) -> str:
    """What was declared in a kept store."""
    return SCRIPT if name == "format_5_first" else SCRIPT + MORE


def queries_of(name: str) -> tuple[str, ...]:
    """The queries of a kept store."""
    return QUERIES if name == "format_5_first" else QUERIES + OTHERS


def feed_all(engine: Engine, name: str, moments: range) -> None:
    """What came of some moments to a kept store."""
    feed(engine, moments)
    if name != "format_5_first":
        feed_more(engine, moments)


def main(name: str) -> None:
    """Makes a store with the present version, and packs it."""
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "store"
        with Engine(store=store) as engine:
            engine.execute(script_of(name))
            feed_all(engine, name, FIRST)
        with tarfile.open(STORES / f"{name}.tar.xz", "w:xz") as packed:
            packed.add(store, "store")


def unpacked(name: str, directory: Path) -> Path:
    """A kept store, to be opened in a directory."""
    with tarfile.open(STORES / f"{name}.tar.xz") as packed:
        packed.extractall(directory, filter="data")
    return directory / "store"


if __name__ == "__main__":
    main(sys.argv[1])
