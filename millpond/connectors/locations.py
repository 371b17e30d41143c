"""What a file name in a script stands for: a file, a directory, a pattern, or standard input."""

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from millpond.connectors.secrets import Secret, revealed
from millpond.errors import InputError

STDIN = Path("/dev/stdin")
"""Standard input, also written ``-``; it is read through its descriptor, not by this name."""


@dataclass(frozen=True)
class Location:
    """A name as it was written, its path, and what the files in a directory must end with."""

    text: str
    path: Path
    suffixes: tuple[str, ...] = ()

    def files(self) -> list[Path]:
        """The files there are now, in order of their names."""
        if self.path == STDIN or (self.path.exists() and not self.path.is_dir()):
            return [self.path]
        if self.path.is_dir():
            return sorted(file for file in self.path.iterdir() if self._fits(file.name))
        names = glob.glob(str(self.path), recursive=True)  # noqa: PTH207, it may be absolute
        return sorted(Path(name) for name in names if not Path(name).is_dir())

    def covers(self, file: Path) -> bool:
        """Whether a file, there or not yet, is one of these."""
        if self.path.is_dir():
            return self._fits(file.name) and identity(file.parent) == identity(self.path)
        if self.path == STDIN or self.path.exists():
            return identity(file) == identity(self.path)
        real, pattern = Path(os.path.realpath(file)), _with_real_prefix(self.path)
        return _matches(real.parts, pattern.parts) or identity(file) in map(identity, self.files())

    def _fits(self, name: str) -> bool:
        return name.endswith(self.suffixes) and not name.startswith(("_", "."))


def located(owner: str, directory: Path, name: Any, *suffixes: str) -> Location:
    """The place that a name given in a script means; ``-`` is standard input."""
    value = revealed(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{owner}: {name!r} is not a file name")
    if value in ("-", str(STDIN)):
        return Location("standard input", STDIN)
    try:
        path = directory / Path(value).expanduser()
    except RuntimeError:
        raise InputError(f"{owner}: {name} begins with the home of nobody here") from None
    if isinstance(name, Secret):
        name.stands_also_for(str(path))
        name.stands_also_for(os.path.realpath(path))
    return Location(str(name), path, suffixes)


def existing_files(owner: str, location: Location) -> list[Path]:
    """The files of a location, at least one; whatever keeps them from being read is said."""
    try:
        if location.path == STDIN:
            os.fstat(0)
        found = [file for file in location.files() if not file.is_dir()]
        for file in found:
            _ = file.stat() if file != STDIN else None
        if not found and location.path.is_symlink():
            location.path.stat()  # a link in a circle, or to nothing
    except OSError as error:
        raise InputError(f"{owner}: {location.text}: {error.strerror or error}") from None
    except ValueError as error:  # a name no file can have
        raise InputError(f"{owner}: {location.text!r}: {error}") from None
    if found:
        return found
    endings = " or ".join(location.suffixes)
    if location.path.is_dir():
        raise InputError(f"{owner}: no file ending in {endings} in directory {location.text}")
    raise InputError(f"{owner}: no file {location.text}")


def identity(file: Path) -> tuple[Any, ...]:
    """What two names of one file have in common, whatever links lead there, also before it exists.

    >>> identity(Path(".")) == identity(Path("../") / Path.cwd().name)
    True
    """
    try:
        status = os.fstat(0) if file == STDIN else file.stat()
        return (status.st_dev, status.st_ino)
    except OSError:
        real = Path(os.path.realpath(file))
        return (str(real),) if real.parent == real else (identity(real.parent), real.name)


def is_device(file: Path) -> bool:
    """Whether this is a device, which may have any number of readers and writers."""
    try:
        return stat.S_ISCHR(file.stat().st_mode)
    except OSError:
        return False


def _with_real_prefix(pattern: Path) -> Path:
    """The pattern with the links in its directories resolved, up to the first wildcard."""
    plain = [parent for parent in pattern.parents if not glob.has_magic(str(parent))]
    return Path(os.path.realpath(plain[0])) / pattern.relative_to(plain[0])


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**" and _matches(parts, pattern[1:]):
        return True
    if not parts or (parts[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    rest = pattern if pattern[0] == "**" else pattern[1:]
    return fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], rest)
