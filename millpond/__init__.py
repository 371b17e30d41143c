"""Millpond: a data stream management system on Spark."""

from millpond.display import Plan, Query
from millpond.engine import Engine
from millpond.errors import MillpondError

__version__ = "0.1.0"

__all__ = ["Engine", "MillpondError", "Plan", "Query", "__version__"]
