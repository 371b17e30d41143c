"""What is kept of the rows of a match that has begun: the values of its slots so far.

A register is a few *cells*, which are plain numbers and texts; those of all registers of a begun
match are one tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.row_patterns import Slot
from millpond.kernels import exact_sum
from millpond.kernels.aggregate import overflow
from millpond.kernels.columns import doubles_back, doubles_of, flat, is_bytes, mask_of, places_of
from millpond.kernels.decimals import column_of, mean_of, wholes, within

Cells = tuple[Any, ...]
_LOW = 2**32 - 1
_CARRY = 2**40
_PART_BITS = 48
_PART = 2**_PART_BITS - 1
_INT, _BOOL = pa.int64(), pa.bool_()


@dataclass
class Register:
    """One value of a match; its cells stand from ``at`` on."""

    at: int
    variable: str | None
    """Of the rows of which variable; None: of all."""
    values: Sequence[Any] = field(default=(), init=False)
    """What each row of the step adds."""

    types: tuple[pa.DataType, ...] = field(default=(), init=False)
    empty: Cells = field(default=(None,), init=False)

    def add(self, cells: list[Any], row: int) -> None:
        """A row more."""
        raise NotImplementedError

    def bind(self, column: pa.ChunkedArray) -> None:
        """The argument in the rows of a step."""
        self.values = plain(column)

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        """The values in some matches."""
        raise NotImplementedError


def plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column as Python's, times as numbers."""
    values = column.cast(plain_type(column.type))
    is_text = is_bytes(values.type)
    found: list[Any] = values.to_pylist() if is_text or values.null_count else _listed(values)
    return found


