"""One Spark session for all tests, started when the first of them asks for it; their examples."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from pyspark.sql import SparkSession
from xdist.remote import Producer

from millpond.execution.operators import freeing
from millpond.execution.runtime import EngineRuntime
from millpond.settings import Settings
from millpond.spark.session import create_session
from tests import java_archive
from tests.drawn_examples import load_profile
from tests.few_sessions import FewSessions

load_profile()

LONGEST = ("spark", "slow")
JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"


@pytest.fixture(autouse=True)
def _swept_as_ever() -> Iterator[None]:
    """Cases with constraints have closed values be looked for in every step; others have not."""
    before = freeing.COMPACT_ROWS
    yield
    freeing.COMPACT_ROWS = before


@pytest.fixture(autouse=True)
def _no_executors_unasked(request: pytest.FixtureRequest) -> Iterator[None]:
    """On a machine that is busy steps take so long that an engine would have Spark start beside
    them; for tests that need no JVM it comes too late, and takes longer than they do."""
    asked = EngineRuntime.misses_executors
    if not request.node.get_closest_marker("spark"):
        EngineRuntime.misses_executors = False  # type: ignore[assignment,method-assign]
    yield
    EngineRuntime.misses_executors = asked  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def _spark_session() -> Iterator[SparkSession]:
    session = create_session(Settings(spark_master="local[2]"))
    yield session
    session.stop()


@pytest.fixture
def spark(_spark_session: SparkSession) -> Iterator[SparkSession]:
    """The shared session; what a test cached is gone after it."""
    yield _spark_session
    _spark_session.catalog.clearCache()


def pytest_configure() -> None:
    """Sets what holds for all that tests start, too: a Java that compiles quickly, and a Ctrl-C
    that is heard, which a shell has its background jobs ignore."""
    os.environ.setdefault(JAVA_OPTIONS, java_archive.SHORT_LIVED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FewSessions | None:
    """Has few processes start a session, where whole files are handed out."""
    return FewSessions(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], Any]:
    """Looks for examples only in files that have some: each search imports, and reads each name."""
    found = yield
    if not found or ">>>" in file_path.read_text(encoding="utf-8"):
        return found
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that uses the session, so that `-m 'not spark'` starts no JVM.

    Files that take long come first: at the end there are short ones to share among processes.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    ranks: dict[Path, int] = {}
    for item in items:
        ranks[item.path] = min(_rank(item), ranks.get(item.path, len(LONGEST)))
    items.sort(key=lambda item: ranks[item.path])


def _rank(item: pytest.Item) -> int:
    """The place of the first mark that says how long a test takes; behind all of them if none."""
    marked = (place for place, mark in enumerate(LONGEST) if item.get_closest_marker(mark))
    return min(marked, default=len(LONGEST))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Has every JVM find Spark's classes in an archive, unless somebody has set other options."""
    is_ours = os.environ[JAVA_OPTIONS] == java_archive.SHORT_LIVED
    if is_ours and item.get_closest_marker("spark"):
        os.environ[JAVA_OPTIONS] = java_archive.options()


def pytest_collection_finish() -> None:
    """Leaves all that was imported out of the search for garbage, which goes on in every test."""
    gc.collect()
    gc.freeze()
