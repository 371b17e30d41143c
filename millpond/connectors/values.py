"""Made-up values for generated streams, the same for a seed whatever pages they are cut into.

A value depends on the seed, the column and the row's number only, by a hash.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.connectors.arrays import closed
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.maps import closed_maps
from millpond.connectors.structs import closed_structs
from millpond.schema import Field, Schema, Type

Bits: TypeAlias = npt.NDArray[np.uint64]

VOCABULARY = {
    "domain": ["stanford.edu", "shop.example", "news.example", "mail.example", "games.example"],
    "method": ["GET", "GET", "GET", "POST", "HEAD"],
    "type": ["commerce", "education", "news", "other"],
    "country": ["AR", "DE", "IN", "JP", "KE", "US"],
}
"""Words for columns of a well-known name; others get words made from their name."""

HOSTS = ["www", "www", "cs", "www", "cdn"]


@dataclass(frozen=True)
class ValueGenerator:
    """Fills the columns of a schema; integers lie in 0 … keys-1."""

    schema: Schema
    seed: int
    keys: int

    def column(self, position: int, rows: npt.NDArray[np.int64]) -> pa.Array:
        """The values of one column for the rows with these numbers."""
        field = self.schema[position]
        bits = self._bits(position, rows)
        if field.type.is_array:
            return self._arrays(field, bits, rows)
        if field.type.is_struct:
            return self._structs(field, rows)
        if field.type.is_map:
            return self._maps(field, bits, rows)
        if field.type is Type.STRING:
            return self._text(field, bits, rows)
        if field.type is Type.BINARY:
            return self._text(field, bits, rows).cast(pa.binary())
        if field.type.is_decimal:
            return _decimals(field.type, bits)
        return pa.array(self._plain(field, bits), ARROW_TYPES[field.type])

    def _arrays(self, field: Field, bits: Bits, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Up to three elements for each row."""
        ends, (values,) = self._entries(bits, rows, Field(field.name, field.type.element))
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)
        return closed(lists, np.ones(len(rows), np.bool_))

    def _maps(self, field: Field, bits: Bits, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Up to three entries for each row."""
        ends, (keys, values) = self._entries(
            bits, rows, Field("key", field.type.key), Field(field.name, field.type.element)
        )
        return closed_maps(pa.array(ends, pa.int32()), keys, values, np.ones(len(rows), np.bool_))

    def _entries(
        self, bits: Bits, rows: npt.NDArray[np.int64], *fields: Field
    ) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
        """Where the entries of each row end, and what they have."""
        counts = (bits >> np.uint64(20)).astype(np.int64) % (_MOST_ELEMENTS + 1)
        ends = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        numbers = np.repeat(rows, counts) * _MOST_ELEMENTS + within
        inner = ValueGenerator(Schema(fields), self.seed + 1, self.keys)
        return ends, [inner.column(at, numbers) for at in range(len(fields))]

    def _structs(self, field: Field, rows: npt.NDArray[np.int64]) -> pa.Array:
        inner = ValueGenerator(Schema(field.type.fields), self.seed + 1, self.keys)
        parts = [inner.column(at, rows) for at in range(len(field.type.fields))]
        return closed_structs(parts, np.ones(len(rows), np.bool_))

    def _plain(self, field: Field, bits: Bits) -> npt.NDArray[Any]:
        if field.type is Type.DOUBLE:
            return np.round((bits >> np.uint64(11)) / 2.0**53 * 100, 2)
        if field.type is Type.BOOLEAN:
            return (bits & np.uint64(1)).astype(np.bool_)
        if field.type is Type.DATE:
            return np.datetime64("2026-01-01") + (bits % np.uint64(365)).astype(np.int64)
        keys = min(self.keys, _MOST_KEYS.get(field.type, self.keys))
        number = (bits % np.uint64(keys)).astype(np.int64)
        if field.type is Type.TIMESTAMP:
            return np.datetime64("2026-01-01", "us") + number * np.timedelta64(1_000_000, "us")
        return number.astype(np.int32) if field.type is Type.INT else number

    def _text(self, field: Field, bits: Bits, rows: npt.NDArray[np.int64]) -> pa.Array:
        if field.name.lower() == "url":
            return self._urls(bits, rows)
        words = VOCABULARY.get(field.name.lower()) or _made_up(field.name, self.keys)
        chosen = (bits % np.uint64(len(words))).astype(np.int32)
        return pa.DictionaryArray.from_arrays(chosen, words).cast(pa.string())

    def _urls(self, bits: Bits, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Pages of the row's own domain, if there is such a column."""
        domain = self.schema.position("domain")
        position = len(self.schema) if domain is None else domain
        domains = VOCABULARY["domain"]
        chosen = (self._bits(position, rows) % np.uint64(len(domains))).astype(np.int64)
        hosts = (bits % np.uint64(len(HOSTS))).astype(np.int64)
        pages = ((bits >> np.uint64(32)) % np.uint64(100)).astype(np.int64)
        number = (chosen * len(HOSTS) + hosts) * 100 + pages
        return pa.DictionaryArray.from_arrays(number, _ALL_URLS).cast(pa.string())

    def _bits(self, column: int, rows: npt.NDArray[np.int64]) -> Bits:
        seed = (self.seed * 1_000_003 + column + 1) % 2**64
        start = _mixed(np.array([seed], dtype=np.uint64))
        return _mixed(rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start)


def _decimals(type_: Type, bits: Bits) -> pa.Array:
    """Up to a hundred, where so many digits are before the point."""
    units = bits % np.uint64(10 ** min(type_.precision, type_.scale + 2, _RANDOM_DIGITS))
    made = [Decimal(unit).scaleb(-type_.scale) for unit in units.tolist()]
    return pa.array(made, ARROW_TYPES[type_])


_RANDOM_DIGITS = 19
_MOST_ELEMENTS = 3

_MOST_KEYS = {Type.INT: 2**31, Type.TIMESTAMP: 10**9}
"""How many different values such a column can have."""

_ALL_URLS = [
    f"http://{host}.{domain}/page{page}.html"
    for domain in VOCABULARY["domain"]
    for host in HOSTS
    for page in range(100)
]


def _made_up(name: str, keys: int) -> list[str]:
    return [f"{name.lower()}-{number}" for number in range(min(keys, 100))]


def _mixed(bits: Bits) -> Bits:
    """The finalizer of splitmix64: every bit of the input changes half of those of the output."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
