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