def _listed(values: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The same of a column of numbers or truth values without NULLs, which is quicker."""
    found: list[Any] = np.asarray(values).tolist()
    return found


def plain_lists(column: pa.ChunkedArray) -> list[list[Any]]:
    """The values of a column of lists."""
    lists = column.combine_chunks()
    values = plain(lists.flatten())
    lengths = np.asarray(lists.value_lengths(), dtype=np.int64)
    return [values[first:last] for first, last in pairwise([0, *np.cumsum(lengths).tolist()])]


def plain_type(type_: pa.DataType) -> pa.DataType:
    """How values of a type are kept: times as numbers."""
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date(type_) else type_


@dataclass
class _Last(Register):
    type: pa.DataType

    def __post_init__(self) -> None:
        self.types = (plain_type(self.type),)

    def add(self, cells: list[Any], row: int) -> None:
        cells[self.at] = self.values[row]

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        return pa.array([cells[self.at] for cells in matches], self.types[0]).cast(self.type)


@dataclass
class _First(_Last):
    def __post_init__(self) -> None:
        self.types, self.empty = (plain_type(self.type), _BOOL), (None, False)

    def add(self, cells: list[Any], row: int) -> None:
        if not cells[self.at + 1]:
            cells[self.at], cells[self.at + 1] = self.values[row], True


@dataclass
class _Count(Register):
    def __post_init__(self) -> None:
        self.types, self.empty = (_INT,), (0,)

    def bind(self, column: pa.ChunkedArray) -> None:
        self.values = mask_of(column).tolist()

    def add(self, cells: list[Any], row: int) -> None:
        cells[self.at] += not self.values or self.values[row]

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        return pa.array([cells[self.at] for cells in matches], _INT)


@dataclass
class _WholeSum(Register):
    """How many values, and their sum in two halves of which none leaves its range."""

    type: pa.DataType
    is_mean: bool

    def __post_init__(self) -> None:
        self.types, self.empty = (_INT, _INT, _INT), (0, 0, 0)

    def add(self, cells: list[Any], row: int) -> None:
        value = self.values[row]
        if value is None:
            return
        low = cells[self.at + 1] + (value & _LOW)
        cells[self.at] += 1
        cells[self.at + 1] = low & _LOW
        cells[self.at + 2] += (value >> 32) + (low >> 32)

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        return pa.array(
            [self._value(*cells[self.at : self.at + 3]) for cells in matches], self.type
        )

    def _value(self, count: int, low: int, high: int) -> float | int | None:
        total = (high << 32) + low
        if not count:
            return None
        if self.is_mean:
            return float(total) / count
        if not -(2**63) <= total < 2**63:
            raise overflow([])
        return total


@dataclass
class _DecimalSum(Register):
    """How many values, and their sum in three parts."""

    type: pa.DataType
    argument_type: pa.DataType
    is_mean: bool

    def __post_init__(self) -> None:
        self.types, self.empty = (_INT,) * 4, (0, 0, 0, 0)

    def bind(self, column: pa.ChunkedArray) -> None:
        units, is_there = wholes(flat(column)).tolist(), mask_of(column).tolist()
        self.values = [
            unit if there else None for unit, there in zip(units, is_there, strict=False)
        ]

    def add(self, cells: list[Any], row: int) -> None:
        value = self.values[row]
        if value is None:
            return
        total = _total(cells[self.at + 1 : self.at + 4]) + value
        parts = (total & _PART, (total >> _PART_BITS) & _PART, total >> (2 * _PART_BITS))
        cells[self.at : self.at + 4] = [cells[self.at] + 1, *parts]

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        count = np.array([cells[self.at] for cells in matches], np.int64)
        total = np.array([_total(cells[self.at + 1 : self.at + 4]) for cells in matches], object)
        units = mean_of(total, count, self.argument_type, self.type) if self.is_mean else total
        if not within(units, self.type).all():
            raise overflow([])
        return column_of(units, self.type, count > 0)


def _total(parts: Sequence[int]) -> int:
    low, middle, high = parts
    return low + (middle << _PART_BITS) + (high << (2 * _PART_BITS))


@dataclass
class _RealSum(Register):
    """How many values, and their exact sum."""

    is_mean: bool

    def __post_init__(self) -> None:
        self.types = (_INT,) * (1 + exact_sum.LIMBS)
        self.empty = (0,) * (1 + exact_sum.LIMBS)

    def bind(self, column: pa.ChunkedArray) -> None:
        valid = mask_of(column)
        ones = np.ones(len(valid), np.int64)
        limbs = exact_sum.split(doubles_of(column), ones, valid)
        rows = zip(*(limb.tolist() for limb in limbs), strict=True)
        self.values = [
            limbs if is_there else None
            for limbs, is_there in zip(rows, valid.tolist(), strict=True)
        ]

    def add(self, cells: list[Any], row: int) -> None:
        limbs = self.values[row]
        if limbs is None:
            return
        cells[self.at] += 1
        for place, limb in enumerate(limbs, self.at + 1):
            cells[place] += limb
        for place in range(self.at + 5, self.at + 1, -1):
            carry, cells[place] = divmod(cells[place], _CARRY)
            cells[place - 1] += carry

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        cells = np.array(
            [each[self.at : self.at + 1 + exact_sum.LIMBS] for each in matches], np.int64
        ).reshape(-1, 1 + exact_sum.LIMBS)
        count = cells[:, 0]
        total = exact_sum.as_double([cells[:, 1 + i] for i in range(exact_sum.LIMBS)])
        if self.is_mean:
            with np.errstate(invalid="ignore"):
                total = total / np.maximum(count, 1)
        return pa.array(total, mask=count == 0)


@dataclass
class _Extreme(Register):
    """The least or greatest value, as what is in the same order."""

    type: pa.DataType
    is_greatest: bool

    def __post_init__(self) -> None:
        self.types = (self.type if _is_compared(self.type) else _INT,)

    def bind(self, column: pa.ChunkedArray) -> None:
        if _is_compared(self.type):
            self.values = column.to_pylist()
            return
        pairs = zip(places_of(column).tolist(), mask_of(column).tolist(), strict=True)
        self.values = [place if is_there else None for place, is_there in pairs]

    def add(self, cells: list[Any], row: int) -> None:
        value, known = self.values[row], cells[self.at]
        if value is None:
            return
        if known is None or (value > known if self.is_greatest else value < known):
            cells[self.at] = value

    def told(self, matches: Sequence[Cells]) -> pa.Array:
        found = pa.array([cells[self.at] for cells in matches], self.types[0])
        if pa.types.is_floating(self.type):
            some = np.asarray(found.is_valid())
            filled = np.asarray(found.fill_null(0), dtype=np.int64)
            return pa.array(np.asarray(doubles_back(filled)), mask=~some)
        if pa.types.is_boolean(self.type) or _is_compared(self.type):
            return found.cast(self.type)
        return found.cast(plain_type(self.type)).cast(self.type)


def _is_compared(type_: pa.DataType) -> bool:
    """Whether values are kept as they are, and not as what is in the same order."""
    return bool(is_bytes(type_) or pa.types.is_decimal(type_))


def register_of(slot: Slot, at: int) -> Register:
    """The register of a slot."""
    type_ = ARROW_TYPES[slot.type]
    match slot.function:
        case "first":
            return _First(at, slot.variable, type_)
        case "last":
            return _Last(at, slot.variable, type_)
        case "count":
            return _Count(at, slot.variable)
        case "min" | "max":
            return _Extreme(at, slot.variable, type_, slot.function == "max")
    argument = pa.null() if slot.argument is None else ARROW_TYPES[slot.argument.type]
    if pa.types.is_decimal(argument):
        return _DecimalSum(at, slot.variable, type_, argument, slot.function == "avg")
    if pa.types.is_floating(argument):
        return _RealSum(at, slot.variable, slot.function == "avg")
    return _WholeSum(at, slot.variable, type_, slot.function == "avg")


def position_register(is_first: bool, variable: str | None, at: int) -> Register:
    """The place in its partition of the first or last row of a variable."""
    return (_First if is_first else _Last)(at, variable, _INT)


class Registers:
    """All registers of the matches of a pattern, the last of which is the place to go on from."""

    def __init__(self, slots: Sequence[Slot], skip: tuple[bool, str | None]) -> None:
        self.all: list[Register] = []
        self.empty: Cells = ()
        """The cells before any row."""
        for slot in slots:
            self._add(register_of(slot, len(self.empty)))
        self._add(position_register(*skip, len(self.empty)))
        self._of: dict[str, list[Register]] = {}

    def _add(self, register: Register) -> None:
        self.all.append(register)
        self.empty += register.empty

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the cells."""
        return [type_ for register in self.all for type_ in register.types]

    def with_row(self, cells: Cells, variable: str, row: int) -> Cells:
        """The cells with a row more, which stands for a variable."""
        if variable not in self._of:
            wanted = (None, variable)
            self._of[variable] = [each for each in self.all if each.variable in wanted]
        new = list(cells)
        for register in self._of[variable]:
            register.add(new, row)
        return tuple(new)

    def cells_of(self, slot: int) -> range:
        """Which cells are those of a slot."""
        register = self.all[slot]
        return range(register.at, register.at + len(register.types))
