"""A real browser for tests: Debian's chromium, installed if that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess

SHELL, WHOLE = "chromium-headless-shell", "chromium"
NAMES = (SHELL, WHOLE, "chromium-browser", "google-chrome")
"""The shell draws pages as the whole browser does, without windows: a visit costs a third."""
INSTALL_SECONDS = 300


def browser_path() -> str | None:
    """Where a browser is."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def installed_browser() -> tuple[str | None, str]:
    """Where a browser is, installed now if need be; and if there is none, why."""
    if path := browser_path():
        return path, ""
    if os.environ.get("MILLPOND_NO_INSTALL"):
        return None, "no chromium, and MILLPOND_NO_INSTALL forbids to install it"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None, "no chromium, and without root and apt-get it can not be installed"
    wait = f"DPkg::Lock::Timeout={INSTALL_SECONDS}"  # while another process installs it
    install = ["apt-get", "install", "-y", "-o", wait, "--no-install-recommends"]
    for command in ([*install, SHELL], ["apt-get", "update"], [*install, SHELL], [*install, WHOLE]):
        try:
            subprocess.run(command, check=False, capture_output=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            break
        if path := browser_path():
            return path, ""
    return None, "no chromium, and apt-get install chromium has not brought one"
