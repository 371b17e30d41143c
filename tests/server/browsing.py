"""A real browser for tests: Debian's chromium, installed if that is possible."""

from __future__ import annotations

from functools import cache

from tests.debian import MissingProgramError, installed, which

SHELL, WHOLE = "chromium-headless-shell", "chromium"
NAMES = (SHELL, WHOLE, "chromium-browser", "google-chrome")
"""The shell draws pages as the whole browser does, without windows: a visit costs a third."""


@cache
def installed_browser() -> tuple[str | None, str]:
    """Where a browser is, installed now if need be; and if there is none, why."""
    try:
        return installed(_found, SHELL, WHOLE), ""
    except MissingProgramError as error:
        return None, str(error)


def _found() -> str | None:
    return next((path for name in NAMES if (path := which(name))), None)
