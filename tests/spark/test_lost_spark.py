"""An engine outlives its Spark: the step that was under way is done again in a new one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS

SCRIPT = """
import os, signal
from millpond import Engine

engine = Engine({"spark_master": "local[2]", "driver_rows": 0, "processors": 2})
engine.execute('''
    CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
    CREATE QUERY counts AS SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a;
    CREATE QUERY pairs AS ISTREAM(SELECT x.a FROM S [RANGE 3] x, S [RANGE 3] y WHERE x.a = y.a);
''')
engine.push("S", [(1, 1), (2, 1), (3, 2)])
engine.run_until_idle()
before = engine.spark
os.kill(before.sparkContext._gateway.proc.pid, signal.SIGKILL)
engine.push("S", [(4, 1), (9, 2)])
engine.finish()
assert engine.failures() == [] and engine.spark is not before
print(sum(row["weight"] for row in engine.results("counts", "rows")))
print(sorted((row["ts"], row["weight"]) for row in engine.results("pairs", "rows")))
engine.close()

dead = engine.spark
dead.stop()
with Engine({"driver_rows": 0}, dead) as other:
    other.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t; CREATE QUERY q AS SELECT t FROM S;")
    other.push("S", [(1,), (2,)])
    other.finish()
    print([row["t"] for row in other.results("q", "rows")], other.spark is not dead)
"""


@pytest.mark.spark
def test_a_spark_that_dies_is_started_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    counts, pairs, others = done.stdout.splitlines()[:3]
    assert (counts, pairs) == ("0", "[(1, 1), (2, 3), (3, 1), (4, 5), (9, 1)]")
    assert others == "[1, 2] True"
