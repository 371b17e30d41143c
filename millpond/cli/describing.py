"""What is declared, in words: the shell's `\\d`."""

from millpond.catalog import (
    Catalog,
    Entry,
    PartitionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    ViewEntry,
    kind_of,
)
from millpond.intake.ahead import ahead_name
from millpond.schema import Schema
from millpond.settings import format_duration


def list_entries(catalog: Catalog) -> str:
    """One line a name: its kind and its columns."""
    entries = list(catalog.entries.values())
    if not entries:
        return "nothing is declared yet"
    width = max(len(entry.name) for entry in entries)
    return "\n".join(
        f"{kind_of(entry):8}  {entry.name:{width}}  {schema_of(entry)}" for entry in entries
    )


def describe_entry(entry: Entry) -> str:
    """A name's kind, its columns one a line, and where it comes from."""
    lines = [f"{kind_of(entry)} {entry.name}"]
    schema = schema_of(entry)
    width = max((len(name) for name in schema.names), default=0)
    lines += [f"  {field.name:{width}}  {field.type}" for field in schema.fields]
    return "\n".join([*lines, *(f"  {detail}" for detail in _details(entry))])


def schema_of(entry: Entry) -> Schema:
    """The columns of anything that has a name."""
    schema: Schema = entry.plan.schema if isinstance(entry, QueryEntry) else entry.schema
    return schema


def _details(entry: Entry) -> list[str]:
    if isinstance(entry, StreamEntry):
        return _stream_details(entry)
    if isinstance(entry, RelationEntry):
        changes = ["with changes"] if entry.has_changes else []
        return [*_key(entry), f"FROM {entry.source}", *changes]
    if isinstance(entry, ViewEntry):
        return str(entry.plan).splitlines()
    if isinstance(entry, PartitionEntry):
        return [str(entry), *(f"OPERATOR {each}" for each in entry.operators)]
    sink = [f"INTO {entry.sink}"] if entry.sink else []
    state = "active" if entry.active else "inactive"
    tolerates = [] if entry.tolerates is None else [str(entry.tolerates)]
    partition = [f"PARTITION {entry.partition}"] if entry.partition else []
    reduced = [f"REDUCED TO ({', '.join(entry.reduced)})"] if entry.reduced else []
    words = entry.text.strip().splitlines()
    return [f"weight {entry.weight:g}, {state}", *partition, *tolerates, *reduced, *words, *sink]


def _key(entry: RelationEntry) -> list[str]:
    key = ", ".join(entry.schema[position].name for position in entry.key)
    policy = {"ignore": " NOT ENFORCED", "replace": " ON CONFLICT REPLACE"}
    return [f"PRIMARY KEY ({key}){policy.get(entry.on_conflict, '')}"] if key else []


def _stream_details(entry: StreamEntry) -> list[str]:
    time = (
        "time of arrival"
        if entry.timestamp_column is None
        else f"TIMESTAMP BY {entry.schema[entry.timestamp_column].name}"
    )
    adaptive = f"ADAPTIVE {entry.late_percent:g} PERCENT AT MOST " if entry.late_percent else ""
    delay = [f"DELAY {adaptive}{entry.delay_ticks} ticks"] if entry.delay_ticks else []
    if entry.idle_microseconds:
        delay.append(f"IDLE AFTER {format_duration(entry.idle_microseconds)}")
    if entry.ahead_microseconds is not None:
        delay.append(ahead_name(entry))
    if entry.skew_ticks is not None:
        delay.append(f"SKEW AT MOST {entry.skew_ticks} ticks")
    letters = "SKIP" if entry.dead_letters is None else f"INTO {entry.dead_letters}"
    policy = [f"ON BAD ROW {letters}"] if entry.skips_bad_rows else []
    constraints = [
        f"CONSTRAINT {each.name} ORDERED BY ({entry.schema[each.column].name}) WITHIN "
        f"{each.within} {'rows' if each.is_of_rows else 'ticks'} ON VIOLATION "
        f"{each.on_violation.upper()}"
        for each in entry.constraints
    ]
    kept = [f"KEEP {entry.kept_percent:g} PERCENT"] if entry.kept_percent != 100 else []
    promises = [*constraints, *_punctuated(entry), *kept]
    return [time, *delay, *promises, f"FROM {entry.source}", *policy]


def _punctuated(entry: StreamEntry) -> list[str]:
    if entry.punctuation_column is None:
        return []
    column, policy = entry.schema[entry.punctuation_column].name, entry.punctuations_violated
    return [f"PUNCTUATED BY ({column}) ON VIOLATION {policy.upper()}"]
