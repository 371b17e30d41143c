"""`millpond simulate`: what each strategy would have done with a plan that was measured."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.cli.checking import checked
from millpond.cli.faults import Script
from millpond.cli.results import text_table
from millpond.cql.statements import SetOption
from millpond.delivery.latency import in_unit
from millpond.errors import InputError
from millpond.scheduling.registry import names
from millpond.settings import Settings
from millpond.simulator.prediction import Prediction, Refusal, predicted


def read_statistics(file: Path) -> dict[str, Any]:
    """What an engine has written of itself."""
    try:
        measured = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file}: this is no JSON: {error}") from None
    if not isinstance(measured, dict):
        raise InputError(f"{file}: these are no statistics; `run --statistics FILE` writes some")
    return measured


def write_statistics(measured: dict[str, Any], file: Path) -> None:
    """Writes what an engine tells of itself."""
    try:
        file.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def simulated(script: Script, settings: Settings, file: Path) -> str:
    """A table of what strategies would have done, under the settings of a script."""
    for statement in checked(script.text, settings):
        if isinstance(statement.action, SetOption):
            settings = settings.with_option(statement.action.key, str(statement.action.value))
    measured = read_statistics(file)
    found = predicted(measured, names(), settings.budget_bytes)
    rows = [_measured(measured)]
    rows += [_row(each) for each in found if isinstance(each, Prediction)]
    table = text_table(pa.Table.from_pylist(rows))
    refused = [f"{r.strategy}: {r.reason}" for r in found if isinstance(r, Refusal)]
    return "\n".join([table, *refused])


def _measured(measured: dict[str, Any]) -> dict[str, str]:
    """What was so, in the first line."""
    known = [each for each in measured["latency"].values() if each["results"]]
    results = sum(each["results"] for each in known)
    total = sum(each["mean_seconds"] * each["results"] for each in known)
    return {
        "strategy": f"measured: {measured['strategy']}",
        "peak backlog": _bytes(measured["backlog"]["peak_bytes"]),
        "mean backlog": _bytes(measured["backlog"]["mean_bytes"]),
        "mean latency": in_unit(total / results) if results else "–",
        "p95": "–",
        "done after": "–",
    }


def _row(each: Prediction) -> dict[str, str]:
    return {
        "strategy": each.strategy,
        "peak backlog": _bytes(each.peak_bytes),
        "mean backlog": _bytes(each.mean_bytes),
        "mean latency": in_unit(each.mean_latency_seconds),
        "p95": in_unit(each.p95_latency_seconds),
        "done after": in_unit(each.finished_seconds),
    }


def _bytes(count: float) -> str:
    """An amount as people read it.

    >>> _bytes(1_234_567)
    '1.235 MB'
    """
    return f"{count / 1e6:.3f} MB"
