"""A store on an S3 server beside a directory: what pages cost in time and in requests.

The server is that of the tests: moto, in Python, on the same machine. It costs more than a real
one, and answers sooner.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from millpond import Engine
from millpond.storage.objects.objects import Objects
from tests.s3_server import serving

STATEMENTS = """
CREATE STREAM S (t BIGINT, k INT, v DOUBLE) TIMESTAMP BY t;
CREATE QUERY kept AS SELECT t, v FROM S WHERE v > 0.5;
CREATE QUERY counted AS SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 1000] GROUP BY k
"""
OPTIONS = {"driver_rows": 10**9, "place_by": "rows"}


def pages(count, rows):
    """Pages of tuples, 100 a tick."""
    rng = np.random.default_rng(1)
    for number in range(count):
        ts = (np.arange(rows) + number * rows) // 100
        keys = rng.integers(0, 100, rows).astype(np.int32)
        yield int(ts[-1]), pa.table({"t": ts, "k": keys, "v": rng.random(rows)})


def run(store, count, rows):
    """Seconds for so many pages, each pushed and worked on, and the requests by kind."""
    asked = Counter()
    for name in ("create", "put", "get", "delete", "ranges"):
        plain = getattr(Objects, name)

        def counted(self, *given, _plain=plain, _name=name):
            asked[_name] += 1
            return _plain(self, *given)

        setattr(Objects, name, counted)
    with Engine(OPTIONS, store=store) as engine:
        engine.execute(STATEMENTS)
        began = time.perf_counter()
        for last, page in pages(count, rows):
            engine.push("S", page)
            engine.advance("S", last)
            engine.run_until_idle()
        seconds = time.perf_counter() - began
        commits = engine.journal._log.last_number
    return seconds, commits, dict(asked)


def measured(server, rows, count):
    """One line for a size of pages."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        directory, _, _ = run(Path(folder) / "store", count, rows)
    objects, commits, asked = run(server.new_address(), count, rows)
    return {
        "case": f"{count} pages of {rows} rows",
        "directory_seconds": round(directory, 2),
        "s3_seconds": round(objects, 2),
        "ratio": round(objects / directory, 2),
        "commits_per_second": round(commits / objects, 1),
        "rows_per_second": round(rows * count / objects),
        "requests": asked,
    }


def main():
    """A JSON line for each size of pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000])
    given = parser.parse_args()
    with serving() as server:
        for rows in given.rows:
            print(json.dumps(measured(server, rows, given.count)), flush=True)


if __name__ == "__main__":
    main()
