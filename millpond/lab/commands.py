"""The commands `millpond lab list`, `lab run` and `lab verify`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from millpond.errors import MillpondError
from millpond.lab import report
from millpond.lab.catalogue import choose
from millpond.lab.experiment import Experiment
from millpond.lab.running import Outcome, run_all

app = typer.Typer(
    name="lab",
    help="The papers' tables, figures and theorems, run again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Seeds = Annotated[int | None, typer.Option(min=1, help="Seeds to run over; default: its own.")]
Names = Annotated[list[str] | None, typer.Argument(help="Experiments; default: all of them.")]


@app.command("list")
def list_experiments(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Every table, figure and theorem, with its claim in words."""
    chosen = _chosen(None)
    if as_json:
        typer.echo(json.dumps([_described(each) for each in chosen], indent=2))
        return
    table = RichTable()
    table.add_column("name", no_wrap=True)
    table.add_column("paper")
    table.add_column("claim")
    for each in chosen:
        table.add_row(each.name, each.paper, each.claim)
    Console().print(table)


@app.command()
def run(
    names: Names = None,
    out: Annotated[Path, typer.Option(help="Folder to write into.")] = Path("lab"),
    seeds: Seeds = None,
) -> None:
    """Run experiments and write plots (PNG, SVG), data (CSV) and one HTML report."""
    outcomes = _run(_chosen(names), seeds)
    typer.echo(f"wrote {report.write(outcomes, out)}")


@app.command()
def verify(
    names: Names = None,
    seeds: Seeds = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Check every claim; one line each; exit status 1 when one fails."""
    outcomes = _run(_chosen(names), seeds)
    if as_json:
        typer.echo(json.dumps([row for each in outcomes for row in _verdicts(each)], indent=2))
    else:
        for row in (row for each in outcomes for row in _verdicts(each)):
            typer.echo(
                f"{row['verdict']}  {row['experiment']}: {row['claim']} | "
                f"expected {row['expected']} | measured {row['measured']}"
            )
    if not all(each.holds for each in outcomes):
        raise typer.Exit(1)


def _chosen(names: Sequence[str] | None) -> list[Experiment]:
    try:
        return choose(names or ())
    except MillpondError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def _run(chosen: Sequence[Experiment], seeds: int | None) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("experiments", total=len(chosen))

        def finished(outcome: Outcome) -> None:
            progress.update(task, advance=1, description=outcome.name)

        return run_all(chosen, seeds, finished=finished)


def _verdicts(outcome: Outcome) -> list[dict[str, str]]:
    return [
        {
            "experiment": outcome.name,
            "claim": claim.text,
            "expected": claim.expected,
            "measured": claim.measured,
            "verdict": "holds" if claim.holds else "FAILS",
        }
        for claim in outcome.claims
    ]


def _described(experiment: Experiment) -> dict[str, str]:
    return {
        "name": experiment.name,
        "paper": experiment.paper,
        "title": experiment.title,
        "claim": experiment.claim,
        "note": experiment.note,
    }
