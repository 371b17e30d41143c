"""The commands of `millpond`."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any

import typer

import millpond
from millpond.cli import remote
from millpond.cli.bundle import write_bundle
from millpond.cli.checking import checked
from millpond.cli.doctor import examine
from millpond.cli.explain import explain_json, explain_text, query_of
from millpond.cli.faults import STDIN_SCRIPT, Script, report, warn
from millpond.cli.remote_shell import RemoteShell
from millpond.cli.remote_top import watch_server
from millpond.cli.running import run_script
from millpond.cli.shell import Shell
from millpond.cli.simulating import simulated
from millpond.cli.store import store as store_commands
from millpond.cli.terminal import start_shell
from millpond.cli.top import run_top
from millpond.errors import CqlError, InputError
from millpond.intake.reading import ReadLimits
from millpond.scheduling.strategy_text import engine_strategy
from millpond.settings import Settings, parse_bytes, parse_seconds

app = typer.Typer(
    help="Continuous queries in CQL over streams and relations, on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


class PlanFormat(StrEnum):
    """How plans are printed."""

    text = "text"
    json = "json"


class Stage(StrEnum):
    """Which plan is printed."""

    syntax = "syntax"
    logical = "logical"
    physical = "physical"


ScriptFile = Annotated[Path, typer.Argument(metavar="SCRIPT.cql", help="a CQL script; - is stdin")]
SetOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="a setting, as SET in a script; may repeat"),
]
StrategyName = Annotated[
    str | None, typer.Option("--strategy", metavar="NAME", help="the scheduling strategy")
]
ForSeconds = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="read sources for so long: 30s, 5 minutes"),
]
MostRows = Annotated[
    int | None,
    typer.Option("--rows", metavar="N", min=0, help="read at most so many rows of each source"),
]
StoreName = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="keep everything in this directory, so that the same command goes on after a kill",
    ),
]


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits with its code; a reader that has gone is no fault."""
    app(arguments, prog_name="millpond")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"millpond {millpond.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", callback=_print_version)
    ] = False,
    url: Annotated[
        str,
        typer.Option(
            envvar="MILLPOND_URL",
            help="the server that query, entity, plan, tail, push, execute, ask, bundle, top "
            "without a script and shell --server speak to; "
            "its token is taken from MILLPOND_TOKEN",
        ),
    ] = "http://127.0.0.1:8080",
) -> None:
    remote.address.url = url


app.add_typer(remote.query, name="query")
app.add_typer(remote.entity, name="entity")
app.add_typer(remote.plan, name="plan")
app.add_typer(store_commands, name="store")
for _command in (remote.tail, remote.push, remote.execute, remote.ask):
    app.command()(_command)


@app.command()
def run(
    file: ScriptFile,
    output: Annotated[Format, typer.Option("--format", help="form of the results")] = Format.table,
    seconds: ForSeconds = None,
    rows: MostRows = None,
    store: StoreName = None,
    strategy: StrategyName = None,
    options: SetOptions = None,
    statistics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write what was measured, for `millpond simulate`"),
    ] = None,
) -> None:
    """Execute a script, read the sources of its queries to their end and print every result."""
    with _reporting(file) as script:
        limits = limits_of(seconds, rows)
        settings = settings_of(options, strategy, store)
        run_script(script, settings, output.value, limits, statistics)


@app.command()
def top(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[SCRIPT.cql]", help="a script; without one the server is watched"),
    ] = None,
    seconds: ForSeconds = None,
    rows: MostRows = None,
    store: StoreName = None,
    strategy: StrategyName = None,
    options: SetOptions = None,
) -> None:
    """Execute a script and watch its operators, or those of a server."""
    if file is None:
        with remote.server() as engine:
            watch_server(engine, limits_of(seconds, rows).seconds)
        return
    with _reporting(file) as script:
        run_top(script, settings_of(options, strategy, store), limits_of(seconds, rows))


@app.command()
def simulate(
    file: ScriptFile,
    statistics: Annotated[
        Path,
        typer.Option(
            "--from-statistics", metavar="FILE", help="what `run --statistics FILE` has written"
        ),
    ],
    options: SetOptions = None,
) -> None:
    """Print what each strategy would have done with the measured plan of a script."""
    with _reporting(file) as script:
        typer.echo(simulated(script, settings_of(options), statistics))


