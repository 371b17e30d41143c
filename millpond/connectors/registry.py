"""Connectors by name: the built-in ones and those that installed packages offer."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar, overload

from millpond.catalog import Connector, Entry, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors.changes import open_changes
from millpond.connectors.claims import Claims
from millpond.connectors.declared_functions import DECLARED, PythonFunction
from millpond.connectors.hidden import HiddenSource
from millpond.connectors.secrets import Secret, hiding, resolved
from millpond.connectors.sinks import NamedSink, Results, Sink, write_fault
from millpond.connectors.sources import Declaration, Source, no_session
from millpond.errors import InputError, MillpondError
from millpond.settings import Settings
from millpond.spelling import nearest, suggestion

GROUP = "millpond.connectors"

F = TypeVar("F", bound=Callable[..., Any])

BUILT_IN = {
    "burst": "millpond.connectors.burst",
    "csv": "millpond.connectors.csv_files",
    "delta": "millpond.connectors.delta",
    "http": "millpond.connectors.http",
    "iceberg": "millpond.connectors.iceberg",
    "json": "millpond.connectors.json_lines",
    "kafka": "millpond.connectors.kafka",
    "mqtt": "millpond.connectors.mqtt",
    "parquet": "millpond.connectors.parquet_files",
    "postgres": "millpond.connectors.postgres",
    "push": "millpond.connectors.push",
    "rate": "millpond.connectors.rate",
    "socket": "millpond.connectors.sockets",
    "spark": "millpond.spark.formats",
    "stdin": "millpond.connectors.stdin",
    "webhook": "millpond.connectors.webhook",
    "websocket": "millpond.connectors.websocket",
}


def open_source(
    entry: StreamEntry | RelationEntry,
    settings: Settings | None = None,
    directory: Path | None = None,
    claims: Claims | None = None,
    lasts: bool = True,
    session: Callable[[], Any] = no_session,
) -> Source:
    """The source of a stream or relation; relative file names start at ``directory``.

    Its pages have the declared columns. For a relation with changes they have the columns ts (in
    ticks) and weight (1 or -1) before those.
    """
    timestamp_column = entry.timestamp_column if isinstance(entry, StreamEntry) else None
    claims = claims or Claims()
    declaration = Declaration(
        entry.name,
        entry.schema,
        timestamp_column,
        settings or Settings(),
        directory or Path(),
        claims,
        isinstance(entry, StreamEntry) and entry.skips_bad_rows,
        lasts,
        entry.key if isinstance(entry, RelationEntry) else (),
        isinstance(entry, RelationEntry) and entry.on_conflict == "replace",
        session,
    )
    try:
        given = _resolved(entry.source)
        secrets = _secrets_of(given)
        with hiding(secrets):
            if isinstance(entry, RelationEntry) and entry.has_changes:
                source = _changes(given, declaration)
            else:
                source = _source(given, declaration)
    except MillpondError:
        claims.release(entry.name)
        raise
    return HiddenSource(source, secrets) if secrets else source


def open_sink(
    query: QueryEntry,
    directory: Path | None = None,
    claims: Claims | None = None,
    resume: Any = None,
    session: Callable[[], Any] = no_session,
) -> NamedSink:
    """The sink that a query's INTO names; ``resume``: what its mark was when a run ended."""
    if query.sink is None:
        raise InputError(f"query {query.name} has no INTO")
    claims = claims or Claims()
    schema, is_stream = query.plan.schema, query.plan.is_stream
    given = directory or Path(), claims, resume, is_stream, session
    results = Results(query.name, schema, *given)
    called = _resolved(query.sink)
    with hiding(_secrets_of(called)):
        try:
            sink: Sink = _call(called, "sink", results)
        except (OSError, MillpondError) as error:
            claims.release(query.name)
            if isinstance(error, OSError):
                raise write_fault(query.name, str(query.sink), error) from error
            raise
    return NamedSink(sink, query.name, str(query.sink), _secrets_of(called))


def names(role: str) -> list[str]:
    """The connectors that can be a ``source`` or a ``sink``, in alphabetical order."""
    return sorted(name for name in _offers() if hasattr(_loaded(name), role))


def _changes(connector: Connector, declaration: Declaration) -> Source:
    """The changes of a relation: those that a connector knows of, or rows with ts and op."""
    if hasattr(_loaded(connector.name.lower()), "changes"):
        source: Source = _call(connector, "changes", declaration)
        return source
    return open_changes(declaration, lambda changed: _source(connector, changed))


