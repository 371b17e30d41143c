"""Text to syntax: recognises the statements of CQL."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millpond.cql.text.constraints import CONSTRAINTS, constraint_clause, within_clause
from millpond.cql.text.cursor import Cursor
from millpond.cql.text.from_clause import OUTRIGHT, TO_STREAM
from millpond.cql.text.partitions import alter_partition, create_partition
from millpond.cql.text.places import StatementError
from millpond.cql.text.punctuations import punctuate_statement, punctuated_clause
from millpond.cql.text.reducing import reduced_clause
from millpond.cql.text.syntax import (
    AdaptiveDelay,
    AlterPlanStatement,
    AlterQueryStatement,
    AlterStreamStatement,
    Assignment,
    BadRowPolicy,
    ColumnDefinition,
    ConditionalStatement,
    ConstraintClause,
    CreateQueryStatement,
    CreateRelationStatement,
    CreateStreamStatement,
    CreateViewStatement,
    DeleteStatement,
    DropStatement,
    Duration,
    ExplainStatement,
    InsertStatement,
    Name,
    Reduction,
    Row,
    SetStatement,
    ShowStatement,
    Start,
    StatementSyntax,
    UpdateStatement,
    WindowLength,
    tree,
)
from millpond.cql.text.tokens import tokenize
from millpond.cql.text.tolerating import percent, tolerating_clause
from millpond.errors import CqlError, Position

_ELSEWHERE = {
    "MERGE": "write UPDATE R SET … WHERE … and INSERT INTO R VALUES (…)",
    "TRUNCATE": "write DELETE FROM R",
}
"""Statements of other systems, and what to write instead."""
KINDS = ("STREAM", "RELATION", "VIEW", "QUERY", "PARTITION")
_KINDS_SAID = "STREAM, RELATION, VIEW, QUERY or PARTITION"
_BEHIND_BARE_NAME = ("UNION", "EXCEPT", "INTERSECT", "[")
STAGES = ("SYNTAX", "LOGICAL", "PHYSICAL", "ANALYZE", "REDUCTIONS")


def parse_statement(text: str) -> StatementSyntax:
    """The syntax of one statement; raises ``StatementError``."""
    cursor = Cursor(tokenize(text), text)
    rule = _STATEMENTS.get(cursor.word())
    if cursor.word() in _ELSEWHERE:
        raise cursor.refusal(f"there is no {cursor.word()}; {_ELSEWHERE[cursor.word()]}")
    if rule is None and not _begins_query(cursor):
        known = ", ".join(sorted({*_STATEMENTS, "SELECT"}))
        raise cursor.fault(f"expected a statement ({known})")
    syntax = rule(cursor) if rule else _bare_query(cursor)
    cursor.end()
    return syntax


def syntax_tree(text: str) -> str:
    """A readable tree of a statement's syntax."""
    try:
        return "\n".join(tree(parse_statement(text)))
    except StatementError as error:
        raise error.located(text, Position(1, 1)) from None
    except RecursionError:
        raise CqlError("nested too deeply", Position(1, 1)) from None


def _begins_query(cursor: Cursor) -> bool:
    words = ("SELECT", "(", "WITH", "VALUES", *TO_STREAM)
    ahead = 1 if cursor.word() in OUTRIGHT else 0
    is_bare = cursor.word() not in _STATEMENTS and cursor.word(ahead + 1) in _BEHIND_BARE_NAME
    return cursor.word(ahead) in words or is_bare


def _bare_query(cursor: Cursor) -> CreateQueryStatement:
    offset = cursor.offset
    query, text = cursor.query()
    sink = cursor.connector("the name of a sink") if cursor.accept("INTO") else None
    return CreateQueryStatement(None, query, text, offset, sink=sink)


def _create(cursor: Cursor) -> StatementSyntax:
    cursor.expect("CREATE")
    if_exists = "replace" if cursor.accept("OR", "REPLACE") else "refuse"
    if cursor.word() in ("TABLE", "MATERIALIZED"):
        raise cursor.refusal(_NO_TABLE)
    kind = cursor.choice(_KINDS_SAID, *KINDS)
    if if_exists == "replace" and kind != "VIEW":
        raise cursor.refusal(_NOT_REPLACED[kind])
    if cursor.word() == "IF" and cursor.word(1) == "NOT":
        if if_exists == "replace":
            raise cursor.refusal("OR REPLACE and IF NOT EXISTS exclude each other")
        cursor.expect("IF", "NOT", "EXISTS")
        if_exists = "keep"
    name = cursor.name(f"the name of the {kind.lower()}")
    rules: dict[str, Callable[[Cursor, Name], StatementSyntax]] = {
        "STREAM": _create_stream,
        "RELATION": _create_relation,
        "VIEW": _create_view,
        "QUERY": _create_query,
        "PARTITION": create_partition,
    }
    made = rules[kind](cursor, name)
    return (
        made if if_exists == "refuse" else ConditionalStatement(kind.lower(), name, made, if_exists)
    )


