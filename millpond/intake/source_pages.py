"""A page of a source is read where it belongs: a small one in the driver, a large one elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.intake.inputs import SourceReading

if TYPE_CHECKING:
    from millpond.facade.engine import Engine


def read_page(engine: Engine, reading: SourceReading) -> None:
    """Reads a page of a source, here or where the executors are; the lock is not held."""
    reading.line = _read_elsewhere(engine, reading)
    if reading.line is None:
        reading.read()


def _read_elsewhere(engine: Engine, reading: SourceReading) -> dict[str, Any] | None:
    """Has the executors read a page where files hold more rows than are for the driver."""
    intake, settings = engine.inputs.streams.get(reading.name), engine.settings_now
    most = settings.driver_rows
    is_large = settings.page_rows > most and (not most or reading.rows_left > most)
    if is_large:
        engine.expect_spark()
    if intake is None or not is_large or not reading.can_be_elsewhere:
        return None
    may_wait = most == 0 or settings.place_by == "rows"
    if not may_wait and not engine.lazy_spark.is_started:
        return None  # while Spark starts there is work for the driver
    from millpond.spark.sources import read_page

    with engine.lock:
        work = {
            "admission": engine.inputs.admission(reading),
            "settings": settings,
            "directory": str(engine.directory.absolute()),
            "rows": reading.taken,
            "now": intake.now_ticks(),
        }
    return read_page(engine.spark, engine.store, work)
