"""Small files that Spark reads while it starts, in the user's cache.

Equal texts have one path, and nobody removes it: a process that ends while Spark starts takes
nothing away from it.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from millpond.errors import MachineError


def cached_file(family: str, name: str, text: str, mode: int = 0o644) -> Path:
    """Writes a file of this text, unless it is there, below a directory of the family's own."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    for parent in _cache_directories():
        with contextlib.suppress(OSError):
            return _written(parent / f"{family}-{digest}" / name, text, mode)
    raise MachineError("no directory for temporary files can be written; set TMPDIR to one")


def _cache_directories() -> Iterator[Path]:
    cache = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # a user without a home directory
        yield (Path(cache) if cache else Path.home() / ".cache") / "millpond"
    yield Path(tempfile.mkdtemp(prefix="millpond-"))


def _written(path: Path, text: str, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        handle, unfinished = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(unfinished).chmod(mode)
        Path(unfinished).replace(path)
    return path
