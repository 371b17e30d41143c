"""A mix of forty shapes of queries, and what one writes by hand to have all their answers."""

from __future__ import annotations

from collections.abc import Iterable

FORMS, LISTS = 8, 5
"""Forms of queries, each with so many select lists."""

COLUMNS = ("ts, key", "ts, value", "key, value", "ts, key, value", "value, key, ts")
AGGREGATES = ("count(*)", "max(value)", "min(value)", "sum(value)", "avg(value)")
KEYS = 1_000


def mixed(i: int, of: int) -> str:
    """The i-th query: eight forms with five select lists each."""
    form, which, key = i % FORMS, _list_of(i), _key_of(i)
    wanted, width = COLUMNS[which], AGGREGATES[which]
    match form:
        case 0:
            return f"SELECT {wanted} FROM S WHERE key = {key}"
        case 1:
            return f"SELECT {wanted} FROM S WHERE value > {_near_one(i)}"
        case 2:
            return f"SELECT {wanted} FROM S WHERE key = {key} AND value > {_limit(i)}"
        case 3:
            return f"SELECT {wanted} FROM S WHERE key IN ({key}, {(key + 1) % KEYS})"
        case 4:
            return f"SELECT {wanted} FROM S WHERE value BETWEEN {i / 1e6} AND {(i + 1) / 1e6}"
        case 5:
            select = f"SELECT key, {width} AS x FROM S [RANGE 1 SECOND] "
            return select + f"WHERE key = {key} GROUP BY key"
        case 6:
            select = f"SELECT key, {width} AS x FROM S [RANGE 5 SECONDS] "
            return select + f"WHERE key = {key} GROUP BY key HAVING count(*) > 1"
    select = ", ".join(f"S.{name}" for name in wanted.split(", "))
    return f"SELECT {select}, R.name FROM S [NOW], R WHERE S.key = R.key AND S.key = {key}"


def union_of_mix(of: int) -> list[str]:
    """What so many of the mix put out, in as few queries as can: streams, and relations.

    Each form is one branch of a UNION ALL with all its keys in a list, each aggregate is computed
    once for all its keys. Of overlapping limits near the largest value a tuple comes out once.
    """
    return [_streams(of), " UNION ALL ".join([_groups(of, 5, 1, ""), _groups(of, 6, 5, HAVING)])]


HAVING = " HAVING count(*) > 1"


def _streams(of: int) -> str:
    lowest = min(map(_near_one, range(1, of, FORMS)), default="1")
    by_limit: dict[float, list[int]] = {}
    for i in range(2, of, FORMS):
        by_limit.setdefault(_limit(i), []).append(_key_of(i))
    above = (f"key IN {_listed(keys)} AND value > {x}" for x, keys in by_limit.items())
    pairs = [key for i in range(3, of, FORMS) for key in (_key_of(i), (_key_of(i) + 1) % KEYS)]
    conditions = [
        f"key IN {_listed(_keys(of, 0))}",
        f"value > {lowest}",
        " OR ".join(above) or "FALSE",
        f"key IN {_listed(pairs)}",
        f"value <= {of / 1e6} AND CAST(value * 1000000 AS INT) % {FORMS} = 4",
    ]
    row = "SELECT {} AS form, ts, key, value, CAST(NULL AS STRING) AS name FROM S WHERE {}"
    branches = [row.format(form, condition) for form, condition in enumerate(conditions)]
    joined = "SELECT 7 AS form, S.ts, S.key, S.value, R.name FROM S [NOW], R WHERE S.key = R.key"
    return " UNION ALL ".join([*branches, f"{joined} AND S.key IN {_listed(_keys(of, 7))}"])


def _groups(of: int, form: int, seconds: int, having: str) -> str:
    values = [each.replace("count(*)", "CAST(count(*) AS DOUBLE)") for each in AGGREGATES]
    cases = (
        f"WHEN key IN {_listed(_keys(of, form, which))} THEN {value}"
        for which, value in enumerate(values)
    )
    return (
        f"SELECT {form} AS form, key, CASE {' '.join(cases)} END AS x FROM S "
        f"[RANGE {seconds} SECONDS] WHERE key IN {_listed(_keys(of, form))} GROUP BY key{having}"
    )


def _key_of(i: int) -> int:
    return (i * 7) % KEYS


def _list_of(i: int) -> int:
    return i // FORMS % LISTS


def _limit(i: int) -> float:
    return i % 10 / 10


def _near_one(i: int) -> str:
    return f"{1 - (i + 1) / 1e8:.9f}"


def _keys(of: int, form: int, which: int | None = None) -> list[int]:
    """The keys of one form, of all its select lists or of one."""
    return [_key_of(i) for i in range(form, of, FORMS) if which in (None, _list_of(i))]


def _listed(keys: Iterable[int]) -> str:
    """A list that is not empty: no tuple has a key below 0."""
    return f"({', '.join(map(str, sorted({*keys} or {-1})))})"
