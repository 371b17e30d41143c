"""Checked expressions on Arrow columns: the same bits as on Spark, without Spark.

An expression becomes a list of steps on numpy and Arrow arrays, compiled once for each operator.
"""

from millpond.kernels.expressions.condition import Condition
from millpond.kernels.expressions.faults import WORDS, Fault
from millpond.kernels.expressions.program import Columns, Program, can_lower, lower

__all__ = ["WORDS", "Columns", "Condition", "Fault", "Program", "can_lower", "lower"]
