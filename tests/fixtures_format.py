"""Reads tests/fixtures/*.txt: timestamped input, CQL, and the expected stream.

A case starts with ``== title``. Section heads stand at the margin, their content is indented:

    == A title
    tick 1 second                        (optional; otherwise one microsecond)
    stream S (t BIGINT, a INT) delay 2   (tuples in order of arrival; the first column is the time)
      0, 1
      advance 5
    relation R (k INT, n STRING)         (time or begin, + or -, row)
      begin + 1, 'one'
      5 - 1, 'one'
    view V
      SELECT a FROM S
    query ON ERROR SKIP                  (the policy is optional)
      SELECT ...
    expect (a, n)                        (names are optional; time or begin, weight, row)
      begin +1 0
      3 -1 0
    late S                               (the tuples that came too late; optional)
      0, 1
    aside                                (how many rows each clause leaves out; optional)
      begin +1 WHERE
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from tests.cases import Advance, Case, Change, Push, Relation, Run, Stream
from tests.reference_parser import UNIT_MICROSECONDS
from tests.reference_values import Array, Map, Struct, as_decimal

FOLDER = Path(__file__).parent / "fixtures"
VALUE = re.compile(r"\s*(\[[^\]]*\]|\{[^}]*\}|x?'(?:[^']|'')*'|[^,']+?)\s*(?:,|$)")
CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}


@dataclass(frozen=True)
class Fixture:
    """A case with one query, called ``q``, and its expected output."""

    file: str
    title: str
    case: Case
    expected: tuple[tuple, ...]
    names: tuple[str, ...] | None
    late: dict[str, list[tuple]]
    aside: tuple[tuple, ...] | None

    def __str__(self):
        return f"{self.file}: {self.title}"


def same_input(case):
    """What cases must have in common to run in one engine."""
    return replace(case, queries={}, title="", skipping=frozenset())


def load(folder=FOLDER):
    """All fixtures of a folder."""
    return [fixture for path in sorted(folder.glob("*.txt")) for fixture in read(path.stem, path)]


def read(name, path):
    """The fixtures of one file."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [one(name, chunk) for chunk in re.split(r"^== ", text, flags=re.MULTILINE)[1:]]


def one(file, chunk):
    """One fixture from its text."""
    title, _, body = chunk.partition("\n")
    reader = Reader()
    for head, lines in sections(body):
        word, _, rest = head.partition(" ")
        getattr(reader, word)(rest.strip(), lines)
    return Fixture(
        file,
        title.strip(),
        reader.case(title),
        tuple(reader.expected),
        reader.names,
        reader.too_late,
        reader.left_out,
    )


def sections(body):
    """(head, indented lines) of each section."""
    found = []
    for line in body.splitlines():
        if line[:1].isspace():
            found[-1][1].append(line.strip())
        elif line:
            found.append((line.strip(), []))
    return [(head, [line for line in lines if line]) for head, lines in found]


