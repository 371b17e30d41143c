"""What is declared, in words: the shell's `\\d`."""

from millpond.catalog import (
    Catalog,
    Entry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    ViewEntry,
    kind_of,
)
from millpond.schema import Schema


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
        key = ", ".join(entry.schema[position].name for position in entry.key)
        changes = ["with changes"] if entry.has_changes else []
        return [*([f"PRIMARY KEY ({key})"] if key else []), f"FROM {entry.source}", *changes]
    if isinstance(entry, ViewEntry):
        return str(entry.plan).splitlines()
    sink = [f"INTO {entry.sink}"] if entry.sink else []
    state = "active" if entry.active else "inactive"
    return [f"weight {entry.weight:g}, {state}", *entry.text.strip().splitlines(), *sink]


def _stream_details(entry: StreamEntry) -> list[str]:
    time = (
        "time of arrival"
        if entry.timestamp_column is None
        else f"TIMESTAMP BY {entry.schema[entry.timestamp_column].name}"
    )
    delay = [f"DELAY {entry.delay_ticks} ticks"] if entry.delay_ticks else []
    letters = "SKIP" if entry.dead_letters is None else f"INTO {entry.dead_letters}"
    policy = [f"ON BAD ROW {letters}"] if entry.skips_bad_rows else []
    constraints = [
        f"CONSTRAINT {each.name} ORDERED BY ({entry.schema[each.column].name}) WITHIN "
        f"{each.within} {'rows' if each.is_of_rows else 'ticks'} ON VIOLATION "
        f"{each.on_violation.upper()}"
        for each in entry.constraints
    ]
    return [time, *delay, *constraints, f"FROM {entry.source}", *policy]
