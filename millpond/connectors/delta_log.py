"""The log of a Delta table: which files' rows come and go with each version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from millpond.connectors.delta_rows import SAYS_ITSELF, DeltaRows, Piece
from millpond.connectors.delta_table import DeltaPlace, Form
from millpond.connectors.lake_source import LakePosition, Version
from millpond.connectors.sources import Declaration
from millpond.errors import MillpondError

_DELETION_VECTORS = (
    "rows of files are marked as deleted (deletion vectors), which is not read; set "
    "delta.enableDeletionVectors to false and have them written anew: REORG TABLE … APPLY (PURGE)"
)


class DeltaLog:
    """Reads versions: one with all of its rows, and then what each has changed."""

    passing = (OSError,)

    def __init__(self, declaration: Declaration, place: DeltaPlace) -> None:
        self._declaration, self._place = declaration, place

    def present(self) -> LakePosition:
        """Before all rows of the version that is there."""
        table = self._place.opened()
        identity = self._place.form_of(table).identity
        return LakePosition(identity, table.version(), is_whole=True)

    def behind(self, position: LakePosition) -> LakePosition:
        """Where the next version begins."""
        return LakePosition(position.table, position.version + 1, time=position.time)

    def next(self, position: LakePosition) -> Version | None:
        """The version at a position; None where it is not there yet."""
        number = position.version
        if position.is_whole:
            return self.whole(number)
        version = self.change(number)
        if version is None and self._is_shortened_behind(number):
            version = self.change(number)  # it may have come just now
            if version is None:
                raise self.fault(
                    f"the log of version {number} is gone (delta.logRetentionDuration) before it "
                    "was read; DROP it here and declare it again, which reads what is there now"
                )
        return version

    def rows(self, table: str, form: Form | None) -> DeltaRows:
        """How rows are read now; refused if it is another table."""
        form = form or self._place.form_of(self._place.opened())
        if form.identity != table:
            raise self.fault(
                "it was made anew since it was read; DROP it here and declare it again"
            )
        return DeltaRows(self._declaration, self._place, form)

    def fault(self, reason: str) -> MillpondError:
        """A fault that names the table."""
        return self._place.fault(reason)

    def whole(self, number: int) -> Version:
        """A version with all rows that it has: files in the order in which they were written."""
        table = self._place.opened(number)
        if pa.table(table.deletion_vectors()).num_rows:
            raise self._place.fault(_DELETION_VECTORS)
        files = pa.table(table.get_add_actions()).to_pylist()
        files.sort(key=lambda each: (each["modification_time"], each["path"]))
        pieces = [Piece(self._own(each["path"]), 1, each.get("partition") or {}) for each in files]
        return Version(number, tuple(pieces), is_whole=True)

    def change(self, number: int) -> Version | None:
        """What a version has changed; None if it is not there."""
        lines = self._read(f"{number:020}.json")
        if not lines:  # or not written yet
            return None
        actions = list(self._actions(number, lines))
        info: dict[str, Any] = next((value for name, value in actions if name == "commitInfo"), {})
        added = (value["modificationTime"] for name, value in actions if name == "add")
        made = info.get("inCommitTimestamp") or info.get("timestamp") or max(added, default=0)
        said = next((value for name, value in actions if name == "metaData"), None)
        return Version(
            number,
            tuple(self._pieces(number, actions)),
            milliseconds=int(made),
            operation=str(info.get("operation", "")),
            form=None if said is None else self._form(said),
        )

    def _is_shortened_behind(self, number: int) -> bool:
        """Whether the log of a version need not be there any more."""
        lines = self._read("_last_checkpoint")
        return lines is not None and int(json.loads(b"".join(lines))["version"]) >= number

    def _read(self, name: str) -> list[bytes] | None:
        try:
            with self._place.files.open_input_stream(f"_delta_log/{name}") as file:
                found: list[bytes] = file.read().splitlines()
        except FileNotFoundError:
            return None
        return found

    def _form(self, said: Mapping[str, Any]) -> Form:
        schema = self._place.package.Schema.from_json(said["schemaString"])
        return self._place.form(said["id"], said.get("configuration") or {}, schema)

    def _actions(self, number: int, lines: list[bytes]) -> Iterator[tuple[str, Any]]:
        try:
            for line in lines:
                yield from json.loads(line).items()
        except ValueError as error:
            raise self._place.fault(f"version {number} of its log is damaged ({error})") from None

    def _pieces(self, number: int, actions: list[tuple[str, Any]]) -> Iterator[Piece]:
        """Files of changes say all where there are any; else files that go and files that come."""
        of: dict[str, list[Any]] = {"cdc": [], "remove": [], "add": []}
        for name, value in actions:
            if name == "cdc" or (name in of and value.get("dataChange", True)):
                of[name].append(value)
        weights = {"cdc": SAYS_ITSELF} if of["cdc"] and of["remove"] else {"remove": -1, "add": 1}
        for name, weight in weights.items():
            for value in of[name]:
                if value.get("deletionVector"):
                    raise self._place.fault(f"version {number}: {_DELETION_VECTORS}")
                path = self._own(value["path"])
                yield Piece(path, weight, value.get("partitionValues") or {})

    def _own(self, given: str) -> str:
        """The path of a file in the table, which the log has as part of an address."""
        path = unquote(given)
        if "://" in path or path.startswith("/"):
            raise self._place.fault(
                f"the file {path} belongs to another table (a shallow clone), which is not read; "
                "clone it deeply"
            )
        return path