_NO_TABLE = (
    "there are no tables: CREATE STREAM is for tuples that come in time, CREATE RELATION for rows "
    "that are changed, and CREATE QUERY keeps an answer up to date"
)
_NOT_REPLACED = {
    "QUERY": "OR REPLACE is for views: a query has results, and begins anew when it is made anew; "
    "write DROP QUERY IF EXISTS name; CREATE QUERY name AS …",
    "PARTITION": "OR REPLACE is for views; write ALTER PARTITION",
    **dict.fromkeys(
        ("STREAM", "RELATION"),
        "OR REPLACE is for views: what a stream or relation has taken would be lost; write CREATE "
        "… IF NOT EXISTS, or DROP it first",
    ),
}


def _create_stream(cursor: Cursor, name: Name) -> CreateStreamStatement:
    columns, key, _ = _columns(cursor)
    if key or any(column.is_key for column in columns):
        raise StatementError("a stream has no PRIMARY KEY; CREATE RELATION has", name.offset)
    parts: dict[str, Any] = dict.fromkeys(_STREAM_PARTS.values()) | {"options": ()}
    constraints: list[ConstraintClause] = []
    while (word := cursor.word()) in (*_STREAM_PARTS, *CONSTRAINTS):
        if word in CONSTRAINTS:
            constraints.append(constraint_clause(cursor))
            continue
        part = _STREAM_PARTS[word]
        if parts[part]:
            raise cursor.refusal(f"{word} is given twice")
        cursor.expect(word)
        parts[part] = _stream_part(cursor, word)
    return CreateStreamStatement(name, columns, **parts, constraints=tuple(constraints))


LATE_PERCENT = 0.1
"""So many tuples may come too late where DELAY ADAPTIVE says nothing else."""

_STREAM_PARTS = {
    "TIMESTAMP": "timestamp_by",
    "DELAY": "delay",
    "IDLE": "idle_after",
    "AHEAD": "ahead",
    "SKEW": "skew",
    "FROM": "source",
    "WITH": "options",
    "ON": "on_bad_row",
    "PUNCTUATED": "punctuated",
}


def _stream_part(cursor: Cursor, word: str) -> Any:
    if word == "ON":
        return _bad_row_policy(cursor)
    if word == "PUNCTUATED":
        return punctuated_clause(cursor)
    if word == "TIMESTAMP":
        cursor.expect("BY")
        return cursor.name("the column that holds the time")
    if word == "DELAY":
        return _delay(cursor)
    if word == "IDLE":
        return _idle_after(cursor)
    if word == "AHEAD":
        cursor.expect("AT", "MOST")
        return cursor.duration("how far ahead of the clock a tuple may be, such as 1 HOUR")
    if word == "SKEW":
        cursor.expect("AT", "MOST")
        return cursor.duration("how far it may be behind other streams, such as 1 MINUTE")
    if word == "FROM":
        return cursor.connector("a source")
    return cursor.options()


def _delay(cursor: Cursor) -> Duration | AdaptiveDelay:
    """What comes behind DELAY."""
    if not cursor.accept("ADAPTIVE"):
        return cursor.duration("the longest delay, such as 5 SECONDS, or ADAPTIVE")
    late = percent(cursor, below=100.0) if cursor.word() != "AT" else LATE_PERCENT
    cursor.expect("AT", "MOST")
    return AdaptiveDelay(late, cursor.duration("the longest delay, such as 1 MINUTE"))


def _idle_after(cursor: Cursor) -> Duration:
    """What comes behind IDLE: NEVER counts as no time at all."""
    cursor.expect("AFTER")
    offset = cursor.offset
    if cursor.accept("NEVER"):
        return Duration("0", None, offset)
    return cursor.duration("a length, such as 5 SECONDS, or NEVER")


