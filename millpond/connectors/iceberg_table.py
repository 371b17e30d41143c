"""Where a table of Iceberg is: in a catalog, by ``pyiceberg``, which is installed apart."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from millpond.connectors.lake import words_of
from millpond.connectors.secrets import Secret, revealed
from millpond.errors import InputError, MillpondError

OPTIONS = ("type", "uri", "warehouse", "credential", "token")
GROUPS = ("adls", "client", "gcs", "hdfs", "hive", "rest", "s3")
"""Options ``s3_endpoint`` are the property ``s3.endpoint``; what names code is no option."""

NONE = 0
"""Stands for the snapshot of a table that has none yet."""


@dataclass(frozen=True)
class IcebergPlace:
    """A table in a catalog, and who is told of its faults."""

    owner: str
    table: str | Secret
    catalog: str | Secret = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    error: type[MillpondError] = InputError

    def __post_init__(self) -> None:
        given = revealed(self.table)
        if not isinstance(given, str) or not all(given.split(".")) or "." not in given:
            raise self.error(
                f"{self.owner}: a table is a namespace and a name, 'sales.orders', not {given!r}"
            )
        _ = self.package, self.properties

    @cached_property
    def package(self) -> Any:
        """The package; where it is not installed an error says how to install it."""
        try:
            return importlib.import_module("pyiceberg.catalog")
        except ImportError:
            raise self.error(
                "iceberg needs the package pyiceberg; install it with "
                "pip install 'millpond[iceberg]'"
            ) from None

    def part(self, name: str) -> Any:
        """Another module of the package."""
        return importlib.import_module(f"pyiceberg.{name}")

    @cached_property
    def properties(self) -> dict[str, str]:
        """What the catalog and its files are told, as the package names it."""
        return {self._property(key): str(revealed(of)) for key, of in self.options.items()}

    def _property(self, option: str) -> str:
        group, _, rest = option.partition("_")
        if option in OPTIONS:
            return option
        if group in GROUPS and rest:
            return f"{group}.{rest.replace('_', '-')}"
        groups = ", ".join(f"{each}_…" for each in GROUPS)
        raise self.error(
            f"{self.owner}: no option {option}; options: {', '.join(OPTIONS)}, {groups}; others "
            "are in ~/.pyiceberg.yaml, under the name of the catalog"
        )

    @cached_property
    def opened_catalog(self) -> Any:
        """The catalog."""
        try:
            return self.package.load_catalog(str(revealed(self.catalog)), **self.properties)
        except Exception as error:
            raise self.fault(f"its catalog {self.catalog}: {words_of(error)}") from error

    @property
    def name(self) -> str:
        """The namespace and the name."""
        return str(revealed(self.table))

    def fault(self, reason: str) -> MillpondError:
        """A fault that names the owner and the table."""
        return self.error(f"{self.owner}, Iceberg table {self.table}: {reason}")

    def found(self) -> Any:
        """The table as it is now; None if there is none."""
        exceptions = self.part("exceptions")
        try:
            return self.opened_catalog.load_table(self.name)
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return None

    def opened(self) -> Any:
        """The table as it is now; an error if there is none."""
        try:
            return self.asked()
        except MillpondError:
            raise
        except Exception as error:
            raise self.fault(words_of(error)) from error

    def asked(self) -> Any:
        """The same, but with faults of the package, after which it may be asked again."""
        table = self.found()
        if table is None:
            raise self.fault(f"there is none in the catalog {self.catalog}")
        return table


def ancestors(metadata: Any) -> list[Any]:
    """The snapshots that the present one goes back to, it first, as far as they are kept."""
    found: list[Any] = []
    snapshot = metadata.current_snapshot()
    while snapshot is not None:
        found.append(snapshot)
        before = snapshot.parent_snapshot_id
        snapshot = None if before is None else metadata.snapshot_by_id(before)
    return found


def plain_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of the package without what it says of them, and without large types."""
    return pa.schema([pa.field(each.name, _plain(each.type), each.nullable) for each in columns])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _plain(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
