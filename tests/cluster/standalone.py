"""A real Spark standalone cluster: processes on this machine, of the classes in PySpark's wheel.

Each worker has a loopback address of its own and, where the machine allows it, a mount namespace
in which ``/tmp`` and ``/dev/shm`` are its own: it shares only the store with anybody else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import pyspark

from millpond.spark.java import java_home
from tests import java_archive
from tests.patience import PATIENCE_SECONDS, wait_until

SPARK_HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"

# Kept directories wait under the new /dev/shm while /tmp, where they may be, is covered.
# What is needed for that is found even if PATH is a folder under /tmp.
_COVER = """\
set -e
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs none /dev/shm
number=0
for kept in "$@"; do
  [ "$kept" = -- ] && break
  number=$((number + 1))
  mkdir -p "/dev/shm/kept/$number"
  mount --bind "$kept" "/dev/shm/kept/$number"
done
mount -t tmpfs none /tmp
number=0
while [ "$1" != -- ]; do
  number=$((number + 1))
  mkdir -p "$1"
  mount --bind "/dev/shm/kept/$number" "$1"
  umount "/dev/shm/kept/$number"
  rmdir "/dev/shm/kept/$number"
  shift
done
rm -rf /dev/shm/kept
shift
exec "$@"
"""


@dataclass(frozen=True)
class Daemon:
    """A master or a worker: its process and the file it writes to."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """Ends it and all it has started, at once, as a machine that goes dark."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        self.process.kill()  # first: it would start its executors anew
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait()
        wait_until(lambda: not any(map(_is_alive, family)))

    def wait_for(self, pattern: str) -> str:
        """The first group of a pattern as soon as the log has it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            text = self.log.read_text(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found[1]
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.log.stem} ended:\n{text[-3000:]}")
            time.sleep(0.05)
        raise RuntimeError(f"{self.log.stem}: no {pattern!r} in {PATIENCE_SECONDS} seconds")


class StandaloneCluster:
    """A master and workers; ``store`` is the directory that driver and workers share."""

    def __init__(self, directory: Path, store: Path, is_isolated: bool | None = None) -> None:
        self.directory = directory
        self.store = store
        self.is_isolated = can_isolate() if is_isolated is None else is_isolated
        self.workers: list[Daemon] = []
        self._daemons: list[Daemon] = []
        self._worker_count = 0
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._master = self._start("master", "127.0.0.1", [*_java(), MASTER, *arguments])
        self.url = self._master.wait_for(r"Starting Spark master at (spark://\S+)")

    def start_worker(self, cores: int = 1, memory: str = "1g", pinned: int | None = None) -> Daemon:
        """Starts a worker, on one core of the machine alone if ``pinned``; waits until it is in."""
        self._worker_count += 1
        name = f"worker-{self._worker_count}"
        host = _loopback(self._worker_count)
        own = self.directory / name
        own.mkdir()
        command = [*_java(), WORKER, "--host", host, "--port", "0", "--webui-port", "0"]
        command += ["--cores", str(cores), "--memory", memory, "--work-dir", str(own), self.url]
        if self.is_isolated:
            command = _isolated(command, keeping=[self.store, own, *_needed()])
        if pinned is not None:
            command = ["taskset", "--cpu-list", str(pinned), *command]
        worker = self._start(name, host, command)
        worker.wait_for(r"(Successfully registered with master)")
        self.workers.append(worker)
        return worker

    def kill_worker(self, worker: Daemon) -> None:
        """Kills a worker with its executors."""
        worker.kill()
        self.workers.remove(worker)

    def stop(self) -> None:
        """Kills everything."""
        for daemon in reversed(self._daemons):
            daemon.kill()

    def logs(self) -> str:
        """What the daemons and executors have written last, for the report of a failure."""
        files = sorted(self.directory.glob("*.log")) + sorted(self.directory.glob("*/*/*/std*"))
        texts = {file: file.read_text(errors="replace")[-4000:] for file in files}
        return "\n".join(f"== {file}\n{text}" for file, text in texts.items() if text)

    def _start(self, name: str, host: str, command: Sequence[str]) -> Daemon:
        log = self.directory / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(host),
                cwd=self.directory,
                start_new_session=True,
            )
        daemon = Daemon(process, log)
        self._daemons.append(daemon)
        return daemon


@contextmanager
def standalone_cluster(
    store: Path, workers: int = 2, is_isolated: bool | None = None, pinned: bool = False
) -> Iterator[StandaloneCluster]:
    """A cluster of workers with one core each; everything is stopped and removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="millpond-cluster-"))
    cluster = None
    try:
        cluster = StandaloneCluster(directory, store, is_isolated)
        for number in range(workers):
            cluster.start_worker(pinned=number % (os.cpu_count() or 1) if pinned else None)
        yield cluster
    except BaseException as error:
        if cluster is not None and isinstance(error, Exception):
            error.add_note(cluster.logs())
        raise
    finally:
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _java() -> list[str]:
    """Java with Spark's classes; it dies with the thread that started it, if that can be had."""
    java = [str(java_home() / "bin" / "java"), "-Xmx512m", *_SHORT_LIVED]
    java += ["-cp", _class_path()]
    return [*dying_with_its_parent(), *java]


