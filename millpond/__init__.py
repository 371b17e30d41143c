"""Millpond: a data stream management system on Spark."""

from millpond.engine import Engine, Plan, Query
from millpond.errors import MillpondError

__version__ = "0.1.0"

__all__ = ["Engine", "MillpondError", "Plan", "Query", "__version__"]
