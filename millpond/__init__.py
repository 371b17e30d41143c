"""Millpond: a data stream management system on Spark.

What is named here is loaded when it is asked for: Spark's workers, which import this package too,
need the kernels and nothing of the engine.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from millpond.errors import MillpondError
from millpond.version import VERSION

if sys.platform == "linux":
    # Arrow asks for it once, when it is loaded: its own allocator holds back what the budget is
    # to be kept to (millpond.storage.allocators).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

if TYPE_CHECKING:
    from millpond.client import connect
    from millpond.connectors.registry import source
    from millpond.facade.engine import Engine
    from millpond.functions.aggregate import Aggregate
    from millpond.insight.display import Plan, Query

__version__ = VERSION

__all__ = [
    "Aggregate",
    "Engine",
    "MillpondError",
    "Plan",
    "Query",
    "__version__",
    "connect",
    "source",
]

_HOMES = {
    "Aggregate": "functions.aggregate",
    "Engine": "facade.engine",
    "Plan": "insight.display",
    "Query": "insight.display",
    "connect": "client",
    "source": "connectors.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
