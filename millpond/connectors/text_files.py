"""What the sources of text files have in common: tables from blocks, pages from tables."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Self

import pyarrow as pa

from millpond.connectors.arrow import RowPosition, arrow_schema
from millpond.connectors.bad_rows import BadRow, salvaged
from millpond.connectors.encoding import refuse_utf16
from millpond.connectors.files import Block, Blocks
from millpond.connectors.sources import (
    Declaration,
    Progress,
    SourcePage,
    cut_pages,
    cut_salvaged,
)
from millpond.connectors.times import check_times
from millpond.errors import InputError


class TextFiles:
    """A source of the rows of text files, one file after the other."""

    ends = True

    def __init__(self, declaration: Declaration, blocks: Blocks) -> None:
        self._declaration, self._blocks = declaration, blocks
        self.has_delivered = False
        """Whether any row has been handed out."""

    @property
    def is_live(self) -> bool:
        """Whether one of them is a pipe, which may pause."""
        return self._blocks.is_live

    @property
    def reads_files(self) -> bool:
        """Whether the rows can be read again, by anybody who sees the files; bad ones are put aside
        here."""
        return not self._blocks.is_live and not self._declaration.skips_bad_rows

    def pages(self) -> Iterator[pa.Table | SourcePage]:
        """The rows, in pages; of a pipe those that have come, without waiting for more."""
        if not self._blocks.is_live:
            self._blocks = self._blocks.again()
        page_rows = self._declaration.settings.page_rows
        if self._declaration.skips_bad_rows:
            return self._salvaged_pages(page_rows)
        if not self._blocks.is_live:
            return cut_pages(self._tables(), self._declaration.schema, page_rows)
        return self._as_they_come(page_rows)

    def _as_they_come(self, page_rows: int) -> Iterator[pa.Table]:
        for table in self._tables():
            for start in range(0, max(table.num_rows, 1), page_rows):
                yield table.slice(start, page_rows)

    def _salvaged_pages(self, page_rows: int) -> Iterator[SourcePage]:
        schema, each = self._declaration.schema, self._salvaged_blocks()
        if not self._blocks.is_live:
            found = (part for block in each for part in block)
            yield from cut_salvaged(found, schema, page_rows)
            return
        for block in each:
            yield from cut_salvaged(block, schema, page_rows)

    def progress(self) -> Progress:
        """Bytes read."""
        return self._blocks.progress()

    def declared_as(self, declaration: Declaration) -> Self:
        """The same files under another declaration; none of their rows was handed out yet."""
        other = copy.copy(self)
        other._declaration = declaration
        return other

    def _tables(self) -> Iterator[pa.Table]:
        for block in self._blocks:
            if block.is_first:
                refuse_utf16(block.name, block.content)
            try:
                table, where = self._table(block)
                check_times(table, self._declaration, where)
            except InputError:
                self._blocks.put_back(block)
                raise
            self.has_delivered = self.has_delivered or table.num_rows > 0
            yield table

    # -- block by block, for whoever reads files otherwise -----------------------------------

    def empty(self) -> pa.Table:
        """No rows."""
        return arrow_schema(self._declaration.schema).empty_table()

    def end_of_records(self, text: bytes) -> int:
        """How much of a text that begins with a record is whole records."""
        raise NotImplementedError

    def learn(self, head: Block) -> None:
        """What a file begins with is known: of others it has the columns."""
        refuse_utf16(head.name, head.content)

    def holds_rows(self, head: Block) -> bool:
        """Whether the beginning of a file is more than a header."""
        return bool(head.content.strip(b"\r\n"))

    def found_in(self, block: Block) -> Iterator[pa.Table | BadRow]:
        """The rows of a block, and in their places those that are put aside."""
        if not self._declaration.skips_bad_rows:
            return iter((self._checked(block),))
        return self._salvaged(block)

    def end_of(self, block: Block, record: int) -> int:
        """How many bytes of a block come before the end of its record of a number from 0."""
        raise NotImplementedError

    def _salvaged(self, block: Block) -> Iterator[pa.Table | BadRow]:
        try:
            return iter((self._checked(block),))
        except InputError:
            return salvaged(self._records(block), self._joined, _bad_row)

    def _salvaged_blocks(self) -> Iterator[Iterator[pa.Table | BadRow]]:
        """Of each block the rows, and in their places those that cannot be read."""
        for block in self._blocks:
            if block.is_first:
                refuse_utf16(block.name, block.content)
            yield self._salvaged(block)

    def _joined(self, records: Sequence[Block]) -> pa.Table:
        """The rows of records that follow each other."""
        content = b"".join(record.content for record in records)
        return self._checked(replace(records[0], content=content))

    def _checked(self, block: Block) -> pa.Table:
        table, where = self._table(block)
        check_times(table, self._declaration, where)
        return table

    def _table(self, block: Block) -> tuple[pa.Table, RowPosition]:
        """The rows of a block, and where each is."""
        raise NotImplementedError

    def _records(self, block: Block) -> list[Block]:
        """The records of a block, each by itself; what is wrong with all of them is refused."""
        raise NotImplementedError


def _bad_row(record: Block, error: InputError) -> BadRow:
    offset = f"{record.name}, line {record.lines_before + 1}"
    return BadRow(offset, str(error), record.content.strip(b"\r\n"))
