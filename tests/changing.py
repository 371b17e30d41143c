"""Streams whose constraints change while data flow: all kinds are added, widened, altered, dropped.

Whatever happens, answers are those of the tuples that were not put aside.
"""

from __future__ import annotations

import random

from millpond import Engine
from millpond.errors import CqlError

QUERIES = {
    "unbounded": "SELECT A.v, B.v AS w FROM A, B WHERE A.id = B.id",
    "windows": "SELECT A.v, B.v AS w FROM A [RANGE 12], B [RANGE 15] WHERE A.id = B.id",
    "half": "SELECT A.v, B.v AS w FROM A [RANGE 6], B WHERE A.id = B.id",
    "sums": "SELECT A.id, sum(B.v) AS s FROM A [RANGE 8], B [RANGE 8] WHERE A.id = B.id "
    "GROUP BY A.id",
    "groups": "SELECT id, count(*) AS n, sum(v) AS s FROM A GROUP BY id",
    "missing": "SELECT v FROM A WHERE NOT EXISTS (SELECT * FROM B WHERE B.id = A.id)",
    "last": "SELECT id, v FROM A [PARTITION BY id ROWS 2]",
    "entering": "SELECT Istream(id, v) FROM B [PARTITION BY id ROWS 1]",
    "last_sums": "SELECT id, sum(v) AS s FROM B [PARTITION BY id ROWS 2] GROUP BY id",
    "parts": "SELECT A.v, L.v AS w FROM A, B [PARTITION BY id ROWS 2] L WHERE A.id = L.id",
}
WINDOWED = ("windows", "sums", "last", "entering")
"""Of these nothing is missing for ever."""

DELAY = 3


def rows_of(rng, count):
    """Tuples of A and B whose numbers mostly rise, and some come far behind; each has a number of
    its own."""
    made, time = [], 0
    for number in range(count):
        time += rng.random() < 0.4
        near = number // 6 + rng.randrange(-1, 3)
        far = near - rng.randrange(1, 7) if rng.random() < 0.2 else near
        made.append((rng.choice("AB"), (time + rng.randrange(DELAY + 1), max(0, far), number)))
    return made


def clause_of(rng, stream):
    """A constraint of any kind."""
    far = f"{rng.randrange(8)} ROWS" if rng.random() < 0.6 else str(rng.randrange(6))
    other = "B" if stream == "A" else "A"
    kind = rng.choice(
        ("ORDERED BY (id)", "CLUSTERED BY (id)", "UNIQUE (id)", f"REFERENCES {other} (id)")
    )
    return f"{kind} WITHIN {far} ON VIOLATION {rng.choice(('COUNT', 'WIDEN'))}"


def _changed(engine, rng, names):
    """A constraint comes, goes or has another k; what cannot be is refused."""
    stream = rng.choice(names)
    told = [
        row
        for row in engine.execute("SHOW CONSTRAINTS")[0].to_pylist()
        if row["state"] == "declared"
    ]
    what = rng.choice(("ADD", "DROP", "ALTER"))
    if what == "ADD" or not told:
        number = rng.randrange(10**9)
        clause = f"CONSTRAINT c{number} {clause_of(rng, stream)}"
        engine.execute(f"ALTER STREAM {stream} ADD {clause}")
        return clause
    row = rng.choice(told)
    if what == "DROP":
        text = f"ALTER STREAM {row['stream']} DROP CONSTRAINT {row['name']}"
    else:
        unit = " ROWS" if "rows" in row["within"] else ""
        far = rng.randrange(9)
        text = f"ALTER STREAM {row['stream']} ALTER CONSTRAINT {row['name']} WITHIN {far}{unit}"
    try:
        engine.execute(text)
    except CqlError as error:
        if "missing for ever" not in str(error) and "which was dropped" not in str(error):
            raise
        text += " (refused)"
    return text


def answers(seed, rows, queries, *, changes, store=None, restarts=False, **settings):
    """What queries answer when tuples come in pieces; those that were put aside; what was said."""
    rng, said = random.Random(seed), []
    engine = Engine(settings, store=store)
    for name in "AB":
        engine.execute(
            f"CREATE STREAM {name} (t BIGINT, id INT, v INT) TIMESTAMP BY t DELAY {DELAY}"
        )
    for name in queries:
        engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")
    left = list(rows)
    while left:
        size = 1
        while size < min(len(left), rng.choice((1, 5))) and left[size][0] == left[0][0]:
            size += 1
        piece, left = left[:size], left[size:]
        engine.push(piece[0][0], [row for _, row in piece])
        if left and rng.random() < 0.5:
            for name in "AB":
                engine.advance(name, min(row[0] for _, row in left) - 1)
        if rng.random() < 0.5:
            engine.run_until_idle()
        if changes and rng.random() < 0.15:
            said.append(_changed(engine, rng, "AB"))
        if restarts and rng.random() < 0.1:
            if rng.random() < 0.5:
                engine.compact_log()
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in queries}
    aside = {row["v"] for name in "AB" for row in engine.violating(name).to_pylist()}
    assert not any(engine.late(name).num_rows for name in "AB")
    assert not engine.failures()
    engine.close()
    return found, aside, said


def chosen(rng):
    """Some queries: often such of which nothing is missing for ever."""
    names = WINDOWED if rng.random() < 0.5 else tuple(QUERIES)
    return rng.sample(names, rng.randrange(1, min(4, len(names)) + 1))
