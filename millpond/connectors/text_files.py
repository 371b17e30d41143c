"""What the sources of text files have in common: tables from blocks, pages from tables."""

import copy
from collections.abc import Iterator
from typing import Self

import pyarrow as pa

from millpond.connectors.arrow import RowPosition
from millpond.connectors.encoding import refuse_utf16
from millpond.connectors.files import Block, Blocks
from millpond.connectors.sources import Declaration, Progress, cut_pages
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
        """Whether the rows can be read again, by anybody who sees the files."""
        return not self._blocks.is_live

    def pages(self) -> Iterator[pa.Table]:
        """The rows, in pages; of a pipe those that have come, without waiting for more."""
        page_rows = self._declaration.settings.page_rows
        if not self._blocks.is_live:
            return cut_pages(self._tables(), self._declaration.schema, page_rows)
        return self._as_they_come(page_rows)

    def _as_they_come(self, page_rows: int) -> Iterator[pa.Table]:
        for table in self._tables():
            for start in range(0, max(table.num_rows, 1), page_rows):
                yield table.slice(start, page_rows)

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

    def _table(self, block: Block) -> tuple[pa.Table, RowPosition]:
        """The rows of a block, and where each is."""
        raise NotImplementedError
