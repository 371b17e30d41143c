"""Commands against a server: queries, entities, tuples, plans."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from millpond.cli.faults import Script, report
from millpond.cli.results import text_table
from millpond.client import RemoteEngine, connect
from millpond.errors import CqlError, InputError

query = typer.Typer(help="Queries of a server.", no_args_is_help=True)
entity = typer.Typer(help="Entities of a server and their control tables.", no_args_is_help=True)
plan = typer.Typer(help="The plan of a server.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="QUERY")]


@dataclass
class Address:
    """Where the server is; set by ``--url`` or MILLPOND_URL."""

    url: str = "http://127.0.0.1:8080"


address = Address()


@contextmanager
def server(text: str = "") -> Iterator[RemoteEngine]:
    """The server; whatever goes wrong is printed and ends the command."""
    try:
        with connect(address.url) as engine:
            yield engine
    except (typer.Exit, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, the last door before the user
        script = Script("<text>", text) if isinstance(error, CqlError) and text else None
        raise typer.Exit(report(error, script)) from None


def _show(rows: list[dict[str, Any]]) -> None:
    typer.echo(text_table(pa.Table.from_pylist(rows)) if rows else "none")


def _text(given: str) -> str:
    """A text, or that of a file for ``@file``, or standard input for ``-``."""
    if given == "-":
        return sys.stdin.read()
    if given.startswith("@"):
        try:
            return Path(given[1:]).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise InputError(f"{given[1:]}: {error.strerror}") from None
    return given


@query.command("create")
def create_query(
    name: Name,
    text: Annotated[str, typer.Argument(help="SELECT …; @FILE or - (standard input)")],
    weight: float = 1.0,
    skip_errors: Annotated[bool, typer.Option("--skip-errors", help="ON ERROR SKIP")] = False,
) -> None:
    """Register a query."""
    with server(text) as engine:
        skip = " ON ERROR SKIP" if skip_errors else ""
        engine.execute(f"CREATE QUERY {name} WEIGHT {weight!r}{skip} AS\n{_text(text)}")
        typer.echo(f"query {name} registered; millpond tail {name} shows its results")


@query.command("list")
def list_queries() -> None:
    """List the queries."""
    with server() as engine:
        keep = ("name", "state", "output", "weight", "results")
        _show([{key: each[key] for key in keep} for each in engine.queries()])


@query.command("show")
def show_query(name: Name) -> None:
    """Show a query and its control table."""
    with server() as engine:
        _attributes(engine, "query", name)


@query.command("explain")
def explain_query(name: Name, stage: str = "physical") -> None:
    """Print the plan of a query."""
    with server() as engine:
        typer.echo(engine.explain(name, stage).text)


@query.command("alter")
def alter_query(
    name: Name, weight: float | None = None, active: Annotated[bool | None, typer.Option()] = None
) -> None:
    """Change the weight or the activity of a query."""
    with server() as engine:
        found = engine.entities().get("query", name)
        for attribute, value in (("weight", weight), ("active", active)):
            if value is not None:
                found.set(attribute, value)
        typer.echo(f"query {name} altered")


@query.command("restart")
def restart_query(name: Name) -> None:
    """Run a query that has failed again."""
    with server() as engine:
        engine.restart(name)
        typer.echo(f"query {name} restarted")


@query.command("drop")
def drop_query(name: Name) -> None:
    """Drop a query."""
    with server() as engine:
        engine.drop(name)
        typer.echo(f"query {name} dropped")


def tail(
    name: Name,
    start: Annotated[str, typer.Option("--from", help="now, oldest, present, or a time")] = "now",
    follow: bool = True,
    most: Annotated[int | None, typer.Option("--most", min=1, help="end after so many")] = None,
) -> None:
    """Print the results of a query of a server as they come, one JSON object a line."""
    with server() as engine:
        for number, result in enumerate(engine.tail(name, start, follow), start=1):
            typer.echo(json.dumps(result, ensure_ascii=False))
            if most is not None and number >= most:
                return


def execute(text: Annotated[str, typer.Argument(help="CQL; @FILE or - (standard input)")]) -> None:
    """Execute statements on a server."""
    with server(text) as engine:
        for answer in engine.execute(_text(text)):
            typer.echo(text_table(answer) if isinstance(answer, pa.Table) else str(answer))


def ask(text: Annotated[str, typer.Argument(help="SELECT …; @FILE or - (standard input)")]) -> None:
    """Answer a query once, on what a server has at present."""
    with server(text) as engine:
        typer.echo(text_table(engine.ask(_text(text))))


def push(
    name: Annotated[str, typer.Argument(metavar="STREAM")],
    file: Annotated[Path, typer.Argument(help="JSON lines; - is standard input")],
    key: Annotated[
        str | None, typer.Option(help="a repeated push with this key counts once")
    ] = None,
) -> None:
    """Push JSON lines into a stream or relation of a server."""
    with server() as engine:
        text = _text("-" if str(file) == "-" else f"@{file}")
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        late = engine.push(name, rows, key)
        typer.echo(f"{len(rows)} rows into {name}{f', {late} of them too late' if late else ''}")


@entity.command("list")
def list_entities(kind: Annotated[str, typer.Argument()] = "query") -> None:
    """List the entities of a kind with their values."""
    with server() as engine:
        _show([{"name": e.name, **e.values()} for e in engine.entities().of_kind(kind)])


@entity.command("show")
def show_entity(kind: str, name: str) -> None:
    """Show the control table of an entity."""
    with server() as engine:
        _attributes(engine, kind, name)


@entity.command("get")
def get_attribute(kind: str, name: str, attribute: str) -> None:
    """Print an attribute."""
    with server() as engine:
        typer.echo(json.dumps(engine.entities().get(kind, name).get(attribute)))


@entity.command("set")
def set_attribute(kind: str, name: str, attribute: str, value: str) -> None:
    """Set a knob."""
    with server() as engine:
        engine.entities().get(kind, name).set(attribute, value)
        typer.echo(f"{attribute} of {kind} {name} is {value}")


@entity.command("watch")
def watch_attribute(kind: str, name: str, attribute: str, seconds: float = 60.0) -> None:
    """Print an attribute whenever it changes."""
    with server() as engine:
        for value in engine.entities().get(kind, name).watch(attribute, seconds):
            typer.echo(json.dumps(value))


def _attributes(engine: RemoteEngine, kind: str, name: str) -> None:
    rows = [
        {
            "attribute": each["name"],
            "value": "" if each["value"] is None else str(each["value"]),
            "unit": each["unit"],
            "knob": "knob" if each["knob"] else "",
            "meaning": each["meaning"],
        }
        for each in engine.entities().get(kind, name).attributes()
    ]
    _show(rows)


@plan.command("show")
def show_plan(
    form: Annotated[str, typer.Option("--format", help="xml, json, svg or dot")] = "xml",
) -> None:
    """Print the running plan."""
    with server() as engine:
        found = engine.plan(form)
        typer.echo(found if isinstance(found, str) else json.dumps(found))


@plan.command("load")
def load_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE.xml")],
    replace: Annotated[bool, typer.Option("--replace", help="drop what is not in it")] = False,
) -> None:
    """Make the running plan that of an XML file."""
    with server() as engine:
        engine.load_plan(_text(f"@{file}"), replace)
        typer.echo(f"{file} is loaded")
