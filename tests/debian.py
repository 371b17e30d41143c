"""Programs that tests need and Debian has, installed if that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import TypeVar

INSTALL_SECONDS = 300
FOLDERS = "/usr/bin:/usr/sbin"
"""Where Debian puts programs, whatever PATH was when the tests began."""

Found = TypeVar("Found")


class MissingProgramError(Exception):
    """There is no such program here; says why."""


def which(name: str) -> str | None:
    """Where a program is, also one that has been installed only now."""
    return shutil.which(name) or shutil.which(name, path=FOLDERS)


def installed(find: Callable[[], Found | None], *packages: str) -> Found:
    """What ``find`` finds, at the latest once one of these packages is installed."""
    if found := find():
        return found
    absent = f"no {packages[0]}"
    if os.environ.get("MILLPOND_NO_INSTALL"):
        raise MissingProgramError(f"{absent}, and MILLPOND_NO_INSTALL forbids to install it")
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingProgramError(f"{absent}, and without root and apt-get none can be installed")
    wait = f"DPkg::Lock::Timeout={INSTALL_SECONDS}"  # while another process installs something
    install = ["apt-get", "install", "-y", "-o", wait, "--no-install-recommends"]
    first, *others = ([*install, package] for package in packages)
    for command in (first, ["apt-get", "update"], first, *others):
        try:
            subprocess.run(command, check=False, capture_output=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            break
        if found := find():
            return found
    raise MissingProgramError(f"{absent}, and apt-get install has not brought it")
