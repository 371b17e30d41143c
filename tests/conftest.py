"""One Spark session for all tests, started when the first of them asks for it; their examples."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from millpond.settings import Settings
from millpond.spark.session import create_session
from tests.drawn_examples import load_profile

load_profile()


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
    """Has Ctrl-C heard, also by what tests start: a shell has its background jobs ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that uses the session, so that `-m 'not spark'` starts no JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
