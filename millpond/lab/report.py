"""Writes what experiments found: CSV files, plots, and one HTML page with all of them."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryFile

from millpond.errors import StateError
from millpond.lab.catalogue import everything
from millpond.lab.drawing import draw
from millpond.lab.experiment import Claim, Table
from millpond.lab.running import Outcome
from millpond.lab.telling import summary

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{border-bottom:1px solid #ddd;
padding:.3rem .6rem;text-align:left;vertical-align:top}img{width:100%}h2{margin-top:3rem}
.holds{color:#176d2c;font-weight:600}.differs{color:#8a5a00;font-weight:600}
.fails{color:#b00020;font-weight:600}.note{color:#666}
"""


def prepare(folder: Path) -> None:
    """Make the folder and try it, so that nothing is run whose results have no place."""
    with _into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass


def write(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write every outcome into the folder; returns the path of the report."""
    page = folder / "report.html"
    with _into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for outcome in outcomes:
            write_files(outcome, folder)
        page.write_text(html(outcomes), encoding="utf-8")
    return page


@contextmanager
def _into(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(
            f'cannot write into the folder "{folder}": {error.strerror}; name another with --out'
        ) from None


def write_files(outcome: Outcome, folder: Path) -> None:
    """Write one outcome's tables and plots."""
    for name, table in outcome.tables.items():
        suffix = "" if len(outcome.tables) == 1 else f"-{name.replace(' ', '-')}"
        _write_csv(table, folder / f"{outcome.name}{suffix}.csv")
    draw(everything()[outcome.name], outcome.tables, folder)


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def html(outcomes: Sequence[Outcome]) -> str:
    """The report: every experiment with its claim, its checks and its picture."""
    sections = "\n".join(_section(outcome) for outcome in outcomes)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Millpond lab</title><style>{_STYLE}</style><h1>Millpond lab</h1>"
        f"<p>{summary(outcomes)}.</p>{sections}</html>"
    )


def _section(outcome: Outcome) -> str:
    experiment = everything()[outcome.name]
    note = f'<p class="note">{escape(experiment.note)}</p>' if experiment.note else ""
    rows = "".join(_row(claim) for claim in outcome.claims)
    name = escape(outcome.name)
    return (
        f'<h2 id="{name}">{escape(experiment.paper)}: {escape(experiment.title)}</h2>'
        f"<p>{escape(experiment.claim)}</p>{note}"
        f'<img src="{name}.svg" alt="{escape(experiment.title)}">'
        "<table><tr><th>claim<th>expected<th>measured<th>verdict</tr>"
        f"{rows}</table>"
    )


def _row(claim: Claim) -> str:
    cells = "".join(f"<td>{escape(cell)}" for cell in (claim.text, claim.expected, claim.measured))
    told = f'<tr>{cells}<td class="{claim.verdict}">{claim.verdict}</tr>'
    if claim.verdict == "differs" and claim.instead is not None:
        instead = f"Instead: {claim.instead.found}. Why: {claim.instead.why}."
        told += f'<tr><td class="note" colspan="4">{escape(instead)}</tr>'
    return told