def _class_path() -> str:
    """As Spark's own scripts have it, so that the archive of the tests fits daemons too."""
    (first,) = (SPARK_HOME / "jars").glob("slf4j-api-*.jar")
    return os.pathsep.join([f"{SPARK_HOME}/conf", str(first), f"{SPARK_HOME}/jars/*"])


_SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""What Java gains by compiling more comes after the cluster is gone."""


@cache
def dying_with_its_parent() -> tuple[str, ...]:
    """How to start a program that is killed if this one is, where the machine can do that."""
    prefix = ("setpriv", "--pdeathsig", "KILL", "--")
    return prefix if _succeeds([*prefix, "true"]) else ()


def _environment(host: str) -> dict[str, str]:
    """As little as a daemon of another machine would have of the driver's environment.

    Executors get it from their worker: in tests, with a Java that compiles quickly.
    """
    options = os.environ.get("SPARK_SUBMIT_OPTS")
    return ({"JDK_JAVA_OPTIONS": options} if options else {}) | {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SCALA_VERSION": _scala_version(),
        "SPARK_LOCAL_IP": host,
    }


def _scala_version() -> str:
    """What Spark's start scripts tell the daemons, without which they start no executor."""
    library = next((SPARK_HOME / "jars").glob("scala-library-*.jar"))
    return ".".join(library.stem.removeprefix("scala-library-").split(".")[:2])


@cache
def can_isolate() -> bool:
    """Whether this machine lets a process have mounts of its own."""
    probe = ["sh", "-c", 'test -z "$(ls /tmp /dev/shm | grep -v :)"']
    return _succeeds(_isolated(probe, keeping=[]))


def _isolated(command: Sequence[str], keeping: Sequence[Path]) -> list[str]:
    kept = sorted({str(path.resolve()) for path in keeping if _is_covered(path)})
    return [*_unsharing(), "sh", "-c", _COVER, "sh", *kept, "--", *command]


def _is_covered(path: Path) -> bool:
    if path.resolve().is_relative_to("/dev/shm"):
        raise ValueError(f"{path}: nothing under /dev/shm can be shared with a worker; use /tmp")
    return path.resolve().is_relative_to("/tmp")


def _needed() -> list[Path]:
    """What a worker runs, wherever it is installed."""
    needed = [Path(sys.prefix), Path(sys.base_prefix), java_home(), SPARK_HOME]
    return [*needed, java_archive.DIRECTORY] if java_archive.DIRECTORY.exists() else needed


@cache
def _unsharing() -> tuple[str, ...]:
    """As root plainly, else as root of a user namespace."""
    return ("unshare", "-m") if _succeeds(["unshare", "-m", "true"]) else ("unshare", "-rm")


def _is_alive(process: psutil.Process) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _loopback(number: int) -> str:
    """127.0.0.2 and so on: executors of one host would read each other's shuffle files."""
    return f"127.0.0.{number + 1}" if sys.platform == "linux" else "127.0.0.1"


def _succeeds(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
