"""A page of a source is read where it belongs: a small one in the driver, a large one elsewhere."""

from collections.abc import Callable
from typing import Any

from millpond.intake.source_reading import SourceReading
from millpond.intake.taking import admit_elsewhere
from millpond.sharing.ground import Ground


def read_page(ground: Ground, reading: SourceReading, expect_spark: Callable[[], None]) -> None:
    """Reads a page of a source, here or where the executors are; the lock is not held."""
    reading.line = _read_elsewhere(ground, reading, expect_spark)
    if reading.line is None:
        reading.read()


def _read_elsewhere(
    ground: Ground, reading: SourceReading, expect_spark: Callable[[], None]
) -> dict[str, Any] | None:
    """Has the executors read a page where files hold more rows than are for the driver."""
    intake, settings = ground.inputs.streams.get(reading.name), ground.settings_now
    most = settings.driver_rows
    is_large = settings.page_rows > most and (not most or reading.rows_left > most)
    if is_large and (not most or settings.place_by == "rows"):
        expect_spark()
    if intake is None or not is_large or not reading.can_be_elsewhere:
        return None
    may_wait = most == 0 or settings.place_by == "rows"
    if not may_wait and not ground.lazy_spark.is_started:
        return None  # while Spark starts there is work for the driver
    with ground.lock:
        admission = admit_elsewhere(ground.inputs, reading)
    if admission is None:
        return None
    from millpond.spark.sources import read_page

    work = {
        "admission": admission,
        "settings": settings,
        "directory": str(ground.directory.absolute()),
        "rows": reading.taken,
        "now": intake.now_ticks(),
    }
    return read_page(ground.spark, ground.store, work)
