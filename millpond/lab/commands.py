"""The commands `millpond lab list`, `lab run`, `lab verify` and `lab search`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from millpond.errors import MillpondError
from millpond.lab import report, telling
from millpond.lab.catalogue import choose, everything, experiments, find_search
from millpond.lab.climbing import climb
from millpond.lab.experiment import Experiment
from millpond.lab.record import RECORD, Change, changes, read, write
from millpond.lab.running import Outcome, run_all
from millpond.lab.search import Effort, look
from millpond.lab.search import read as read_search
from millpond.lab.search import write as write_search

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
    with _told():
        chosen = list(everything().values())
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
    chosen = _chosen(names)
    with _told():
        report.prepare(out)
    outcomes = _run(chosen, seeds)
    with _told():
        typer.echo(f"wrote {report.write(outcomes, out)}; {telling.summary(outcomes)}")


@app.command()
def verify(
    names: Names = None,
    seeds: Seeds = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    against: Annotated[
        Path, typer.Option(help="Recorded verdicts.", show_default="those of Millpond")
    ] = RECORD,
    anew: Annotated[
        bool, typer.Option("--record", help="Record the verdicts instead of comparing them.")
    ] = False,
) -> None:
    """Check every claim: holds, differs or fails, a line each, and compare with the record.

    The exit status is 1 when a claim fails, or when a verdict is not the recorded one. Records are
    of the experiments' own seeds, so with --seeds nothing is compared.
    """
    if anew and seeds is not None:
        _refuse("--record is for the experiments' own seeds: leave out --seeds")
    chosen = _chosen(names)
    with _told():
        recorded = {} if anew or seeds is not None else read(against)
    outcomes = _run(chosen, seeds)
    if anew:
        with _told():
            write(against, outcomes, experiments())
    changed = [] if anew or seeds is not None else changes(recorded, outcomes)
    typer.echo(_as_json(outcomes, changed) if as_json else _as_text(outcomes, changed))
    if telling.counts(outcomes)["fails"] or changed:
        raise typer.Exit(1)


@app.command()
def search(
    name: Annotated[str, typer.Argument(help="The experiment whose setting is looked for.")],
    draws: Annotated[int, typer.Option(min=1, help="Points to draw.")] = Effort().draws,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to stand on.")] = Effort().seeds,
    climb_rounds: Annotated[
        int,
        typer.Option(
            "--climb", min=0, help="Draw none: climb so many rounds from the nearest recorded."
        ),
    ] = 0,
    anew: Annotated[
        bool, typer.Option("--record", help="Record what is found as the experiment's setting.")
    ] = False,
) -> None:
    """Look for a setting that the paper does not print, in which all its sentences stand at once.

    What was tried, where they stand and where they stop to is printed as JSON. It takes minutes.
    """
    with _told():
        chosen = find_search(name)
        effort, tell = Effort(draws, seeds), partial(typer.echo, err=True)
        if climb_rounds:
            found = climb(chosen, read_search(name), climb_rounds, effort, tell)
        else:
            found = look(chosen, effort, tell)
        typer.echo(json.dumps(found, indent=1, ensure_ascii=False))
        if anew:
            typer.echo(f"recorded in {write_search(name, found)}", err=True)


def _as_text(outcomes: Sequence[Outcome], changed: Sequence[Change]) -> str:
    lines = [telling.line(each.name, claim) for each in outcomes for claim in each.claims]
    lines += [telling.change_line(change) for change in changed]
    lines += telling.by_paper(outcomes, {each.name: each.paper for each in everything().values()})
    lines.append(telling.summary(outcomes))
    if changed:
        lines.append(
            f"{len(changed)} not as recorded; if that is meant: millpond lab verify --record"
        )
    return "\n".join(lines)


def _as_json(outcomes: Sequence[Outcome], changed: Sequence[Change]) -> str:
    rows = [telling.row(each.name, claim) for each in outcomes for claim in each.claims]
    found = {
        "claims": rows,
        "changed": [change._asdict() for change in changed],
        "summary": telling.counts(outcomes),
    }
    return json.dumps(found, indent=2)


def _chosen(names: Sequence[str] | None) -> list[Experiment]:
    with _told():
        return choose(names or ())


@contextmanager
def _told() -> Iterator[None]:
    """Faults of the user's become one line and exit status 2."""
    try:
        yield
    except MillpondError as error:
        _refuse(str(error))


def _refuse(text: str) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(2)


def _run(chosen: Sequence[Experiment], seeds: int | None) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("experiments", total=len(chosen))

        def finished(outcome: Outcome) -> None:
            progress.update(task, advance=1, description=outcome.name)

        return run_all(chosen, seeds, finished=finished)


def _described(experiment: Experiment) -> dict[str, str]:
    return {
        "name": experiment.name,
        "paper": experiment.paper,
        "title": experiment.title,
        "claim": experiment.claim,
        "note": experiment.note,
    }
