"""CREATE PARTITION and ALTER PARTITION: threads and a strategy for a part of the plan."""

from dataclasses import replace

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import (
    AlterPartitionStatement,
    CreatePartitionStatement,
    Name,
    PartitionOptions,
)

_OPTIONS = ("STRATEGY", "THREADS", "PRIORITY")


def create_partition(cursor: Cursor, name: Name) -> CreatePartitionStatement:
    """What comes behind the name in CREATE PARTITION."""
    return CreatePartitionStatement(name, _options(cursor))


def alter_partition(cursor: Cursor) -> AlterPartitionStatement:
    """What comes behind ALTER PARTITION."""
    name = cursor.name("the name of the partition")
    if cursor.accept("ADD"):
        return AlterPartitionStatement(name, adds=_operators(cursor))
    if cursor.accept("DROP"):
        return AlterPartitionStatement(name, drops=_operators(cursor))
    cursor.accept("SET")
    if cursor.word() not in _OPTIONS:
        raise cursor.fault("expected STRATEGY, THREADS, PRIORITY, ADD OPERATOR or DROP OPERATOR")
    return AlterPartitionStatement(name, _options(cursor))


def _operators(cursor: Cursor) -> tuple[Name, ...]:
    cursor.choice("OPERATOR", "OPERATOR", "OPERATORS")
    return cursor.several(lambda: cursor.name("an operator, such as op7"))


def _options(cursor: Cursor) -> PartitionOptions:
    said = PartitionOptions()
    seen: set[str] = set()
    while (word := cursor.word()) in _OPTIONS:
        if word in seen:
            raise cursor.refusal(f"{word} is given twice")
        seen.add(word)
        cursor.expect(word)
        said = _with_option(cursor, word, said)
    return said


def _with_option(cursor: Cursor, word: str, said: PartitionOptions) -> PartitionOptions:
    offset = cursor.offset
    if word == "STRATEGY":
        return replace(said, strategy=str(cursor.value()), strategy_offset=offset)
    if word == "PRIORITY":
        priority = float(cursor.number("a number above 0"))
        if not 0 < priority < float("inf"):
            raise StatementError("PRIORITY must be above zero", offset)
        return replace(said, priority=priority)
    threads = cursor.number("how many threads, at least 1")
    if not threads.isdigit() or int(threads) < 1:
        raise StatementError("THREADS is a whole number, at least 1", offset)
    return replace(said, threads=int(threads))
