"""The rows of a file of a Delta table, with the columns that are not in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millpond.connectors.arrow import positions
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.delta_table import DeltaPlace, Form
from millpond.connectors.lake_rows import as_declared
from millpond.connectors.sources import Declaration

SAYS_ITSELF = 0
"""The weight of a file of changes: each of its rows says whether it comes or goes."""

KIND = "_change_type"
"""The column of files of changes that says what has become of a row."""

WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass(frozen=True)
class Piece:
    """A file whose rows come (1) or go (-1) with a version, or say so themselves (0)."""

    path: str
    weight: int
    partition: Mapping[str, Any]


@dataclass(frozen=True)
class DeltaRows:
    """Reads files for the columns of a declaration."""

    declaration: Declaration
    place: DeltaPlace
    form: Form

    def tables(self, piece: Piece, first: int) -> Iterator[tuple[pa.Table, pa.Array]]:
        """The rows of a file behind the first ones, with the weight of each."""
        try:
            with (
                self.place.files.open_input_file(piece.path) as opened,
                pq.ParquetFile(opened) as file,
            ):
                for batch in self._batches(file, piece, first):
                    weights = self._weights(batch, piece)
                    yield self._with_all(batch, piece), weights
        except FileNotFoundError:
            raise self.place.fault(
                f"the file {piece.path} is gone (VACUUM?) before it was read to its end; DROP it "
                "here and declare it again, which reads the present version"
            ) from None
        except (OSError, pa.ArrowException) as error:
            raise self.place.fault(f"the file {piece.path}: {str(error).splitlines()[0]}") from None

    def read(
        self, rows: pa.Table, piece: Piece, first: int
    ) -> tuple[pa.Table, list[BadRow], list[int]]:
        """Rows behind the first ones of a file as they are declared, the bad ones among them, and
        the number of each good one."""

        where = f"{self.declaration.name}, {piece.path}"
        return as_declared(rows, self.declaration, where, first)

    def _batches(self, file: pq.ParquetFile, piece: Piece, first: int) -> Iterator[pa.RecordBatch]:
        there = file.schema_arrow.names
        wanted = [name for name in self._names() if name in there]
        if piece.weight == SAYS_ITSELF:
            wanted.append(KIND)
        groups, skipped = list(range(file.num_row_groups)), 0
        while groups and skipped + file.metadata.row_group(groups[0]).num_rows <= first:
            skipped += file.metadata.row_group(groups.pop(0)).num_rows
        page_rows = self.declaration.settings.page_rows
        for batch in file.iter_batches(page_rows, row_groups=groups, columns=wanted):
            rest = batch.slice(max(0, first - skipped))
            skipped += batch.num_rows
            if rest.num_rows:
                yield rest

    def _names(self) -> list[str]:
        """The columns of the table that are declared."""
        names = list(self.form.types)
        found = positions(names, self.declaration.schema, lambda _: str(self.place.fault("…")))
        return [names[each] for each in found]

    def _weights(self, batch: pa.RecordBatch, piece: Piece) -> pa.Array:
        if piece.weight != SAYS_ITSELF:
            return pa.repeat(piece.weight, batch.num_rows)
        kinds = batch.column(KIND).cast(pa.string())
        place = pc.index_in(kinds, pa.array(list(WEIGHTS)))
        if place.null_count:
            said = pc.filter(kinds, pc.is_null(place))[0]
            raise self.place.fault(f"the file {piece.path}: {KIND} is {said}")
        return pa.array(list(WEIGHTS.values()), pa.int64()).take(place)

    def _with_all(self, batch: pa.RecordBatch, piece: Piece) -> pa.Table:
        """The declared columns: those of the file, of its partition, and those added later."""
        columns = [self._column(batch, piece, name) for name in self._names()]
        return pa.table(columns, self._names())

    def _column(self, batch: pa.RecordBatch, piece: Piece, name: str) -> pa.Array:
        if name in batch.schema.names:
            return batch.column(name)
        value, wanted = piece.partition.get(name), self.form.types[name]
        if pa.types.is_binary(wanted):
            raise self.place.fault(
                f"column {name} parts the table, and is BINARY: writers do not agree which text of "
                "the log its bytes are; leave the column out, or part the table by another one"
            )
        if value is None or value == "":
            return pa.nulls(batch.num_rows, wanted)
        return pa.repeat(_scalar(value, wanted), batch.num_rows)


def _scalar(value: Any, wanted: pa.DataType) -> pa.Scalar:
    """A value of a partition, which the log has as text."""
    if not isinstance(value, str):
        return pa.scalar(value, wanted)
    if pa.types.is_timestamp(wanted):
        plain = pa.scalar(value.rstrip("Z").replace("T", " ")).cast(pa.timestamp("us"))
        return plain.cast(wanted)
    return pa.scalar(value).cast(wanted)
