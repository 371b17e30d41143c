"""A cluster that runs: its cores, Millpond's modules on it, and the store it must see."""

import os
import socket
import time
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from millpond.errors import MachineError
from millpond.settings import is_local
from millpond.spark.internals import executor_count, leave_quietly, master_of, temporary_directory

PACKAGE = Path(__file__).parents[1]
"""Millpond itself."""

_FIRST_EXECUTOR_SECONDS = 120.0
_LEAST_SETTLED_SECONDS = 1.0


def cores(session: SparkSession) -> int:
    """How many tasks run at once, as Spark knows it now."""
    return session.sparkContext.defaultParallelism


def join_cluster(session: SparkSession) -> None:
    """Waits for executors, gives them this Millpond, and shuffles into as many parts as cores."""
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


def check_store(session: SparkSession, directory: Path, is_shared: bool) -> None:
    """Raises MachineError if a cluster's worker cannot write where an engine keeps its pages."""
    if is_local(master_of(session)):
        return
    if not is_shared:
        raise MachineError(
            f"workers of {master_of(session)} do not see the memory of this process: "
            "SET store to a directory that all hosts see"
        )
    token = f".{uuid.uuid4().hex}"
    (directory / token).touch()
    try:
        blind = sorted(_hosts_without(session, directory, token))
    finally:
        (directory / token).unlink()
    if blind:
        raise MachineError(
            f"store {directory}: not seen or not writable on {', '.join(blind)}; "
            "it must be the same directory on all hosts"
        )


def _hosts_without(session: SparkSession, directory: Path, token: str) -> set[str]:
    """The hosts on which a task does not see a file, or cannot write one beside it."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        leave_quietly()
        for _ in batches:
            time.sleep(0.1)  # so that one worker does not do it all
            own = directory / f"{token}-{os.getpid()}"
            try:
                (directory / token).stat()
                own.touch()
                own.unlink()
            except OSError as error:
                host = f"{socket.gethostname()} ({error.strerror})"
                yield pa.RecordBatch.from_pydict({"host": [host]})

    tasks = 2 * cores(session)
    frame = session.range(0, tasks, 1, tasks).mapInArrow(look, "host STRING")
    return {row.host for row in frame.collect()}


def _wait_for_executors(session: SparkSession, at_most_seconds: float) -> None:
    """Returns when there is an executor and, for as long as it took, no further one has come."""
    if session.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # they come with the jobs
    began = changed = time.monotonic()
    settled = _LEAST_SETTLED_SECONDS
    count = executor_count(session)
    while count == 0 or time.monotonic() - changed < settled:
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
            if count == 0:
                settled = max(settled, time.monotonic() - began)
            count, changed = now, time.monotonic()
