"""Secrets of connectors: a script names them, the environment has them, and nothing shows them.

An argument such as `env:MILLPOND_SECRET_KEY` stands for the value of that variable. It is looked
up when the connector is opened; plans, logs and stores have the name only.
"""

from __future__ import annotations

import os
from typing import Any

from millpond.errors import InputError

REFERENCE, ALLOWED = "env:", "MILLPOND_SECRET_"


def is_reference(value: Any) -> bool:
    """Whether an argument names a secret.

    >>> is_reference("env:MILLPOND_SECRET_KEY"), is_reference("key")
    (True, False)
    """
    return isinstance(value, str) and value.startswith(REFERENCE)


def resolved(value: Any) -> Any:
    """The argument, or the secret that it names; other variables are nobody's business."""
    if not is_reference(value):
        return value
    name = value.removeprefix(REFERENCE)
    if not name.startswith(ALLOWED):
        raise InputError(f"{value}: a secret is in a variable whose name begins with {ALLOWED}")
    if name not in os.environ:
        raise InputError(f"{value}: there is no such variable in the environment")
    return os.environ[name]