def _bad_row_policy(cursor: Cursor) -> BadRowPolicy:
    """What comes behind ON in CREATE STREAM."""
    offset = cursor.offset
    cursor.expect("BAD", "ROW")
    word = cursor.choice("STOP, SKIP or INTO", "STOP", "SKIP", "INTO")
    sink = cursor.connector("a sink") if word == "INTO" else None
    return BadRowPolicy(word != "STOP", sink, offset)


def _create_relation(cursor: Cursor, name: Name) -> CreateRelationStatement:
    columns, key, on_conflict = _columns(cursor)
    if cursor.word() in ("TIMESTAMP", "DELAY", "IDLE", "AHEAD", "SKEW"):
        raise cursor.refusal(
            "a relation has no TIMESTAMP BY, DELAY, IDLE AFTER, AHEAD or SKEW; WITH (changes = "
            "true) reads ts and op"
        )
    source = cursor.connector("a source") if cursor.accept("FROM") else None
    options = cursor.options() if cursor.accept("WITH") else ()
    if cursor.word() == "ON":
        raise cursor.refusal(
            "ON BAD ROW is for streams: answers over a relation without some of its rows would be "
            "wrong; read it as a stream, or mend the rows"
        )
    return CreateRelationStatement(name, columns, key, source, options, on_conflict)


def _columns(cursor: Cursor) -> tuple[tuple[ColumnDefinition, ...], tuple[Name, ...], str]:
    """The column list, and the key if it is declared for the whole table, with its policy."""
    columns: list[ColumnDefinition] = []
    key: tuple[Name, ...] = ()
    on_conflict = "refuse"
    cursor.expect("(")
    while True:
        if cursor.word() == "PRIMARY" and cursor.word(1) == "KEY":
            cursor.expect("PRIMARY", "KEY")
            key, on_conflict = _names(cursor), _key_policy(cursor)
        else:
            columns.append(_column(cursor))
        if cursor.accept(")"):
            return tuple(columns), key, on_conflict
        cursor.expect(",")


def _column(cursor: Cursor) -> ColumnDefinition:
    name = cursor.name("the name of a column")
    type_name = cursor.type_name()
    is_key = cursor.accept("PRIMARY", "KEY")
    on_conflict = _key_policy(cursor) if is_key else "refuse"
    if cursor.word() == "NOT":
        raise cursor.refusal("NOT NULL is not supported: all columns may be NULL")
    return ColumnDefinition(name, type_name, is_key, on_conflict)


def _key_policy(cursor: Cursor) -> str:
    """What becomes of two rows with one key: an error if nothing is said."""
    if cursor.accept("NOT", "ENFORCED"):
        return "ignore"
    if not cursor.accept("ON"):
        return "refuse"
    cursor.expect("CONFLICT")
    return cursor.choice("REPLACE", "REPLACE").lower()


def _names(cursor: Cursor) -> tuple[Name, ...]:
    cursor.expect("(")
    found = cursor.several(lambda: cursor.name("the name of a column"))
    cursor.expect(")")
    return found


def _create_view(cursor: Cursor, name: Name) -> CreateViewStatement:
    columns = _names(cursor) if cursor.word() == "(" else ()
    cursor.expect("AS")
    query, _ = cursor.query()
    return CreateViewStatement(name, query, columns)


def _create_query(cursor: Cursor, name: Name) -> CreateQueryStatement:
    weight, active, on_error, start, tolerating = 1.0, True, None, None, None
    partition: Name | None = None
    reductions: tuple[Reduction, ...] = ()
    while cursor.word() in _QUERY_OPTIONS:
        if cursor.word() in ("EXACT", "TOLERATE"):
            tolerating = tolerating_clause(cursor)
        elif cursor.word() == "REDUCED":
            reductions = reduced_clause(cursor)
        elif cursor.accept("WEIGHT"):
            weight = float(cursor.number("a weight"))
        elif cursor.accept("ON"):
            on_error = _policy(cursor)
        elif cursor.accept("PARTITION"):
            partition = cursor.name("the name of a partition")
        elif cursor.word() == "FROM":
            start = _start(cursor)
        else:
            active = cursor.choice("ACTIVE or INACTIVE", "ACTIVE", "INACTIVE") == "ACTIVE"
    cursor.expect("AS")
    query = _bare_query(cursor)
    query = replace(query, name=name, weight=weight, active=active, on_error=on_error)
    query = replace(query, partition=partition)
    return replace(query, start=start, tolerating=tolerating, reductions=reductions)


