"""What a resident is told: parts that stay the same are sent once, and named afterwards.

Kernels, branches, schemas and functions live as long as their operator; a task of a step names
them by number. Who packs remembers what it has sent to one resident, and keeps these parts alive,
so that a number always means the same.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any, NamedTuple

import pyarrow as pa

from millpond.functions.user_function import UserFunction
from millpond.planning.branches import Branch, Outputs

MOST_BYTES = 64 * 2**20
"""So much, as it is sent, a resident remembers; of more, what was named the longest ago goes."""

_LASTING_MODULES = "millpond.kernels."
_LASTING_TYPES = (pa.Schema, Branch, Outputs, UserFunction)


def known_part(number: int) -> Any:
    """Stands for a part in what is sent; whoever reads that puts the part in its place."""
    raise LookupError(number)


class _Pickler(pickle.Pickler):
    """Pickles one thing, with numbers in the place of parts.

    Pickle asks for numbers, texts and tuples by ``persistent_id`` too, and they are the most.
    """

    def __init__(self, buffer: io.BytesIO, packing: Packing, whole: object) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._packing, self._whole = packing, whole

    def reducer_override(self, obj: Any) -> Any:
        if not lasts(type(obj)) or obj is self._whole:
            return NotImplemented
        return known_part, (self._packing.number(obj),)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, parts: dict[int, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._parts = parts

    def find_class(self, module: str, name: str) -> Any:
        if name == known_part.__name__ and module == __name__:
            return self._parts.__getitem__
        return super().find_class(module, name)


class _Part(NamedTuple):
    number: int
    part: object
    size: int


class Packing:
    """What one resident has been told."""

    def __init__(self) -> None:
        self._known: OrderedDict[int | pa.Schema, _Part] = OrderedDict()
        """By their identity, schemas by what they say; those named last at the end."""
        self._count = self._bytes = 0
        self._new: list[tuple[int, bytes]] = []

    def packed(self, thing: object) -> bytes:
        """A thing, with the parts of it that the resident does not know yet."""
        self._new = []
        try:
            body = self._pickled(thing)
        except BaseException:
            self._take_back()
            raise
        gone = []
        while self._bytes > MOST_BYTES:
            _, part = self._known.popitem(last=False)
            self._bytes -= part.size
            gone.append(part.number)
        return pickle.dumps((self._new, body, gone), pickle.HIGHEST_PROTOCOL)

    def number(self, part: object) -> int:
        """The number of a part; one that is new is packed too."""
        key = part if isinstance(part, pa.Schema) else id(part)
        known = self._known.get(key)
        if known is None:
            data = self._pickled(part)
            self._count += 1
            known = self._known[key] = _Part(self._count, part, len(data))
            self._bytes += len(data)
            self._new.append((self._count, data))
        self._known.move_to_end(key)
        return known.number

    def _take_back(self) -> None:
        """Forgets parts that will not be sent."""
        unsent = {number for number, _ in self._new}
        for key, part in list(self._known.items()):
            if part.number in unsent:
                self._bytes -= self._known.pop(key).size

    def _pickled(self, thing: object) -> bytes:
        buffer = io.BytesIO()
        _Pickler(buffer, self, thing).dump(thing)
        return buffer.getvalue()


class Unpacking:
    """What a resident remembers of what it was told."""

    def __init__(self) -> None:
        self._parts: dict[int, Any] = {}

    def unpacked(self, data: bytes) -> Any:
        """What was packed."""
        new, body, gone = pickle.loads(data)  # noqa: S301 (the driver has proved who it is)
        for number, part in new:
            self._parts[number] = _Unpickler(part, self._parts).load()
        thing = _Unpickler(body, self._parts).load()
        for number in gone:
            del self._parts[number]
        return thing


_lasting: dict[type, bool] = {}


def lasts(kind: type) -> bool:
    """Whether things of a type stay the same from step to step."""
    found = _lasting.get(kind)
    if found is None:
        is_kernel = kind.__module__.startswith(_LASTING_MODULES)
        found = _lasting[kind] = is_kernel or issubclass(kind, _LASTING_TYPES)
    return found
