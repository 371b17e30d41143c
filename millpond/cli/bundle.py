"""`millpond bundle`: what a report of a fault needs, in one file; no data and no secrets.

Whatever stands in quotes may be data, or a secret: in texts, plans, errors and the log it is left
out. Rows are never in it.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.cli.doctor import findings
from millpond.client import RemoteEngine
from millpond.errors import InputError, MillpondError
from millpond.settings import Settings
from millpond.storage.soundness import check, held
from millpond.storage.store import MEMORY

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


@dataclass
class Bundle:
    """What a file has, and what of it could not be had, and why."""

    there: list[str] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=dict)
    """By the reason."""


def write_bundle(file: Path, engine: RemoteEngine, settings: Settings, port: int) -> Bundle:
    """Writes the file; what it has."""
    made = Bundle(["machine"])
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
            machine = "\n".join(map(str, findings(settings, port, starts_spark=False)))
            bundle.writestr("machine.txt", machine + "\n")
            for name, get in (*_parts(engine), *_of_store(settings)):
                try:
                    told = without_values(get())
                except MillpondError as error:
                    made.missing.setdefault(str(error), []).append(name)
                    continue
                text = json.dumps(told, indent=1, ensure_ascii=False, default=str)
                bundle.writestr(f"{name}.json", text)
                made.there.append(name)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    return made


def _parts(engine: RemoteEngine) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "status", engine.status
    yield "settings", lambda: engine.show("settings").to_pylist()
    yield "declared", lambda: engine.show("all").to_pylist()
    yield "queries", engine.queries
    yield "plans", lambda: _plans(engine)
    yield "statistics", engine.statistics
    yield "history", engine.history
    yield "failures", lambda: _failures(engine)
    yield "log", lambda: engine.log(LOG_LINES)


def _of_store(settings: Settings) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a store says, also if nobody serves it any more."""
    if settings.store != MEMORY:
        yield "store", lambda: _store(Path(settings.store).absolute())


def _store(directory: Path) -> dict[str, Any]:
    with held(directory):
        found = check(directory)
    texts = [record["text"] for record in found.records if "text" in record]
    records = Counter(record["kind"] for record in found.records)
    return {"told": found.told(), "records": dict(records), "statements": texts}


def _plans(engine: RemoteEngine) -> dict[str, str]:
    names = [each["name"] for each in engine.queries()[:MOST_PLANS]]
    return {name: engine.explain(name).text for name in names}


def _failures(engine: RemoteEngine) -> list[dict[str, Any]]:
    return [
        {"query": each.query, "operator": each.operator, "error": each.error, "at": each.at_seconds}
        for each in engine.failures()
    ]