_QUERY_OPTIONS = (
    *("WEIGHT", "INACTIVE", "ACTIVE", "ON", "FROM", "EXACT", "TOLERATE", "REDUCED"),
    "PARTITION",
)


def _start(cursor: Cursor) -> Start:
    cursor.expect("FROM")
    offset = cursor.offset
    if cursor.accept("BEGINNING"):
        return Start(None, offset)
    if cursor.accept("TIMESTAMP"):
        value = cursor.value()
        if not isinstance(value, str):
            raise StatementError("expected a text like '2024-01-31 12:00:00'", offset)
        return Start(value, offset)
    number = cursor.number("BEGINNING, TIMESTAMP '…' or a number of ticks")
    if not number.lstrip("-").isdigit():
        raise StatementError(f"{number} is no whole number of ticks", offset)
    return Start(int(number), offset)


def _policy(cursor: Cursor) -> str:
    """What comes behind ON."""
    cursor.expect("ERROR")
    return cursor.choice("SKIP or STOP", "SKIP", "STOP").lower()


def _drop(cursor: Cursor) -> DropStatement:
    cursor.expect("DROP")
    kind = cursor.choice(_KINDS_SAID, *KINDS)
    is_lenient = cursor.accept("IF", "EXISTS")
    name = cursor.name(f"the name of the {kind.lower()}")
    return DropStatement(kind.lower(), name, is_lenient)


def _insert(cursor: Cursor) -> InsertStatement:
    cursor.expect("INSERT", "INTO")
    relation = cursor.name("the name of a relation")
    columns = _names(cursor) if cursor.word() == "(" else None
    if cursor.word() == "SELECT":
        raise cursor.refusal(
            "INSERT … SELECT is not supported; name the query: CREATE VIEW name AS SELECT …"
        )
    cursor.expect("VALUES")
    return InsertStatement(relation, columns, cursor.several(lambda: _row(cursor)))


def _row(cursor: Cursor) -> Row:
    cursor.expect("(")
    values = cursor.several(lambda: cursor.expression(","))
    cursor.expect(")")
    return Row(values)


def _delete(cursor: Cursor) -> DeleteStatement:
    cursor.expect("DELETE", "FROM")
    relation = cursor.name("the name of a relation")
    return DeleteStatement(relation, cursor.expression() if cursor.accept("WHERE") else None)


def _update(cursor: Cursor) -> UpdateStatement:
    cursor.expect("UPDATE")
    relation = cursor.name("the name of a relation")
    cursor.expect("SET")
    assignments = cursor.several(lambda: _assignment(cursor))
    condition = cursor.expression() if cursor.accept("WHERE") else None
    return UpdateStatement(relation, assignments, condition)


def _assignment(cursor: Cursor) -> Assignment:
    column = cursor.name("the name of a column")
    cursor.expect("=")
    return Assignment(column, cursor.expression(",", "WHERE"))


def _alter(cursor: Cursor) -> StatementSyntax:
    cursor.expect("ALTER")
    if cursor.word() == "VIEW":
        raise cursor.refusal("a view is replaced: CREATE OR REPLACE VIEW name AS …")
    rules: dict[str, Callable[[Cursor], StatementSyntax]] = {
        "QUERY": _alter_query,
        "STREAM": _alter_stream,
        "PLAN": _alter_plan,
        "PARTITION": alter_partition,
    }
    return rules[cursor.choice("QUERY, STREAM, PLAN or PARTITION", *rules)](cursor)


def _alter_plan(cursor: Cursor) -> AlterPlanStatement:
    has_queue = not cursor.accept("NO")
    cursor.expect("QUEUE", "AFTER")
    return AlterPlanStatement(cursor.name("an operator, such as op7"), has_queue)


def _alter_stream(cursor: Cursor) -> AlterStreamStatement:
    name = cursor.name("the name of the stream")
    if cursor.accept("ADD"):
        return AlterStreamStatement(name, adds=constraint_clause(cursor))
    if cursor.accept("DROP"):
        cursor.expect("CONSTRAINT")
        return AlterStreamStatement(name, drops=cursor.name("the name of a constraint"))
    if cursor.accept("ALTER"):
        cursor.expect("CONSTRAINT")
        altered = cursor.name("the name of a constraint")
        return AlterStreamStatement(name, alters=altered, within=within_clause(cursor))
    if cursor.accept("KEEP"):
        return AlterStreamStatement(name, kept_percent=percent(cursor))
    cursor.accept("SET")
    wanted = "DELAY, IDLE AFTER, AHEAD, KEEP, ADD, ALTER or DROP"
    word = cursor.choice(wanted, "DELAY", "IDLE", "AHEAD")
    return AlterStreamStatement(name, **{_STREAM_PARTS[word]: _stream_part(cursor, word)})


