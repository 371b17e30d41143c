"""The log of a Delta table: which files' rows come and go with each version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from millpond.connectors.delta_table import DeltaPlace, Form

SAYS_ITSELF = 0
"""The weight of a file of changes: each of its rows says whether it comes or goes."""

_DELETION_VECTORS = (
    "rows of files are marked as deleted (deletion vectors), which is not read; set "
    "delta.enableDeletionVectors to false and have them written anew: REORG TABLE … APPLY (PURGE)"
)


@dataclass(frozen=True)
class Piece:
    """A file whose rows come (1) or go (-1) with a version, or say so themselves (0)."""

    path: str
    weight: int
    partition: Mapping[str, Any]


@dataclass(frozen=True)
class Version:
    """A version of a table: its pieces, and when it was made, in milliseconds."""

    number: int
    pieces: tuple[Piece, ...]
    is_whole: bool = False
    """Whether they have all of its rows, not only what it has changed."""
    milliseconds: int = 0
    operation: str = ""
    form: Form | None = None
    """What the table is from this version on, where it says so."""

    @property
    def takes_away(self) -> bool:
        """Whether it has rows go."""
        return any(each.weight != 1 for each in self.pieces)


class DeltaLog:
    """Reads versions: one with all of its rows, and then what each has changed."""

    def __init__(self, place: DeltaPlace) -> None:
        self._place = place

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
        if lines is None:
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

    def is_shortened_behind(self, number: int) -> bool:
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
