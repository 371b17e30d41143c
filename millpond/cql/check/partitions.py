"""What is said of partitions, checked: CREATE and ALTER PARTITION, and PARTITION of queries."""

from millpond.catalog import Catalog, PartitionEntry
from millpond.cql.statements import AlterPartition
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import (
    AlterPartitionStatement,
    CreatePartitionStatement,
    Name,
    PartitionOptions,
)
from millpond.errors import StrategyError
from millpond.scheduling.strategy_text import partition_strategy
from millpond.spelling import suggestion


def partition_entry(syntax: CreatePartitionStatement) -> PartitionEntry:
    """The entry that CREATE PARTITION declares."""
    said, default = syntax.options, PartitionEntry(syntax.name.text)
    _check_strategy(said)
    return PartitionEntry(
        syntax.name.text,
        said.strategy or "",
        said.threads or default.threads,
        said.priority or default.priority,
    )


def alter_partition(syntax: AlterPartitionStatement, catalog: Catalog) -> AlterPartition:
    """What ALTER PARTITION changes."""
    name, said = partition_named(syntax.name, catalog), syntax.options
    _check_strategy(said)
    adds, drops = (
        tuple(dict.fromkeys(each.text.lower() for each in names))
        for names in (syntax.adds, syntax.drops)
    )
    entry = catalog.get(name)
    inside = entry.operators if isinstance(entry, PartitionEntry) else ()
    for each in syntax.drops:
        if each.text.lower() not in inside:
            known = ", ".join(inside) or "none"
            raise StatementError(
                f'operator "{each.text}" was not put in partition "{name}" by hand; these were: '
                f"{known}",
                each.offset,
            )
    return AlterPartition(name, said.strategy, said.threads, said.priority, adds, drops)


def partition_named(name: Name, catalog: Catalog) -> str:
    """The name of a partition that is declared, as it was declared."""
    entry = catalog.get(name.text)
    if not isinstance(entry, PartitionEntry):
        known = [each.name for each in catalog.of_kind(PartitionEntry)]
        hint = suggestion(name.text, known) if known else "; CREATE PARTITION makes one"
        raise StatementError(f'no partition "{name.text}"{hint}', name.offset)
    return entry.name


def _check_strategy(said: PartitionOptions) -> None:
    if said.strategy:
        try:
            partition_strategy(said.strategy, 1.0)
        except StrategyError as fault:
            raise StatementError(str(fault), said.strategy_offset) from None
