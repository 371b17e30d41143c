"""What a server says of itself while it runs: one line an event, as text or as JSON, with levels.

The last lines stay in memory, for whoever writes a report of a fault.
"""

import json
import logging
import sys
from collections import deque
from datetime import UTC, datetime
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
FORMS = ("text", "json")

KEPT_LINES = 500
"""So many of the last lines are kept."""

logger = logging.getLogger("millpond.server")


def tell(level: int, event: str, message: str, **about: Any) -> None:
    """Says that something has happened; ``about``: what it is about, for who reads JSON."""
    logger.log(level, "%s", message, extra={"event": event, "about": about})


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class TextLines(logging.Formatter):
    """A line of text: when, how grave, what."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_moment(record)} {record.levelname.lower()} {record.getMessage()}"
        return (
            line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"
        )


class JsonLines(logging.Formatter):
    """The same as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            **getattr(record, "about", {}),
        }
        if record.exc_info is not None:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


class LastLines(logging.Handler):
    """Keeps the last lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.setFormatter(TextLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


last_lines = LastLines()
"""What was said last in this process."""


def keep_lines() -> None:
    """From now on the last lines are kept."""
    own = logging.getLogger("millpond")
    if last_lines not in own.handlers:
        own.addHandler(last_lines)
    if own.level == logging.NOTSET:
        own.setLevel(logging.INFO)


def write_lines(form: str, level: str) -> None:
    """From now on lines are written to standard error: ours, and the web server's warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.setLevel(level.upper())
    logging.getLogger("millpond").setLevel(min(logging.INFO, handler.level))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
