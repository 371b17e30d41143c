"""One cluster for the tests of a file; what its processes wrote is shown with a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.cluster.standalone import StandaloneCluster, dying_with_its_parent, standalone_cluster

Driver = Callable[..., "subprocess.Popen[str]"]

BOTH_EXECUTORS = """
import time
from millpond.spark import executors

wait_for_some = executors._wait_for_executors

def wait_for_both(session, at_most_seconds):
    wait_for_some(session, at_most_seconds)
    while executors.executor_count(session) < 2:
        time.sleep(0.1)

executors._wait_for_executors = wait_for_both
"""
"""A session has both executors, however long the second takes on a busy machine."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that driver and workers share."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def cluster(store: Path) -> Iterator[StandaloneCluster]:
    """A master and two workers of one core each."""
    with standalone_cluster(store, workers=2) as cluster:
        yield cluster


@pytest.fixture
def driver(cluster: StandaloneCluster, tmp_path: Path) -> Iterator[Driver]:
    """Starts a program that finds the master in argv[1] and the store in argv[2]."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, **environment: str) -> subprocess.Popen[str]:
        script = tmp_path / f"driver_{len(started)}.py"
        script.write_text(BOTH_EXECUTORS + program, encoding="utf-8")
        command = [*dying_with_its_parent(), sys.executable, str(script)]
        command += [cluster.url, str(cluster.store)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment() | environment,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _environment() -> dict[str, str]:
    wanted = ("PATH", "HOME", "LANG", "TMPDIR", "JAVA_HOME", "SPARK_SUBMIT_OPTS")
    kept = {name: os.environ[name] for name in wanted if name in os.environ}
    return kept | {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the logs of the cluster to the report of a test that fails."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and cluster is not None:
        report.sections.append(("the cluster's logs", cluster.logs()))
    return report