@app.command()
def explain(
    file: ScriptFile,
    stage: Annotated[Stage, typer.Option(help="how far to go")] = Stage.physical,
    output: Annotated[
        PlanFormat, typer.Option("--format", help="form of the plans")
    ] = PlanFormat.text,
    options: SetOptions = None,
) -> None:
    """Print the plans of a script's queries."""
    with _reporting(file) as script:
        for statement in checked(script.text, settings_of(options)):
            query = query_of(statement)
            if query is None:
                continue
            if output is PlanFormat.json:
                typer.echo(json.dumps(explain_json(statement, query, stage.value)))
            else:
                typer.echo(f"{query.name}:\n{explain_text(statement, query, stage.value)}\n")


@app.command()
def check(file: ScriptFile, options: SetOptions = None) -> None:
    """Parse and analyse a script; nothing is executed and no JVM starts."""
    with _reporting(file) as script:
        statements = list(checked(script.text, settings_of(options)))
        warnings = [each for statement in statements for each in statement.warnings]
        warn(warnings, script)
        told = f", {_counted(len(warnings), 'warning')}" if warnings else ""
        typer.echo(f"{script.name}: {_counted(len(statements), 'statement')}, no errors{told}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@app.command()
def shell(
    store: StoreName = None,
    strategy: StrategyName = None,
    options: SetOptions = None,
    server: Annotated[
        bool, typer.Option("--server", help="on the server at --url, not in this process")
    ] = False,
) -> None:
    """Type statements and see their results."""
    if server:
        with remote.server() as engine:
            engine.status()  # a server that is not there is said before anything is typed
            start_shell(RemoteShell(engine))
        return
    with _reporting(None):
        start_shell(Shell(settings_of(options, strategy, store)))


@app.command()
def doctor(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port of the server")] = 8080,
    store: StoreName = None,
    start: Annotated[bool, typer.Option("--start", help="try whether Spark starts")] = False,
    options: SetOptions = None,
) -> None:
    """Look whether this machine can run Millpond, and say what to do where it cannot."""
    with _reporting(None):
        if not examine(settings_of(options, None, store), port, start):
            raise typer.Exit(1)


@app.command()
def bundle(
    file: Annotated[
        Path, typer.Option("--out", metavar="FILE.zip", help="the file to write")
    ] = Path("millpond-bundle.zip"),
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to look at")] = 8080,
    store: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="what a store says too, if its server is no more"),
    ] = None,
) -> None:
    """Write what a report of a fault needs into one file: no data, no secrets."""
    with remote.server() as engine:
        made = write_bundle(file, engine, settings_of(None, None, store), port)
        typer.echo(f"{file} has {', '.join(made.there)}; no rows")
        for reason, names in made.missing.items():
            typer.echo(f"without {', '.join(names)}: {reason}", err=True)


HostName = Annotated[str, typer.Option(help="the address to listen at")]
PortNumber = Annotated[int, typer.Option(min=1, max=65_535, help="the port to listen at")]


@app.command()
def serve(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="SCRIPT.cql…", help="executed first")
    ] = None,
    host: HostName = "127.0.0.1",
    port: PortNumber = 8080,
    store: StoreName = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE.xml", help="load the plan from here, and mirror it here"),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="clients may name files in here; may repeat"),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="who may do what: see `millpond token`")
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="reachable by others without TLS all the same")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="another name of this server; may repeat"),
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, metavar="ROWS", help="results kept of a query without a store")
    ] = 10_000,
    queries: Annotated[
        int, typer.Option(min=1, metavar="N", help="the most queries that may be registered")
    ] = 50_000,
    metrics_entities: Annotated[
        int, typer.Option(min=1, metavar="N", help="the most entities of a kind in /metrics")
    ] = 200,
    unpacked_bytes: Annotated[
        str, typer.Option(metavar="BYTES", help="what a body of tuples may unpack to")
    ] = "256 MB",
    ask_rows: Annotated[
        int, typer.Option(min=1, metavar="ROWS", help="the most rows of a one-time question")
    ] = 1_000_000,
    ask_bytes: Annotated[
        str, typer.Option(metavar="BYTES", help="the most memory of a one-time question")
    ] = "128 MB",
    ask_seconds: Annotated[
        float, typer.Option(min=0.1, help="how long a one-time question or a preview may take")
    ] = 30.0,
    log: Annotated[
        str, typer.Option(metavar="FORM", help="what happens, on stderr: text or json")
    ] = "text",
    log_level: Annotated[
        str, typer.Option(metavar="LEVEL", help="how grave: debug, info, warning or error")
    ] = "info",
    strategy: StrategyName = None,
    options: SetOptions = None,
) -> None:
    """Serve queries over HTTP, with a page to look at them."""
    with _reporting(None):
        scripts = [read_script(file) for file in files or []]
        serving = _serving()
        serving.check_log(log, log_level)
        asked = serving.ServeOptions(
            host,
            port,
            tuple(root or ()),
            tokens,
            tls_certificate,
            tls_key,
            insecure,
            tuple(name or ()),
            plan,
            log,
            log_level,
            serving.Limits(
                queries=queries,
                kept_rows=keep,
                metrics_entities=metrics_entities,
                unpacked_bytes=bytes_of("--unpacked-bytes", unpacked_bytes),
                ask_rows=ask_rows,
                ask_bytes=bytes_of("--ask-bytes", ask_bytes),
                ask_seconds=ask_seconds,
            ),
        )
        serving.serve(scripts, settings_of(options, strategy, store), asked)