def _alter_query(cursor: Cursor) -> AlterQueryStatement:
    name = cursor.name("the name of the query")
    is_set = cursor.accept("SET")
    if is_set and cursor.accept("WEIGHT"):
        return AlterQueryStatement(name, weight=float(cursor.number("a weight")))
    if is_set and cursor.accept("WINDOW"):
        return AlterQueryStatement(name, window=_window_length(cursor))
    if is_set and cursor.accept("PARTITION"):
        return AlterQueryStatement(name, partition=cursor.name("the name of a partition"))
    if is_set and cursor.accept("NO", "PARTITION"):
        return AlterQueryStatement(name, leaves_partition=True)
    if cursor.accept("ON"):
        return AlterQueryStatement(name, on_error=_policy(cursor))
    if cursor.word() in ("EXACT", "TOLERATE"):
        return AlterQueryStatement(name, tolerating=tolerating_clause(cursor))
    wanted = (
        "SET WEIGHT, SET WINDOW, SET [NO] PARTITION, ACTIVATE, DEACTIVATE, TOLERATE or ON ERROR"
    )
    word = cursor.choice(wanted, "ACTIVATE", "DEACTIVATE", "ACTIVE", "INACTIVE")
    return AlterQueryStatement(name, active=word in ("ACTIVATE", "ACTIVE"))


def _window_length(cursor: Cursor) -> WindowLength:
    """What comes behind SET WINDOW."""
    cursor.expect("OF")
    source = cursor.name("the name or alias of a stream in FROM")
    cursor.expect("=")
    kind = cursor.choice("RANGE or ROWS", "RANGE", "ROWS")
    offset = cursor.offset
    length = cursor.duration("a length")
    unit = "" if length.unit is None else f" {length.unit.text}"
    return WindowLength(source, kind, f"{length.number}{unit}", offset)


def _show(cursor: Cursor) -> ShowStatement:
    cursor.expect("SHOW")
    if cursor.word() == "ALL":
        offset = cursor.offset
        cursor.expect("ALL")
        return ShowStatement(Name("ALL", offset))
    kinds = (
        "STREAMS, RELATIONS, VIEWS, QUERIES, FUNCTIONS, FAILURES, STEPS, QUEUES, STATISTICS, "
        "LATENCY, SHARING, CONSTRAINTS, PUNCTUATIONS, QUALITY, PARTITIONS, THREADS, WARNINGS, "
        "SETTINGS, ALL or a name"
    )
    return ShowStatement(cursor.name(kinds))


def _explain(cursor: Cursor) -> ExplainStatement:
    cursor.expect("EXPLAIN")
    stage = "logical"
    if cursor.word() in STAGES and cursor.peek(1):
        stage = cursor.choice("a stage", *STAGES).lower()
    if cursor.accept("CREATE"):
        cursor.expect("QUERY")
        return ExplainStatement(stage, _create_query(cursor, cursor.name("a name")))
    if _begins_query(cursor):
        return ExplainStatement(stage, _bare_query(cursor))
    return ExplainStatement(stage, cursor.name("a query or the name of one"))


def _set(cursor: Cursor) -> SetStatement:
    cursor.expect("SET")
    key = cursor.name("the name of a setting")
    text = key.text
    while cursor.accept("."):
        text += "." + cursor.name("the name of a setting").text
    cursor.expect("=")
    offset = cursor.offset
    return SetStatement(Name(text.lower(), key.offset), cursor.value(), offset)


_STATEMENTS: dict[str, Callable[[Cursor], StatementSyntax]] = {
    "CREATE": _create,
    "DROP": _drop,
    "INSERT": _insert,
    "PUNCTUATE": punctuate_statement,
    "DELETE": _delete,
    "UPDATE": _update,
    "ALTER": _alter,
    "SHOW": _show,
    "EXPLAIN": _explain,
    "SET": _set,
}
