"""`millpond bundle`: what a report of a fault needs, in one file; no data and no secrets.

Whatever stands in quotes may be data, or a secret: in texts, plans, errors and the log it is left
out. Rows are never in it.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from millpond.cli.doctor import findings
from millpond.client import RemoteEngine
from millpond.errors import InputError, MillpondError
from millpond.settings import Settings

MOST_PLANS = 100
"""The plans of so many queries are in it."""

LOG_LINES = 500

_QUOTED = re.compile(r"(?<!\w)'(?:[^']|'')*'")


def without_values(told: Any) -> Any:
    """The same with dots for whatever stands in quotes, however deep.

    >>> without_values({"text": "WHERE a = 'it''s' AND b > 5", "rows": [1]})
    {'text': "WHERE a = '…' AND b > 5", 'rows': [1]}
    """
    if isinstance(told, str):
        return _QUOTED.sub("'…'", told)
    if isinstance(told, dict):
        return {key: without_values(value) for key, value in told.items()}
    return [without_values(each) for each in told] if isinstance(told, list) else told


def write_bundle(file: Path, engine: RemoteEngine, settings: Settings, port: int) -> list[str]:
    """Writes the file; what of it could not be had, and why."""
    missing: list[str] = []
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
            machine = "\n".join(map(str, findings(settings, port, starts_spark=False)))
            bundle.writestr("machine.txt", machine + "\n")
            for name, get in _parts(engine):
                try:
                    told = without_values(get())
                except MillpondError as error:
                    missing.append(f"{name}: {error}")
                    continue
                bundle.writestr(name, json.dumps(told, indent=1, ensure_ascii=False, default=str))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    return missing


def _parts(engine: RemoteEngine) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "status.json", engine.status
    yield "settings.json", lambda: engine.show("settings").to_pylist()
    yield "declared.json", lambda: engine.show("all").to_pylist()
    yield "queries.json", engine.queries
    yield "plans.json", lambda: _plans(engine)
    yield "statistics.json", engine.statistics
    yield "history.json", engine.history
    yield "failures.json", lambda: _failures(engine)
    yield "log.json", lambda: engine.log(LOG_LINES)


def _plans(engine: RemoteEngine) -> dict[str, str]:
    names = [each["name"] for each in engine.queries()[:MOST_PLANS]]
    return {name: engine.explain(name).text for name in names}


def _failures(engine: RemoteEngine) -> list[dict[str, Any]]:
    return [
        {"query": each.query, "operator": each.operator, "error": each.error, "at": each.at_seconds}
        for each in engine.failures()
    ]
