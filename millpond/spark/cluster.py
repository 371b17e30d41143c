"""What Spark is told of a cluster before it starts: addresses, executors, the workers' Python."""

import os
import re
import socket
import sys

from millpond.errors import MachineError
from millpond.settings import AUTO, Settings, is_local

_LOOPBACK = "127.0.0.1"
_ANSWER_SECONDS = 10.0


def cluster_options(settings: Settings) -> dict[str, str]:
    """The Spark options for a cluster; what is not set is as Spark's own configuration says."""
    wanted = {
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.cores": settings.executor_cores,
    }
    return {key: value for key, value in wanted.items() if value != AUTO}


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