@app.command()
def demo(
    host: HostName = "127.0.0.1",
    port: PortNumber = 8080,
    text: Annotated[
        bool | None, typer.Option("--text/--page", help="as text, or as a page in a browser")
    ] = None,
) -> None:
    """Show live queries on bursty traffic in a browser, or as text where there is none."""
    with _reporting(None):
        serving = _serving()
        serving.demonstrate(serving.ServeOptions(host=host, port=port), text)


@app.command()
def token(
    role: Annotated[str, typer.Argument(help="read, write or admin")],
    name: Annotated[str, typer.Option(help="who it is for")] = "",
) -> None:
    """Make a token: printed once, and the line that goes into the token file."""
    with _reporting(None):
        secret, line = _serving().made_token(role, name)
        typer.echo(f"token (shown once): {secret}\nline for the token file: {line}")


def _serving() -> Any:
    # Loaded only when called: the web framework takes longer to load than most commands to run.
    return EntryPoint("serving", "millpond.cli.serving", "").load()


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def lab(context: typer.Context) -> None:
    """Run the papers' experiments again."""
    # Loaded only when called: its plotting library takes longer to load than most commands to run.
    commands: typer.Typer = EntryPoint("lab", "millpond.lab.commands:app", "").load()
    commands(context.args, prog_name="millpond lab")


def settings_of(
    options: list[str] | None, strategy: str | None = None, store: str | None = None
) -> Settings:
    """The settings that the command line asks for."""
    settings = Settings()
    for option in options or []:
        key, equals, value = option.partition("=")
        if not equals:
            raise InputError(f"--set {option}: write it as key=value")
        try:
            settings = settings.with_option(key.strip(), value.strip().strip("'\""))
        except CqlError as error:
            raise InputError(f"--set {option}: {error.message}") from None
    if strategy is not None:
        settings = settings.with_option("strategy", strategy)
    if store is not None:
        settings = settings.with_option("store", store)
    # What cannot drive Spark is refused before anything starts.
    engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
    return settings


def bytes_of(option: str, text: str) -> int:
    """An amount of memory that is given as an option."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise InputError(f"{option}: {text!r} is not {error}") from None


def limits_of(seconds: str | None, rows: int | None) -> ReadLimits:
    """How far the command line asks sources to be read."""
    try:
        return ReadLimits(None if seconds is None else parse_seconds(seconds), rows)
    except ValueError as error:
        raise InputError(f"--for {seconds}: this is not {error}") from None


def read_script(file: Path) -> Script:
    """The text of a script, or of standard input for the name -."""
    try:
        if str(file) in ("-", "/dev/stdin"):
            return Script(STDIN_SCRIPT, sys.stdin.read())
        return Script(str(file), file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: this is no text in UTF-8") from None


@contextmanager
def _reporting(file: Path | None) -> Iterator[Script]:
    """Hands over the script; whatever goes wrong is printed with its lines and ends the command."""
    script = None
    try:
        script = Script("<shell>", "") if file is None else read_script(file)
        yield script
    except (typer.Exit, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, the last door before the user
        in_script = isinstance(error, CqlError) and error.position is not None
        raise typer.Exit(report(error, script if in_script else None)) from None
