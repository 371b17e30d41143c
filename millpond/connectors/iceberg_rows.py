"""The rows of a file of an Iceberg table, by the names that its columns have now."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import positions
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.iceberg_table import IcebergPlace
from millpond.connectors.lake import words_of
from millpond.connectors.lake_rows import as_declared
from millpond.connectors.sources import Declaration


@dataclass(frozen=True)
class IcebergPiece:
    """A file whose rows come (1) or go (-1) with a snapshot."""

    file: Any
    weight: int

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self.file.file_path)


@dataclass(frozen=True)
class IcebergRows:
    """Reads files for the columns of a declaration; the package knows what they were called."""

    declaration: Declaration
    place: IcebergPlace
    table: Any

    def tables(self, piece: IcebergPiece, first: int) -> Iterator[tuple[pa.Table, pa.Array]]:
        """The rows of a file behind the first ones, with the weight of each."""
        for table in self._pages(piece, first):
            yield table, pa.repeat(piece.weight, table.num_rows)

    def read(
        self, rows: pa.Table, piece: IcebergPiece, first: int
    ) -> tuple[pa.Table, list[BadRow], list[int]]:
        """Rows behind the first ones of a file as they are declared, the bad ones among them, and
        the number of each good one."""
        where = f"{self.declaration.name}, {piece.path}"
        return as_declared(rows, self.declaration, where, first)

    def _pages(self, piece: IcebergPiece, first: int) -> Iterator[pa.Table]:
        page_rows = self.declaration.settings.page_rows
        try:
            for batch in self._batches(piece):
                rest, first = batch.slice(first), max(0, first - batch.num_rows)
                for start in range(0, rest.num_rows, page_rows):
                    yield pa.Table.from_batches([rest.slice(start, page_rows)])
        except FileNotFoundError:
            raise self.place.fault(
                f"the file {piece.path} is gone before it was read to its end; DROP it here and "
                "declare it again, which reads the present snapshot"
            ) from None
        except (OSError, ValueError, self.place.part("exceptions").ResolveError) as error:
            raise self.place.fault(f"the file {piece.path}: {words_of(error)}") from None

    def _batches(self, piece: IcebergPiece) -> Iterator[pa.RecordBatch]:
        """The rows of a file in their order, one batch after the other."""
        scan = self.place.part("io.pyarrow").ArrowScan(
            self.table.metadata,
            self.table.io,
            self._columns(),
            self.place.part("expressions").AlwaysTrue(),
        )
        task = self.place.part("table").FileScanTask(piece.file)
        found: Iterator[pa.RecordBatch] = scan._record_batches_from_scan_tasks_and_deletes(
            [task], {}
        )
        return found

    def _columns(self) -> Any:
        """The declared columns of the table."""
        schema = self.table.schema()
        names = [field.name for field in schema.fields]
        at = positions(names, self.declaration.schema, lambda _: str(self.place.fault("…")))
        return schema.select(*(names[each] for each in at))
