"""Who gets the memory, so that the answers of all queries are the most precise (STREAM, 5.3)."""

from millpond.approximation.allocation.allocator import Allocation, Allocator
from millpond.approximation.allocation.plans import Operator, Option, Query, Stream

__all__ = ["Allocation", "Allocator", "Operator", "Option", "Query", "Stream"]
