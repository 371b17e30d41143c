"""Text to checked statements: the door of the CQL front end."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from millpond.catalog import Catalog, QueryEntry, StreamEntry, ViewEntry, kind_of, name_complaint
from millpond.cql.apply import apply, drop_complaint, tick_complaint
from millpond.cql.check import changes
from millpond.cql.check.constraints import constraint_named, constraint_of, constraint_within
from millpond.cql.check.declarations import (
    AHEAD,
    IDLE_AFTER,
    clock_microseconds,
    connector,
    delay_of,
    relation_entry,
    stream_entry,
)
from millpond.cql.check.from_clause import renamed_columns
from millpond.cql.check.partitions import alter_partition, partition_entry, partition_named
from millpond.cql.check.punctuations import punctuate
from millpond.cql.check.queries import QueryAnalyser
from millpond.cql.check.reducing import reduced
from millpond.cql.check.tolerating import altered_tolerance, refuse_without_bounds, tolerated
from millpond.cql.check.window_lengths import with_length
from millpond.cql.coercion import temporal_literal
from millpond.cql.statements import (
    Action,
    AlterPlan,
    AlterQuery,
    AlterStream,
    Create,
    Drop,
    Explain,
    Leave,
    SetOption,
    Show,
    Statement,
)
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.text.split import split_statements
from millpond.cql.text.syntax import (
    AlterPartitionStatement,
    AlterPlanStatement,
    AlterQueryStatement,
    AlterStreamStatement,
    ConditionalStatement,
    CreatePartitionStatement,
    CreateQueryStatement,
    CreateRelationStatement,
    CreateStreamStatement,
    CreateViewStatement,
    DeleteStatement,
    DropStatement,
    ExplainStatement,
    InsertStatement,
    Name,
    PunctuateStatement,
    SetStatement,
    ShowStatement,
    StatementSyntax,
    UpdateStatement,
)
from millpond.cql.text.tolerating import tolerating_by_default
from millpond.cql.zones import in_zone
from millpond.errors import CqlError, MillpondError, Position
from millpond.schema import BEGINNING, FOREVER, Type
from millpond.settings import EXACT, Settings
from millpond.spelling import suggestion

EPOCH = datetime(1970, 1, 1)
"""Times are counted from here."""

SHOWN = (
    "streams",
    "relations",
    "views",
    "queries",
    "functions",
    "failures",
    "steps",
    "queues",
    "statistics",
    "latency",
    "sharing",
    "constraints",
    "punctuations",
    "quality",
    "partitions",
    "threads",
    "warnings",
    "settings",
    "all",
)


def check_script(text: str, catalog: Catalog) -> Iterator[Statement]:
    """Checks a script statement by statement; later ones see what earlier ones declare.

    The catalog given is not changed.
    """
    trial = catalog.copy()
    for part, position in split_statements(text):
        statement = check_statement(part, position, trial)
        apply(statement.action, trial)
        yield statement


def check_statement(
    text: str, position: Position, catalog: Catalog, tolerate: str = EXACT
) -> Statement:
    """Checks one statement, which stands at ``position``; raises ``CqlError``.

    ``tolerate``: what queries tolerate that say neither that nor EXACT, as the setting says it.
    """
    try:
        syntax = parse_statement(text)
        syntax = syntax if tolerate == EXACT else _tolerant_by_default(syntax, tolerate)
        with in_zone(catalog.time_zone):
            action = _action(syntax, catalog, StatementText(text, position))
        return Statement(action, position, text, tolerate)
    except StatementError as error:
        raise error.located(text, position) from None
    except RecursionError:
        raise CqlError("the statement is nested too deeply", position) from None


def _tolerant_by_default(syntax: StatementSyntax, tolerate: str) -> StatementSyntax:
    """A statement in which a query that says nothing of it tolerates what a setting says."""
    match syntax:
        case CreateQueryStatement(tolerating=None):
            return replace(syntax, tolerating=tolerating_by_default(tolerate, syntax.offset))
        case ConditionalStatement():
            return replace(syntax, statement=_tolerant_by_default(syntax.statement, tolerate))
        case ExplainStatement(query=CreateQueryStatement(tolerating=None) as query):
            said = tolerating_by_default(tolerate, query.offset)
            return replace(syntax, query=replace(query, tolerating=said))
    return syntax


def _action(syntax: StatementSyntax, catalog: Catalog, text: StatementText) -> Action:
    match syntax:
        case CreateStreamStatement():
            _require_free(syntax.name, catalog)
            return Create(stream_entry(syntax, catalog))
        case CreateRelationStatement():
            _require_free(syntax.name, catalog)
            return Create(relation_entry(syntax))
        case CreateViewStatement():
            _require_free(syntax.name, catalog)
            return Create(_view_entry(syntax, catalog, text))
        case CreateQueryStatement():
            if syntax.name is not None:
                _require_free(syntax.name, catalog)
            return Create(_query_entry(syntax, catalog, text))
        case CreatePartitionStatement():
            _require_free(syntax.name, catalog)
            return Create(partition_entry(syntax))
        case AlterPartitionStatement():
            return alter_partition(syntax, catalog)
        case ConditionalStatement():
            return _conditional(syntax, catalog, text)
        case DropStatement():
            return _drop(syntax, catalog)
        case AlterQueryStatement():
            return _alter_query(syntax, catalog)
        case AlterStreamStatement():
            return _alter_stream(syntax, catalog)
        case AlterPlanStatement():
            return AlterPlan(syntax.operator.text.lower(), syntax.has_queue)
        case ShowStatement():
            return _show(syntax, catalog)
        case ExplainStatement():
            return _explain(syntax, catalog, text)
        case SetStatement():
            return _set(syntax, catalog)
        case InsertStatement():
            return changes.insert(syntax, catalog)
        case PunctuateStatement():
            return punctuate(syntax, catalog)
        case DeleteStatement():
            return changes.delete(syntax, catalog)
        case UpdateStatement():
            return changes.update(syntax, catalog)


def _conditional(syntax: ConditionalStatement, catalog: Catalog, text: StatementText) -> Action:
    """CREATE, of what may be there already."""
    entry = catalog.get(syntax.name.text)
    if entry is None:
        return _action(syntax.statement, catalog, text)
    if kind_of(entry) != syntax.kind:
        raise StatementError(
            f'"{entry.name}" is a {kind_of(entry)}, no {syntax.kind}; choose another name',
            syntax.name.offset,
        )
    if not isinstance(syntax.statement, CreateViewStatement) or syntax.if_exists == "keep":
        return Leave(syntax.kind, entry.name, is_there=True)
    others = catalog.copy()
    others.remove(entry.name)
    return Create(_view_entry(syntax.statement, others, text), replaces=True)


def _view_entry(syntax: CreateViewStatement, catalog: Catalog, text: StatementText) -> ViewEntry:
    whole = QueryAnalyser(catalog, text).whole(syntax.query)
    plan = renamed_columns(whole.plan, syntax.columns or None)
    return ViewEntry(syntax.name.text, plan, whole.is_stream_unsaid, whole.warnings)


def _query_entry(syntax: CreateQueryStatement, catalog: Catalog, text: StatementText) -> QueryEntry:
    if not 0 < syntax.weight < float("inf"):
        raise StatementError("WEIGHT must be above zero", syntax.name.offset if syntax.name else 0)
    made = reduced(syntax, catalog, text)
    plan, tolerates = tolerated(made.whole.plan, syntax, catalog)
    return QueryEntry(
        catalog.free_name() if syntax.name is None else syntax.name.text,
        plan,
        syntax.weight,
        syntax.active,
        None if syntax.sink is None else connector(syntax.sink),
        made.syntax.text,
        syntax.on_error or "stop",
        _begins(syntax, catalog),
        text.position(syntax.offset),
        made.whole.warnings,
        tolerates,
        made.reduced,
        "" if syntax.partition is None else partition_named(syntax.partition, catalog),
    )


def _begins(syntax: CreateQueryStatement, catalog: Catalog) -> int | None:
    """The first time that a query is to see."""
    start = syntax.start
    if start is None:
        return None
    if not syntax.active:
        message = "an INACTIVE query begins when it is activated: leave out FROM or INACTIVE"
        raise StatementError(message, start.offset)
    if start.value is None:
        return BEGINNING
    ticks = start.value
    if isinstance(ticks, str):
        moment = temporal_literal(ticks, Type.TIMESTAMP, start.offset).value
        if not isinstance(moment, datetime):
            raise StatementError(f"'{ticks}' is no TIMESTAMP", start.offset)
        ticks = (moment - EPOCH) // timedelta(microseconds=1) // catalog.tick_microseconds
    if not BEGINNING // 2 < ticks < FOREVER // 2:
        raise StatementError(f"the time {ticks} is out of range", start.offset)
    return ticks


def _require_free(name: Name, catalog: Catalog) -> None:
    """Refuses a name that something has, or that nothing may have."""
    complaint = name_complaint(name.text)
    if complaint:
        raise StatementError(complaint, name.offset)
    entry = catalog.get(name.text)
    if entry is not None:
        raise StatementError(
            f'a {kind_of(entry)} "{entry.name}" exists already; DROP it or choose another name',
            name.offset,
        )


def _drop(syntax: DropStatement, catalog: Catalog) -> Drop | Leave:
    if syntax.is_lenient and catalog.get(syntax.name.text) is None:
        return Leave(syntax.kind, syntax.name.text, is_there=False)
    complaint = drop_complaint(syntax.kind, syntax.name.text, catalog)
    if complaint:
        raise StatementError(complaint, syntax.name.offset)
    return Drop(syntax.kind, catalog.entries[syntax.name.text.lower()].name)


def _alter_query(syntax: AlterQueryStatement, catalog: Catalog) -> AlterQuery:
    entry = _query_named(syntax.name, catalog)
    if syntax.weight is not None and not 0 < syntax.weight < float("inf"):
        raise StatementError("WEIGHT must be above zero", syntax.name.offset)
    if syntax.window is not None and entry.tolerates is not None:
        raise StatementError(
            f'what is known of dropped tuples fits the window that query "{entry.name}" has: DROP '
            "it and CREATE it anew",
            syntax.name.offset,
        )
    if syntax.window is not None:
        plan, words = with_length(entry, syntax.window, catalog)
        return AlterQuery(
            entry.name, plan=plan, text=words, old_text=entry.text, position=entry.position
        )
    if syntax.tolerating is not None:
        anew, tolerates = altered_tolerance(entry, syntax.tolerating, catalog)
        return AlterQuery(
            entry.name,
            plan=anew,
            text=entry.text,
            old_text=entry.text,
            position=entry.position,
            tolerates=tolerates,
        )
    partition = "" if syntax.leaves_partition else None
    if syntax.partition is not None:
        partition = partition_named(syntax.partition, catalog)
    said = syntax.weight, syntax.active, syntax.on_error
    return AlterQuery(entry.name, *said, partition=partition)


def _alter_stream(syntax: AlterStreamStatement, catalog: Catalog) -> AlterStream:
    entry = catalog.get(syntax.name.text)
    if not isinstance(entry, StreamEntry):
        known = [stream.name for stream in catalog.of_kind(StreamEntry)]
        raise StatementError(
            f'no stream "{syntax.name.text}"{suggestion(syntax.name.text, known)}',
            syntax.name.offset,
        )
    if syntax.adds is not None:
        added = constraint_of(syntax.adds, entry, catalog)
        return AlterStream(entry.name, adds=added, is_measured=syntax.adds.is_measured)
    if syntax.drops is not None:
        dropped = AlterStream(entry.name, drops=constraint_named(syntax.drops, entry).name)
        refuse_without_bounds(dropped, catalog, syntax.drops.offset)
        return dropped
    if syntax.kept_percent is not None:
        return AlterStream(entry.name, kept_percent=syntax.kept_percent)
    tick = catalog.tick_microseconds
    if syntax.alters is not None and syntax.within is not None:
        altered = constraint_within(syntax.alters, syntax.within, entry, tick)
        wider = AlterStream(entry.name, alters=altered)
        refuse_without_bounds(wider, catalog, syntax.alters.offset)
        return wider
    has_time = entry.timestamp_column is not None
    clock = entry.schema, entry.timestamp_column, tick
    if syntax.idle_after is not None:
        idle = clock_microseconds(IDLE_AFTER, syntax.idle_after, *clock)
        return AlterStream(entry.name, idle_microseconds=idle)
    if syntax.ahead is not None:
        ahead = clock_microseconds(AHEAD, syntax.ahead, *clock)
        return AlterStream(entry.name, ahead_microseconds=ahead)
    if syntax.delay is None:
        raise MillpondError("internal: ALTER STREAM changes nothing")
    delay, late = delay_of(syntax.delay, has_time, catalog.tick_microseconds)
    return AlterStream(entry.name, delay, late)


def _query_named(name: Name, catalog: Catalog) -> QueryEntry:
    entry = catalog.get(name.text)
    if not isinstance(entry, QueryEntry):
        known = [query.name for query in catalog.of_kind(QueryEntry)]
        raise StatementError(f'no query "{name.text}"{suggestion(name.text, known)}', name.offset)
    return entry


def _show(syntax: ShowStatement, catalog: Catalog) -> Show:
    word = syntax.what.text
    if word.lower() in SHOWN:
        return Show(word.lower())
    entry = catalog.get(word)
    if entry is None:
        known = [*(w.upper() for w in SHOWN), *(e.name for e in catalog.entries.values())]
        raise StatementError(
            f'nothing is called "{word}"{suggestion(word, known)}', syntax.what.offset
        )
    return Show(entry.name)


def _explain(syntax: ExplainStatement, catalog: Catalog, text: StatementText) -> Explain:
    if isinstance(syntax.query, Name):
        view = catalog.get(syntax.query.text)
        if isinstance(view, ViewEntry):
            return Explain(syntax.stage, QueryEntry(view.name, view.plan, warnings=view.warnings))
        return Explain(syntax.stage, _query_named(syntax.query, catalog))
    return Explain(syntax.stage, _query_entry(syntax.query, catalog, text))


def _set(syntax: SetStatement, catalog: Catalog) -> SetOption:
    try:
        Settings().with_option(syntax.key.text, str(syntax.value))
    except CqlError as error:
        raise StatementError(error.message, syntax.key.offset) from None
    complaint = tick_complaint(catalog) if syntax.key.text == "tick" else ""
    if complaint:
        raise StatementError(complaint, syntax.key.offset)
    return SetOption(syntax.key.text, syntax.value)
