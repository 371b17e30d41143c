"""What a step costs in constructs of the language with much and with little alive.

    python -m benchmarks.language [--quick] [--out DIR] [--rows MOST_ALIVE] [--cases NAME ...]

Steps of 1,000 rows in the driver, as in benchmarks/step_growth.py, while 10,000 and while 1,000,000
rows are alive (--quick: 200,000): rows come, and as many go.
"""

from benchmarks.reporting import Report, options
from benchmarks.step_growth import Case, compare

_RANKED = (
    "SELECT key, value, place FROM (SELECT key, value, {function}() OVER ({by}ORDER BY value DESC) "
    "AS place FROM S [RANGE {{alive}}]) T WHERE place <= {most}"
)

_SESSIONS = (
    "SELECT key, window_start, window_end, count(*) AS n, sum(value) AS total "
    "FROM S [SESSION {alive} PARTITION BY key] GROUP BY key, window_start, window_end"
)
"""Of ten times as many keys as there are rows alive: about as many sessions are open."""

_PATTERN = (
    "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY key MEASURES A.ts AS begins, count(*) AS n, "
    "max(value) AS most PATTERN ({pattern}) WITHIN {{alive}} DEFINE {defined})"
)
_MATCHES = _PATTERN.format(pattern="A X*? B", defined="A AS A.value < 0.5, B AS B.value > 0.9")
_COMPARED = _PATTERN.format(
    pattern="A X*? B", defined="A AS A.value < 0.5, B AS B.value > A.value + 0.4"
)
"""Of as many keys as there are rows alive: in about half of them a match has begun."""
_ABSENT = _PATTERN.format(pattern="A NOT B", defined="B AS B.value < 0.1")
"""Of ten times as many keys as there are rows alive: about as many matches have begun."""

CASES = (
    Case("the first ten", "SELECT key, value FROM S [RANGE {alive}] ORDER BY value DESC LIMIT 10"),
    Case(
        "the first three of each key",
        _RANKED.format(function="ROW_NUMBER", by="PARTITION BY key ", most=3),
        keys_per_row=0.01,
    ),
    Case("the first ten dense ranks", _RANKED.format(function="DENSE_RANK", by="", most=10)),
    Case(
        "tumbling windows",
        "SELECT window_start, count(*) AS n, max(value) AS largest FROM S [TUMBLE {alive}] "
        "GROUP BY window_start, window_end",
    ),
    Case(
        "running sum of a partition",
        "SELECT key, value, sum(value) OVER (ORDER BY ts) AS total FROM S [UNBOUNDED]",
    ),
    Case(
        "mean of ten rows",
        "SELECT key, value, avg(value) OVER (ORDER BY ts ROWS 9 PRECEDING) AS mean "
        "FROM S [RANGE {alive}]",
    ),
    Case(
        "the value before, of each key",
        "SELECT key, value, lag(value) OVER (PARTITION BY key ORDER BY ts) AS before "
        "FROM S [RANGE {alive}]",
        keys_per_row=0.01,
    ),
    Case("begun matches", _MATCHES),
    Case("begun matches that look at one another", _COMPARED),
    Case("rows behind which nothing came", _ABSENT, keys_per_row=10.0),
    Case("open sessions", _SESSIONS, keys_per_row=10.0),
    Case("open sessions, at their ends", f"{_SESSIONS} EMIT FINAL", keys_per_row=10.0),
)


def main() -> None:
    """Measures all cases and prints."""
    parser = options(__doc__ or "", "how many rows are alive at most")
    parser.add_argument("--cases", nargs="*", help="some of the cases, by name")
    chosen = parser.parse_args()
    cases = [case for case in CASES if not chosen.cases or case.name in chosen.cases]
    compare(Report("language", chosen.out), cases, chosen.quick, chosen.rows)


if __name__ == "__main__":
    main()
