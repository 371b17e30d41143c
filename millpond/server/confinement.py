"""What statements that come from outside may not do: files beyond the roots, settings of the
machine, plans beyond all measure.

Scripts that the owner of the process names on the command line are not confined.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millpond.catalog import Connector, QueryEntry, RelationEntry, StreamEntry, ViewEntry
from millpond.connectors.secrets import is_reference
from millpond.cql.algebra import Join
from millpond.cql.statements import Create, SetOption, Statement
from millpond.errors import CqlError
from millpond.server.limits import Limits
from millpond.settings import OF_THE_OWNER, Change, Settings

FILES = ("csv", "json", "parquet")
GENERATED = ("push", "rate", "burst")
STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0")


@dataclass(frozen=True)
class Confinement:
    """Refuses statements with a ``CqlError``."""

    roots: tuple[Path, ...] = ()
    directory: Path = Path()
    """Where names that are not absolute begin."""
    limits: Limits = field(default_factory=Limits)

    def check(self, statement: Statement) -> None:
        """Refuses what may not be asked from outside."""
        try:
            self._check(statement)
        except _Refusal as refusal:
            raise CqlError(str(refusal), statement.position) from None

    def _check(self, statement: Statement) -> None:
        match statement.action:
            case Create(StreamEntry() | RelationEntry() as entry):
                self._check_connector(entry.source)
                if isinstance(entry, StreamEntry) and entry.dead_letters is not None:
                    self._check_connector(entry.dead_letters)
            case Create(QueryEntry() as entry):
                self._check_joins(entry)
                if entry.sink is not None:
                    self._check_connector(entry.sink)
            case Create(ViewEntry() as entry):
                self._check_joins(entry)
            case SetOption(key):
                self._check_setting(key)

    def _check_setting(self, key: str) -> None:
        changes = {name: change for name, _, _, change in Settings().listing()}
        is_of_machine = changes.get(key.lower()) == Change.BEFORE_SPARK.value
        if is_of_machine or key.lower().replace("-", "_") in OF_THE_OWNER:
            raise _Refusal(f"setting {key} is for who starts the server, not for who asks it")

    def _check_joins(self, entry: QueryEntry | ViewEntry) -> None:
        joins = sum(isinstance(node, Join) for node in entry.plan.walk_into_subqueries())
        if joins > self.limits.joins:
            raise _Refusal(f"{joins} joins; a query may have {self.limits.joins} at most")

    def _check_connector(self, connector: Connector) -> None:
        name = connector.name.lower()
        if name in FILES:
            options = dict(connector.options)
            files = [*connector.arguments[:1], *(options[k] for k in ("file",) if k in options)]
            for file in files:
                self._check_file(connector, file)
        elif name not in GENERATED:
            raise _Refusal(f"{name}: this connector is not for who asks a server")
        elif name == "burst":
            for key, value in connector.options:
                if key.lower() == "file":
                    self._check_file(connector, value)

    def _check_file(self, connector: Connector, file: object) -> None:
        if not self.roots:
            raise _Refusal(
                f"{connector.name}: files are not for who asks this server; "
                "`millpond serve --root DIR` allows those in a directory"
            )
        is_name = isinstance(file, str) and "\0" not in file and file not in STANDARD_INPUT
        is_name = is_name and not is_reference(file)
        if not is_name or not within(self.directory / str(file), self.roots):
            raise _Refusal(
                f"{connector.name}: {str(file)[:80]!r} is outside of what this server may read and "
                "write, or leads through a link"
            )


class _Refusal(Exception):  # noqa: N818 (becomes a CqlError)
    pass


def within(file: Path, roots: Sequence[Path]) -> bool:
    """Whether a file lies under one of the roots, without a link on the way from there."""
    path = Path(os.path.abspath(file))  # noqa: PTH100 (links are not to be followed)
    for root in roots:
        real = Path(os.path.realpath(root))
        if path == real or not path.is_relative_to(real):
            continue
        parts = path.relative_to(real).parts
        if not any(real.joinpath(*parts[: n + 1]).is_symlink() for n in range(len(parts))):
            return _has_no_links(path)
    return False


def _has_no_links(path: Path) -> bool:
    """Whether a directory or a pattern names no link either."""
    if any(mark in str(path) for mark in "*?["):
        return False
    return not path.is_dir() or not any(each.is_symlink() for each in path.iterdir())