class Reader:
    """Collects the sections of one fixture; a method reads the section of its name."""

    def __init__(self):
        self.streams, self.relations, self.actions = [], [], []
        self.schemas, self.views = {}, {}
        self.text, self.names, self.expected, self.too_late = "", None, [], {}
        self.skipping, self.left_out = frozenset(), None
        self.tick_microseconds = 1

    def case(self, title):
        """The case read so far; relations are pushed before streams."""
        actions = sorted(self.actions, key=lambda action: not isinstance(action, Change))
        return Case(
            tuple(self.streams), tuple(self.relations), self.views, {"q": self.text},
            (*actions, Run()), tick_microseconds=self.tick_microseconds, title=title.strip(),
            skipping=self.skipping,
        )  # fmt: skip

    def tick(self, rest, lines):
        amount, unit = rest.split()
        self.tick_microseconds = int(amount) * UNIT_MICROSECONDS[unit.removesuffix("s")]

    def stream(self, rest, lines):
        name, schema, rest = declared(rest)
        delay = int(rest.removeprefix("delay")) if rest else 0
        self.streams.append(Stream(name, schema, delay))
        self.schemas[name] = schema
        rows = []
        for line in lines:
            if line.startswith("advance "):
                self.actions += [Push(name, tuple(rows)), Advance(name, int(line.split()[1]))]
                rows = []
            else:
                rows.append(values(line, schema))
        if rows:
            self.actions.append(Push(name, tuple(rows)))

    def relation(self, rest, lines):
        name, schema, _ = declared(rest)
        self.relations.append(Relation(name, schema))
        changes = []
        for line in lines:
            ts, op, row = line.split(maxsplit=2)
            changes.append((time(ts), op, values(row, schema)))
        if changes:
            self.actions.append(Change(name, tuple(changes)))

    def view(self, rest, lines):
        self.views[rest] = "\n".join(lines)

    def query(self, rest, lines):
        self.text = "\n".join(lines)
        assert rest in ("", "ON ERROR SKIP"), rest
        self.skipping = frozenset({"q"} if rest else ())

    def expect(self, rest, lines):
        if rest:
            self.names = tuple(name.strip() for name in rest.strip("()").split(","))
        for line in lines:
            ts, weight, row = line.split(maxsplit=2)
            self.expected.append((time(ts), int(weight), values(row)))

    def aside(self, rest, lines):
        words = [line.split(maxsplit=2) for line in lines]
        self.left_out = tuple((time(ts), int(weight), (clause,)) for ts, weight, clause in words)

    def late(self, rest, lines):
        self.too_late[rest] = [values(line, self.schemas[rest]) for line in lines]


def declared(text):
    """(name, schema, what follows) of a declaration such as ``S (a INT, b STRING) delay 2``."""
    name, inner, rest = re.fullmatch(r"(\w+) \((.*)\)\s*(.*)", text).groups()
    columns = re.split(r",(?![^(]*\)|[^<]*>)", inner)
    schema = tuple(tuple(column.strip().split(" ", 1)) for column in columns)
    return name, schema, rest


def time(text):
    """A time, None for the beginning."""
    return None if text == "begin" else int(text)


def values(line, schema=None):
    """The values of one row; DOUBLE, DATE and TIMESTAMP columns get values of their type."""
    row = [literal(text) for text in VALUE.findall(line)]
    if schema:
        assert len(row) == len(schema), f"{line!r} does not fit {schema}"
        convert = {
            "DOUBLE": float, "TIMESTAMP": datetime.fromisoformat, "DATE": date.fromisoformat,
        }  # fmt: skip
        row = [
            value if value is None else convert.get(type_name, lambda v: v)(value)
            for value, (_, type_name) in zip(row, schema, strict=True)
        ]
        row = [
            as_decimal(value, type_name)
            if type_name.startswith("DECIMAL") and value is not None
            else value
            for value, (_, type_name) in zip(row, schema, strict=True)
        ]
    return tuple(row)


def named(pairs):
    """The STRUCT of names and values, or the MAP of keys and values."""
    pairs = [(key.strip(), literal(value.strip())) for key, value in pairs]
    if pairs and pairs[0][0].isidentifier():
        return Struct(pairs)
    return Map((literal(key), value) for key, value in pairs)


def literal(text):
    """The value of a literal; ``@2024-01-01 00:00:00`` is a timestamp, ``1.50D`` a decimal,
    ``[1; NULL]`` an ARRAY, ``{a: 1; b: NULL}`` a STRUCT or, with keys as literals, a MAP."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith("["):
        return Array(literal(each.strip()) for each in text[1:-1].split(";") if each.strip())
    if text.startswith("{"):
        return named(each.split(":", 1) for each in text[1:-1].split(";") if each.strip())
    if text.startswith("x'"):
        return bytes.fromhex(text[2:-1])
    if text.startswith("#"):
        return date.fromisoformat(text[1:])
    if text.startswith("@"):
        return datetime.fromisoformat(text[1:])
    if text.endswith("D"):
        return Decimal(text[:-1])
    return float(text) if re.search(r"[.e]", text) else int(text)
