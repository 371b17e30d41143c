"""The times of a Range window as Spark columns."""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from millpond.planning.window_times import HopTimes, WindowTimes
from millpond.schema import FOREVER


def enter_column(window: WindowTimes) -> SparkColumn:
    """When the tuple of a row enters."""
    time = F.col("_ts")
    return (
        time
        if not window.enters_later or window.slide is None
        else time + F.pmod(-time, F.lit(window.slide))
    )


def leave_column(window: WindowTimes) -> SparkColumn:
    """When the tuple of a row leaves."""
    time = F.col("_ts")
    if isinstance(window, HopTimes):
        begin = time - F.pmod(time - F.lit(window.offset), F.lit(window.slide))
        return F.greatest(time, begin + F.lit(window.shift))
    if window.length is None:
        return F.lit(FOREVER)
    if window.slide is None:
        return time + F.lit(window.length + 1)
    last = time + F.lit(window.length)
    return last - F.pmod(last, F.lit(window.slide)) + F.lit(window.slide)
