"""Where a table of Delta Lake is, by ``deltalake``, which is installed apart."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs

from millpond.connectors.lake import words_of
from millpond.connectors.locations import located
from millpond.connectors.secrets import Secret, revealed
from millpond.errors import InputError, MillpondError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")
_MAPPED = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Form:
    """What a version says of the table: which one it is, and the types of its columns."""

    identity: str
    types: Mapping[str, pa.DataType]


@dataclass(frozen=True)
class DeltaPlace:
    """A table in a directory or an object store, and who is told of its faults."""

    owner: str
    table: str | Secret
    directory: Path = Path()
    options: Mapping[str, Any] = field(default_factory=dict)
    error: type[MillpondError] = InputError

    def __post_init__(self) -> None:
        given = revealed(self.table)
        if not isinstance(given, str) or not given or "\0" in given:
            raise self.error(f"{self.owner}: a table is a directory or an address, not {given!r}")
        if self.options and not _SCHEME.match(given):
            known = ", ".join(self.options)
            raise self.error(f"{self.owner}: no option {known}; {given} is a directory, as a whole")
        _ = self.package

    @cached_property
    def package(self) -> Any:
        """The package; where it is not installed an error says how to install it."""
        try:
            return importlib.import_module("deltalake")
        except ImportError:
            raise self.error(
                "delta needs the package deltalake; install it with pip install 'millpond[delta]'"
            ) from None

    @property
    def exceptions(self) -> Any:
        """What the package raises."""
        return importlib.import_module("deltalake.exceptions")

    @cached_property
    def uri(self) -> str:
        """The address; a directory starts where the program runs."""
        given = str(revealed(self.table))
        if _SCHEME.match(given):
            return given
        return str(located(self.owner, self.directory, self.table).path)

    @cached_property
    def storage(self) -> dict[str, str]:
        """What the object store is told."""
        return {key: str(revealed(value)) for key, value in self.options.items()}

    @cached_property
    def files(self) -> pa_fs.FileSystem:
        """The files of the table, by their paths in it."""
        handler = importlib.import_module("deltalake.fs").DeltaStorageHandler
        return pa_fs.PyFileSystem(handler(self.uri, self.storage))

    def fault(self, reason: str) -> MillpondError:
        """A fault that names the owner and the table."""
        return self.error(f"{self.owner}, Delta table {self.table}: {reason}")

    @property
    def is_there(self) -> bool:
        """Whether there is a table."""
        return bool(self.package.DeltaTable.is_deltatable(self.uri, self.storage))

    def opened(self, version: int | None = None) -> Any:
        """The table as of a version, the last one unless said otherwise."""
        exceptions = self.exceptions
        try:
            return self.package.DeltaTable(self.uri, version, storage_options=self.storage)
        except exceptions.TableNotFoundError:
            raise self.fault("there is none; a directory with _delta_log in it is one") from None
        except (exceptions.DeltaError, OSError, ValueError) as error:
            of = "" if version is None else f"version {version}: "
            raise self.fault(f"{of}{words_of(error)}") from None

    def form(self, identity: str, configuration: Mapping[str, str], schema: Any) -> Form:
        """What is said of the table; refused if its files alone do not say what its rows are."""
        if configuration.get(_MAPPED, "none") != "none":
            raise self.fault(
                f"its columns have other names in its files ({_MAPPED}), which is not read; "
                "copy it into a table without"
            )
        return Form(identity, {each.name: each.type for each in pa.schema(schema.to_arrow())})

    def form_of(self, table: Any) -> Form:
        """What an opened table says of itself."""
        metadata = table.metadata()
        return self.form(metadata.id, metadata.configuration, table.schema())
