"""The snapshots of an Iceberg table: which files' rows come and go with each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millpond.connectors.iceberg_rows import IcebergPiece, IcebergRows
from millpond.connectors.iceberg_table import NONE, IcebergPlace, ancestors
from millpond.connectors.lake_source import LakePosition, Version
from millpond.connectors.sources import Declaration
from millpond.errors import MillpondError

_AGAIN = "DROP it here and declare it again, which reads what is there now"

_DELETES = (
    "rows of files are marked as deleted (delete files, deletion vectors), which is not read; have "
    "rows deleted by 'copy-on-write' (write.delete.mode, write.update.mode, write.merge.mode), and "
    "files written anew: CALL system.rewrite_data_files(…)"
)


class IcebergLog:
    """Reads snapshots: one with all of its rows, and then what each that follows has changed."""

    passing = (Exception,)

    def __init__(self, declaration: Declaration, place: IcebergPlace) -> None:
        self._declaration, self._place = declaration, place

    def present(self) -> LakePosition:
        """Before all rows of the snapshot that is there."""
        metadata = self._place.opened().metadata
        snapshot, table = metadata.current_snapshot(), str(metadata.table_uuid)
        if snapshot is None:
            return LakePosition(table, NONE, is_behind=True)
        return LakePosition(table, snapshot.snapshot_id, is_whole=True)

    def behind(self, position: LakePosition) -> LakePosition:
        """Behind a snapshot: which one follows is known when it is there."""
        return LakePosition(position.table, position.version, time=position.time, is_behind=True)

    def next(self, position: LakePosition) -> Version | None:
        """The snapshot at a position; None where it is not there yet."""
        table = self._place.asked()
        self._check_identity(table, position.table)
        if position.is_behind:
            snapshot = self._child(table.metadata, position.version)
        else:
            snapshot = table.metadata.snapshot_by_id(position.version)
            if snapshot is None:
                raise self.fault(f"snapshot {position.version} is gone (it expired); {_AGAIN}")
        if snapshot is None:
            return None
        # what led to the first snapshot that is kept may have expired
        is_whole = position.is_whole or position.version == NONE
        pieces = self._all(table, snapshot) if is_whole else self._own(table, snapshot)
        operation = "" if snapshot.summary is None else snapshot.summary.operation.value
        return Version(
            snapshot.snapshot_id,
            tuple(pieces),
            is_whole,
            snapshot.timestamp_ms,
            operation,
            form=table,
        )

    def rows(self, table: str, form: Any) -> IcebergRows:
        """How rows are read now; refused if it is another table."""
        opened = form or self._place.opened()
        self._check_identity(opened, table)
        return IcebergRows(self._declaration, self._place, opened)

    def fault(self, reason: str) -> MillpondError:
        """A fault that names the table."""
        return self._place.fault(reason)

    def _check_identity(self, table: Any, known: str) -> None:
        if str(table.metadata.table_uuid) != known:
            raise self.fault(
                "it was made anew since it was read; DROP it here and declare it again"
            )

    def _child(self, metadata: Any, number: int) -> Any:
        """The snapshot that follows one; None if that is the present one."""
        line = ancestors(metadata)
        if (line[0].snapshot_id if line else NONE) == number:
            return None
        for each in line:
            if (each.parent_snapshot_id or NONE) == number:
                return each
        raise self.fault(
            f"snapshot {number}, the last that was read, is none that the present one goes back "
            "to: what followed it has expired before it was read, or the table was put back to an "
            f"earlier one, or replaced; {_AGAIN}"
        )

    def _all(self, table: Any, snapshot: Any) -> list[IcebergPiece]:
        """All files of a snapshot, in the order in which they were written."""
        found = []
        for manifest in snapshot.manifests(table.io):
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            if entries and self._marks(manifest):
                raise self.fault(_DELETES)
            found += [(each.sequence_number, each.data_file) for each in entries]
        found.sort(key=lambda each: (each[0], each[1].file_path))
        return [IcebergPiece(file, 1) for _, file in found]

    def _own(self, table: Any, snapshot: Any) -> Iterator[IcebergPiece]:
        """The files that a snapshot has removed and added; one that writes files anew has none."""
        status = self._place.part("manifest").ManifestEntryStatus
        weights = {status.DELETED: -1, status.ADDED: 1}
        if snapshot.summary is not None and snapshot.summary.operation.value == "replace":
            return
        for weight in (-1, 1):
            for manifest, entry in self._entries(table, snapshot):
                if weights.get(entry.status) == weight:
                    if self._marks(manifest):
                        raise self.fault(f"snapshot {snapshot.snapshot_id}: {_DELETES}")
                    yield IcebergPiece(entry.data_file, weight)

    def _entries(self, table: Any, snapshot: Any) -> Iterator[tuple[Any, Any]]:
        """What a snapshot itself says of files."""
        number = snapshot.snapshot_id
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id == number:
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                    if entry.snapshot_id == number:
                        yield manifest, entry

    def _marks(self, manifest: Any) -> bool:
        """Whether files of a manifest mark rows of others as deleted."""
        return bool(manifest.content == self._place.part("manifest").ManifestContent.DELETES)
