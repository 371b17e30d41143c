"""Where the records of CSV text begin and end, by the rules that Arrow reads it by.

A quote opens a quoted cell only at the cell's beginning; two quotes inside stand for one. Text is
cut after its last whole record, so that it can be read block by block, and single records are
looked at only to name the place of a fault.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Record:
    """One record: the lines it begins and ends on (from one), its cells, and where it ends."""

    line: int
    last_line: int
    cells: list[bytes]
    end: int


def end_of_records(text: bytes, delimiter: bytes) -> int:
    """How much of a text that begins with a record is whole records.

    >>> end_of_records(b'1,2\\n3,"x\\n4', b",")
    4
    """
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    characters = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    opens = quotes[::2]
    before = characters[opens - 1]
    at_start = (before == delimiter[0]) | (before == _LF) | (before == _CR) | (before == _QUOTE)
    if not (at_start | (opens == 0)).all():
        quotes = np.array(list(_meaningful_quotes(text, delimiter)), dtype=np.int64)
    newlines = np.flatnonzero(characters == _LF)
    outside = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _meaningful_quotes(text: bytes, delimiter: bytes) -> Iterator[int]:
    """Where quoted cells open and close, in a text with quotes that are mere characters."""
    opening = re.compile(rb"(?:\A|[\r\n" + re.escape(delimiter) + rb'])"')
    position = 0
    while opened := opening.search(text, position):
        yield opened.end() - 1
        position = opened.end()
        while (closed := text.find(b'"', position)) >= 0 and text[closed + 1 : closed + 2] == b'"':
            position = closed + 2
        if closed < 0:
            return
        yield closed
        position = closed + 1


def records(text: bytes, delimiter: bytes) -> Iterator[Record]:
    """The records of a text one by one, empty lines left out."""
    cells: list[bytes] = []
    first = line = 1
    for cell in _cell(delimiter).finditer(text):
        quoted, plain, ending = cell.groups()
        at_end = cell.end() == len(text)
        if quoted is None:
            cells.append(plain)
        else:
            cells.append(quoted.replace(b'""', b'"') + plain)
            line += len(_NEWLINE.findall(quoted))
        if ending == delimiter and not at_end:
            continue
        if ending == delimiter:
            cells.append(b"")
        if cells != [b""] or quoted is not None:
            yield Record(first, line, cells, cell.end())
        if at_end:
            return
        line += 1
        first, cells = line, []


@cache
def _cell(delimiter: bytes) -> re.Pattern[bytes]:
    d = re.escape(delimiter)
    plain = rb"((?:(?!" + d + rb")[^\r\n])*)"
    return re.compile(rb'(?:"((?:[^"]|"")*+)(?:"|\Z))?' + plain + rb"(" + d + rb"|\r\n|\n|\r|\Z)")


_QUOTE, _LF, _CR = b'"\n\r'
_NEWLINE = re.compile(rb"\r\n|\n|\r")