def _source(connector: Connector, declaration: Declaration) -> Source:
    source: Source = _call(connector, "source", declaration)
    return source


def _resolved(connector: Connector) -> Connector:
    """The connector with secrets where its text has their names."""
    options = tuple((key, resolved(value)) for key, value in connector.options)
    return Connector(connector.name, tuple(map(resolved, connector.arguments)), options)


def _secrets_of(connector: Connector) -> list[Secret]:
    values = (*connector.arguments, *(value for _, value in connector.options))
    return [value for value in values if isinstance(value, Secret)]


def check_connectors(entry: Entry | None) -> None:
    """Refuses a source or sink of an entry that does not exist or is called wrongly."""
    if isinstance(entry, StreamEntry | RelationEntry):
        check_connector(entry.source, _role(entry))
        if isinstance(entry, StreamEntry) and entry.dead_letters is not None:
            check_connector(entry.dead_letters, "sink")
    elif isinstance(entry, QueryEntry) and entry.sink is not None:
        check_connector(entry.sink, "sink")


def _role(entry: StreamEntry | RelationEntry) -> str:
    """What a connector is for an input: some know of changes by themselves."""
    name = entry.source.name.lower()
    has_changes = isinstance(entry, RelationEntry) and entry.has_changes
    knows = has_changes and name in _offers() and hasattr(_loaded(name), "changes")
    return "changes" if knows else "source"


def check_connector(connector: Connector, role: str) -> None:
    """Refuses a ``source`` or ``sink`` that does not exist or is called wrongly; opens nothing."""
    function = _function(connector.name, role)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    _refuse_unknown_options(connector, parameters)
    try:
        inspect.signature(function).bind(None, *connector.arguments, **dict(connector.options))
    except TypeError as fault:
        raise InputError(f"{connector}: {fault}; {_usage(connector.name, parameters)}") from None


def _call(connector: Connector, role: str, subject: Declaration | Results) -> Any:
    check_connector(connector, role)
    function = _function(connector.name, role)
    return function(subject, *connector.arguments, **dict(connector.options))


def _refuse_unknown_options(connector: Connector, parameters: list[inspect.Parameter]) -> None:
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for option, _ in connector.options:
        if option not in known:
            hint = nearest(option, known) or ";"
            usage = _usage(connector.name, parameters)
            raise InputError(f"{connector.name}: no option {option}{hint} {usage}")


def _usage(name: str, parameters: list[inspect.Parameter]) -> str:
    parts = [
        p.name if p.default is p.empty else f"{p.name} = {p.default!r}"
        for p in parameters
        if p.kind is not p.VAR_KEYWORD
    ]
    return f"use: {name}({', '.join(parts)})"


def _function(name: str, role: str) -> Callable[..., Any]:
    if name.lower() in _offers():
        function: Callable[..., Any] | None = getattr(_loaded(name.lower()), role, None)
        if function is not None:
            return function
    raise InputError(f"no {role} {name}{suggestion(name, names(role))}")


def _loaded(name: str) -> Any:
    offer = _offers()[name]
    try:
        return offer.load()
    except ImportError as fault:
        raise InputError(f"connector {name} ({offer.value}) cannot be loaded: {fault}") from fault


@overload
def source(function: F) -> F: ...


@overload
def source(
    *, name: str = "", gaps: bool = False, live: bool = False, endless: bool = False
) -> Callable[[F], F]: ...


def source(
    function: F | None = None,
    *,
    name: str = "",
    gaps: bool = False,
    live: bool = False,
    endless: bool = False,
) -> F | Callable[[F], F]:
    """Declares a function that yields rows as a source, under its name: ``FROM name(…)``.

    ``gaps``: rows may be missing after a restart; ``live``: it may wait, as an asynchronous one
    does; ``endless``: it does not end.
    """

    def declared(function: F) -> F:
        known = PythonFunction(function, name or function.__name__, gaps, live, endless)
        if known.name.lower() in _installed():
            raise InputError(f"there is a connector {known.name}; give the source another name")
        DECLARED[known.name.lower()] = known
        return function

    return declared if function is None else declared(function)


def _offers() -> Mapping[str, EntryPoint | PythonFunction]:
    return {**_installed(), **DECLARED}


@cache
def _installed() -> Mapping[str, EntryPoint]:
    found = {each.name.lower(): each for each in entry_points(group=GROUP)}
    return found | {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
