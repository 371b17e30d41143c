"""What a cluster needs and a local Spark does not: addresses, executors, Millpond on workers."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from millpond.errors import MachineError
from millpond.settings import AUTO, Settings
from millpond.spark.internals import executor_count, master_of, temporary_directory

PACKAGE = Path(__file__).parents[1]
"""Millpond itself."""

_LOOPBACK = "127.0.0.1"
_FIRST_EXECUTOR_SECONDS = 60.0
_SETTLED_SECONDS = 1.0
_ANSWER_SECONDS = 10.0


def is_local(spark_master: str) -> bool:
    """Whether Spark runs its tasks in the driver's own process.

    >>> is_local("local[2]"), is_local("spark://here:7077"), is_local("local-cluster[2,1,1024]")
    (True, False, False)
    """
    return re.match(r"local(\[|$)", spark_master) is not None


def local_cores(spark_master: str) -> int:
    """How many tasks a local Spark runs at once.

    >>> local_cores("local[3]"), local_cores("local")
    (3, 1)
    """
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", spark_master)
    if match is None:
        raise MachineError(f'spark_master = "{spark_master}" is no local Spark: use local[2]')
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)


def cores(session: SparkSession) -> int:
    """How many tasks run at once, as Spark knows it now."""
    return session.sparkContext.defaultParallelism


# -- before Spark starts -------------------------------------------------------------------


def cluster_options(settings: Settings) -> dict[str, str]:
    """The Spark options for a cluster; what is not set is as Spark's own configuration says."""
    wanted = {
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.cores": settings.executor_cores,
    }
    chosen = {key: value for key, value in wanted.items() if value != AUTO}
    return {"spark.executor.syncLogLevel.enabled": "true"} | chosen


def address_options(settings: Settings) -> dict[str, str]:
    """Where the driver listens; nothing if that is left to Spark."""
    host = driver_host(settings)
    if host is None:
        return {}
    return {"spark.driver.host": host, "spark.driver.bindAddress": _bindable(host)}


def driver_host(settings: Settings) -> str | None:
    """The address that workers reach the driver at, or None if Spark has to find it out.

    >>> driver_host(Settings()), driver_host(Settings(driver_host="10.1.2.3"))
    ('127.0.0.1', '10.1.2.3')
    """
    if settings.driver_host != AUTO:
        return settings.driver_host
    if settings.spark_master.startswith("local"):
        return _LOOPBACK
    masters = _hosts(settings.spark_master)
    return _address_towards(masters, settings.spark_master) if masters else None


def worker_python(spark_master: str) -> str:
    """The Python that runs Millpond's part of a task: on a cluster PYSPARK_PYTHON, if it is set."""
    if is_local(spark_master):
        return sys.executable
    return os.environ.get("PYSPARK_PYTHON") or sys.executable


def _hosts(spark_master: str) -> list[tuple[str, int]]:
    """The hosts that a master's address names; none for YARN.

    >>> _hosts("spark://a:7077,b:7077"), _hosts("k8s://https://c:6443"), _hosts("yarn")
    ([('a', 7077), ('b', 7077)], [('c', 6443)], [])
    """
    found = re.findall(r"(?:^|[/,])(\[[^\]]+\]|[^/,:\[\]]+):(\d+)(?=[/,]|$)", spark_master)
    return [(host.strip("[]"), int(port)) for host, port in found]


def _address_towards(masters: list[tuple[str, int]], spark_master: str) -> str:
    """The address of this machine on the way to the first master that answers."""
    refusals = []
    for host, port in masters:
        try:
            with socket.create_connection((host, port), timeout=_ANSWER_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            refusals.append(f"{host}:{port} ({error.strerror or error})")
    raise MachineError(
        f'spark_master = "{spark_master}": no answer from {", ".join(refusals)}; '
        "is the master running, and is its address right?"
    )


def _bindable(host: str) -> str:
    """The address to listen at: the host's if it is one of this machine, else all."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.bind(address)
    except OSError:
        return "0.0.0.0"  # noqa: S104, behind a forwarded address there is no narrower one
    return host


# -- once Spark runs -----------------------------------------------------------------------


def join_cluster(session: SparkSession) -> None:
    """Waits for executors, gives them this Millpond, and shuffles into as many parts as cores.

    They log errors only, as the driver does: a line a task fills a disk in the long run.
    """
    session.sparkContext.setLogLevel("ERROR")
    _wait_for_executors(session, _FIRST_EXECUTOR_SECONDS)
    ship_package(session)
    session.conf.set("spark.sql.shuffle.partitions", str(cores(session)))


def ship_package(session: SparkSession) -> None:
    """Sends this very Millpond to the workers, before any that is installed there."""
    archive = temporary_directory(session) / "millpond.zip"  # read by executors to come, too
    write_package(archive)
    session.sparkContext.addPyFile(str(archive))


def write_package(archive: Path) -> None:
    """Writes Millpond's modules as an archive that Python imports from."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for module in sorted(PACKAGE.rglob("*.py")):
            package.write(module, module.relative_to(PACKAGE.parent))


def _wait_for_executors(session: SparkSession, at_most_seconds: float) -> None:
    """Returns when there is an executor and no further one has come for a second."""
    if session.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # they come with the jobs
    began = changed = time.monotonic()
    count = executor_count(session)
    while count == 0 or time.monotonic() - changed < _SETTLED_SECONDS:
        if count == 0 and time.monotonic() - began > at_most_seconds:
            raise MachineError(
                f"{master_of(session)} gives no executor within {at_most_seconds:g} "
                "seconds: is a worker running, and has it the memory and cores that executor_memory"
                " and executor_cores ask for? Can it reach the driver at "
                f"{session.conf.get('spark.driver.host')} (SET driver_host)?"
            )
        time.sleep(0.05)
        now = executor_count(session)
        if now != count:
            count, changed = now, time.monotonic()
